//! How the program handles frames without a datagram for it, or with an incomplete one.

use sluice_conformance::explore::{SHAPE, explore};
use sluice_conformance::{Plane as _, Step};
use sluice_kernel::xdp::FrameAction;
use sluice_kernel::xdp::frame::{unwrap, wrap};

use sluice_wire::{
    Attempt, Epoch, Generation, HEADER_BYTES, Key, Nonce, Packet, Probe, Serial, SliceId, Submit, Sweep,
    SweepOf, TaskId, Token, WorkerId, encode,
};

use crate::plane::Xdp;

const ETHERNET: usize = 14;

/// A switch with the setup of the random walks, and the frame of a PROBE that it answers.
fn xdp(from_v4: bool) -> Option<(Xdp, Vec<u8>)> {
    let mut xdp = Xdp::new(SHAPE)?;
    let steps = explore(0, 0).steps;
    for op in steps.iter().filter_map(Step::table) {
        xdp.table(op).expect("root");
    }
    let frame = steps.iter().find_map(|step| match *step {
        Step::SetWorker { worker, key, at, generation, .. } if at.is_ipv4() == from_v4 => {
            let (epoch, generation) = (Epoch(SHAPE.epoch), Generation(generation));
            let probe =
                Probe { epoch, key: Key(key), worker: WorkerId(worker), generation, ..Probe::default() };
            let mut bytes = [0; HEADER_BYTES];
            encode(&Packet::Probe(probe), &[], &mut bytes).expect("legal");
            wrap(at, Xdp::at(at), &bytes)
        }
        _ => None,
    });
    Some((xdp, frame.expect("a worker of each family")))
}

fn count(xdp: &Xdp, name: &str) -> u64 {
    xdp.switch.counts().expect("root").into_iter().find(|(known, _)| *known == name).expect("a count").1
}

#[test]
fn what_is_not_for_the_switch_goes_to_the_kernel_untouched_and_uncounted() {
    let Some((xdp, good)) = xdp(true) else { return };
    let bent = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[at] = byte;
        frame
    };
    let vlan = [&good[..12], &[0x81, 0, 0, 5], &good[12..]].concat();
    let later_fragment = bent(ETHERNET + 7, 2);
    let others = [
        ("VLAN", vlan),
        ("ARP", bent(13, 6)),
        ("TCP", bent(ETHERNET + 9, 6)),
        ("another address", bent(ETHERNET + 19, 9)),
        ("another port", bent(ETHERNET + 20 + 3, 9)),
        ("another version", bent(ETHERNET, 0x55)),
        ("a later fragment", later_fragment),
        ("no whole IP header", good[..ETHERNET + 12].to_vec()),
    ];
    for (what, frame) in others {
        assert_eq!(xdp.switch.frame(&frame).expect("root"), FrameAction::Passed, "{what}");
    }
    assert_eq!(count(&xdp, "received"), 0);
}

#[test]
fn fragments_options_and_lengths_that_do_not_hold_are_dropped_and_counted() {
    let Some((xdp, good)) = xdp(true) else { return };
    let mut first_fragment = good.clone();
    first_fragment[ETHERNET + 6] |= 0x20;
    let mut options = [&good[..ETHERNET + 20], &[1, 1, 1, 0], &good[ETHERNET + 20..]].concat();
    options[ETHERNET] = 0x46;
    let mut beyond_ip = good.clone();
    beyond_ip[ETHERNET + 24..ETHERNET + 26].copy_from_slice(&400u16.to_be_bytes());
    let mut beyond_ip_within_frame = [&good[..], &[7; 9]].concat();
    let length = u16::from_be_bytes([good[ETHERNET + 24], good[ETHERNET + 25]]) + 4;
    beyond_ip_within_frame[ETHERNET + 24..ETHERNET + 26].copy_from_slice(&length.to_be_bytes());
    let cases = [
        ("truncated", beyond_ip_within_frame),
        ("fragment", first_fragment),
        ("ip_options", options),
        ("truncated", good[..good.len() - 1].to_vec()),
        ("truncated", beyond_ip),
    ];
    for (what, frame) in cases {
        let before = count(&xdp, what);
        assert_eq!(xdp.switch.frame(&frame).expect("root"), FrameAction::Dropped, "{what}");
        assert_eq!(count(&xdp, what), before + 1, "{what}");
    }
}

#[test]
fn what_a_link_adds_behind_a_datagram_does_not_come_back() {
    for from_v4 in [true, false] {
        let Some((xdp, good)) = xdp(from_v4) else { return };
        let FrameAction::Sent(expected) = xdp.switch.frame(&good).expect("root") else { panic!("answered") };
        let padded = [&good[..], &[7; 9]].concat();
        let FrameAction::Sent(answer) = xdp.switch.frame(&padded).expect("root") else { panic!("answered") };
        assert_eq!(answer.len(), expected.len());
        unwrap(&answer).expect("whole and right");
    }
}

#[test]
fn an_ipv6_extension_header_goes_to_the_kernel() {
    let Some((xdp, mut frame)) = xdp(false) else { return };
    frame[ETHERNET + 6] = 0;
    assert_eq!(xdp.switch.frame(&frame).expect("root"), FrameAction::Passed);
}

#[test]
fn a_sweep_of_another_life_or_for_no_slice_sweeps_nothing() {
    let Some((xdp, _)) = xdp(true) else { return };
    let sweep =
        Sweep { epoch: Epoch(SHAPE.epoch), slice: SliceId(0), of: SweepOf::Tokens, left: 9, carried: None };
    for wrong in
        [Sweep { epoch: Epoch(SHAPE.epoch - 1), ..sweep }, Sweep { slice: SliceId(SHAPE.slices), ..sweep }]
    {
        let before = count(&xdp, "wrong_epoch");
        assert_eq!(xdp.switch.sweep(wrong).expect("root"), FrameAction::Dropped);
        assert_eq!(count(&xdp, "wrong_epoch"), before + 1);
    }
    assert_eq!(count(&xdp, "sweep_done"), 0);
}

/// A worker's first TOKEN, an outdated PROBE of the worker, and a client's task, all with valid keys.
fn token_old_probe_and_task() -> [Vec<u8>; 3] {
    let steps = explore(0, 0).steps;
    let epoch = Epoch(SHAPE.epoch);
    let framed = |at, packet: &Packet| {
        let mut bytes = [0; HEADER_BYTES];
        encode(packet, &[], &mut bytes).expect("legal");
        wrap(at, Xdp::at(at), &bytes).expect("of one family")
    };
    let worker = steps.iter().find_map(|step| match *step {
        Step::SetWorker { worker: 0, key, at, generation, .. } => {
            let (key, worker, generation) = (Key(key), WorkerId(0), Generation(generation));
            let issued = Serial(SHAPE.counters_start).plus(1);
            let token = Token { epoch, key, worker, generation, nonce: Nonce(1), issued, ..Token::default() };
            let generation = Generation(generation.0.wrapping_sub(1));
            let probe = Probe { epoch, key, worker, generation, ..Probe::default() };
            Some((framed(at, &Packet::Token(token)), framed(at, &Packet::Probe(probe))))
        }
        _ => None,
    });
    let task = steps.iter().find_map(|step| match *step {
        Step::SetClient { client: 0, key, at, .. } => {
            let task = TaskId { sequence: Serial(SHAPE.counters_start), ..TaskId::default() };
            let (key, attempt) = (Key(key), Attempt(1));
            Some(framed(at, &Packet::Submit(Submit { epoch, key, task, attempt, ..Submit::default() })))
        }
        _ => None,
    });
    let (token, probe) = worker.expect("a worker");
    [token, probe, task.expect("a client")]
}

/// The frame with other Ethernet addresses: as if it came by another path.
fn by(way: &[u8], frame: &[u8]) -> Vec<u8> {
    [way, &frame[12..]].concat()
}

#[test]
fn a_task_goes_where_its_worker_s_last_packet_came_from() {
    let Some((xdp, probe)) = xdp(true) else { return };
    let run = |frame: &[u8]| xdp.switch.frame(frame).expect("root");
    let [token, _, task] = token_old_probe_and_task();
    assert_eq!(run(&token), FrameAction::Dropped, "it is parked");
    let moved = [[2, 0, 0, 0, 0, 8], [2, 0, 0, 0, 0, 9]].concat();
    assert!(matches!(run(&by(&moved, &probe)), FrameAction::Sent(_)));
    let FrameAction::Sent(dispatch) = run(&task) else { panic!("it met the token") };
    assert_eq!((&dispatch[..6], &dispatch[6..12]), (&moved[6..], &moved[..6]));
}

#[test]
fn what_was_not_let_in_does_not_say_where_its_worker_is() {
    let Some((xdp, _)) = xdp(true) else { return };
    let run = |frame: &[u8]| xdp.switch.frame(frame).expect("root");
    let [token, old_probe, task] = token_old_probe_and_task();
    let [is, was] = [6, 8].map(|last| [[2, 0, 0, 0, 0, last], [2, 0, 0, 0, 0, last + 1]].concat());
    assert_eq!(run(&by(&is, &token)), FrameAction::Dropped, "it is parked");
    for old_copy in [&token, &old_probe] {
        assert!(matches!(run(&by(&was, old_copy)), FrameAction::Sent(_)), "it is answered");
    }
    let FrameAction::Sent(dispatch) = run(&task) else { panic!("it met the token") };
    assert_eq!((&dispatch[..6], &dispatch[6..12]), (&is[6..], &is[..6]));
}
