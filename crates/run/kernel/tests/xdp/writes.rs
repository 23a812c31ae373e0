//! Tasks that are written ahead: cases that no vector covers.

use std::net::SocketAddr;

use sluice_conformance::explore::SERVERS_SHAPE;
use sluice_conformance::{Plane as _, Sent, Shape, Step};
use sluice_kernel::xdp::frame::{MACS, unwrap, wrap};
use sluice_kernel::xdp::{FrameAction, HostPath};
use sluice_wire::roce::{Packet as Roce, View};
use sluice_wire::tables::{ServerRow, TableAnswer, TableOp};
use sluice_wire::{
    Attempt, ClientId, Epoch, Generation, Key, Nanos, Packet, Payload, Place, Probe, Psn, Qpn, Serial,
    ServerId, Submit, TaskId, TaskType, Token, WorkerId, encode, encoded_len, large_descriptor, parse,
};

use crate::plane::Xdp;

const SHAPE: Shape = Shape { counters_start: 0, ..SERVERS_SHAPE };
const ETHERNET: usize = 14;
/// The position of the UDP checksum in an IPv4 frame.
const CHECK4: usize = ETHERNET + 20 + 6;

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn client_at() -> SocketAddr {
    at("10.0.2.1:200")
}

/// The worker's address: the first server's, with the port of RDMA writes.
fn worker_at() -> SocketAddr {
    at("10.0.3.1:4791")
}

fn link(server: u16) -> HostPath {
    HostPath { link: 100 + u32::from(server), to: [100 + server as u8, 0, 0, 0, 0, 0], from: [8; 6] }
}

/// A plane with a client, a worker, and two slices for types 0 and 1.
fn rack() -> Option<Xdp> {
    let mut xdp = Xdp::new(SHAPE)?;
    let mut steps = vec![
        Step::SetClient { client: 0, key: 5, at: client_at(), incarnation: 9, start: 0 },
        Step::SetWorker { worker: 0, key: 6, at: worker_at(), slice: 0, generation: 1, open: true },
        Step::RaiseGeneration { worker: 0, generation: 1 },
    ];
    for slice in 0..2 {
        steps.push(Step::SetSlice {
            slice,
            open: true,
            limit: 16,
            retry_after_ns: 0,
            target_ns: 0,
            expected: 0,
        });
        steps.push(Step::SetType { r#type: slice, slice: Some(slice) });
    }
    steps.iter().filter_map(Step::table).for_each(|op| xdp.table(op).expect("root"));
    Some(xdp)
}

/// Adds a server with a ring for each of these slices.
fn serve(xdp: &mut Xdp, server: u16, at: SocketAddr, slices: &[u16]) {
    let mut steps = vec![Step::SetServer { server, at, qpn: 17, psn: 0 }];
    steps.extend(slices.iter().map(|slice| Step::SetRing {
        slice: *slice,
        server,
        rkey: 3,
        address: 0,
        slots: 16,
        slot_bytes: 1_024,
    }));
    for op in steps.iter().filter_map(Step::table) {
        assert_eq!(xdp.switch.table(op).expect("root"), TableAnswer::Done);
    }
}

/// The frame of a large task of this type.
fn task(sequence: u32, of: u16, bytes: &[u8]) -> Vec<u8> {
    let submit = Submit {
        epoch: Epoch(SHAPE.epoch),
        key: Key(5),
        client: ClientId(0),
        task: TaskId { sequence: Serial(sequence), ..TaskId::default() },
        attempt: Attempt(1),
        task_type: TaskType(of),
        payload: Payload { len: bytes.len() as u16, inline: large_descriptor(bytes), ..Payload::EMPTY },
        ..Submit::default()
    };
    framed(client_at(), &Packet::Submit(submit), bytes)
}

fn token(issued: u32) -> Vec<u8> {
    let token = Token {
        epoch: Epoch(SHAPE.epoch),
        key: Key(6),
        worker: WorkerId(0),
        generation: Generation(1),
        issued: Serial(issued),
        ..Token::default()
    };
    framed(worker_at(), &Packet::Token(token), &[])
}

fn framed(from: SocketAddr, packet: &Packet, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; encoded_len(packet)];
    encode(packet, body, &mut bytes).expect("legal");
    wrap(from, Xdp::at(from), &bytes).expect("of one family")
}

fn write_of(xdp: &Xdp, frame: &[u8]) -> Vec<u8> {
    match xdp.switch.frame(frame).expect("root") {
        FrameAction::Redirected(write) => write,
        other => panic!("no WRITE: {other:?}"),
    }
}

/// The place of a task's bytes in the DISPATCH that answers the worker's next token.
fn place(xdp: &Xdp, issued: u32) -> Place {
    let FrameAction::Sent(frame) = xdp.switch.frame(&token(issued)).expect("root") else {
        panic!("a DISPATCH")
    };
    match parse(unwrap(&frame).expect("right").bytes).expect("a packet").0 {
        Packet::Dispatch(dispatch) => dispatch.place,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pair_that_answers_or_wants_an_icrc_is_refused() {
    let Some(mut xdp) = rack() else { return };
    let row = ServerRow { at: at("10.0.3.1:4791").into(), qpn: Qpn(17), reliable: false, icrc: false };
    for (row, answer) in [
        (row, TableAnswer::Done),
        (ServerRow { icrc: true, ..row }, TableAnswer::OutOfRange),
        (ServerRow { reliable: true, ..row }, TableAnswer::OutOfRange),
    ] {
        let op = TableOp::SetServer(ServerId(0), Some((row, Psn::new(1))));
        assert_eq!(xdp.switch.table(op).expect("root"), answer, "{row:?}");
    }
}

#[test]
fn a_server_is_found_where_its_workers_packets_come_from() {
    let Some(mut xdp) = rack() else { return };
    serve(&mut xdp, 0, at("10.0.3.1:5000"), &[0]);
    xdp.switch.find_servers().expect("root");
    assert_eq!(
        xdp.switch.frame(&task(1, 0, &[1; 100])).expect("root"),
        FrameAction::Dropped,
        "nobody knows the way"
    );
    assert_eq!(place(&xdp, 1), Place::AtClient);

    // The TOKEN has shown the path.
    xdp.switch.find_servers().expect("root");
    let write = write_of(&xdp, &task(2, 0, &[1; 100]));
    let loopback = 1;
    let FrameAction::Sent(copy) = xdp.switch.copy(loopback, &write).expect("root") else { panic!("a copy") };
    assert_eq!(copy[..12], [MACS[1], MACS[0]].concat(), "the way back");
    assert_eq!(unwrap(&copy).expect("right").to, at("10.0.3.1:5000"));
    assert_eq!(xdp.switch.copy(2, &write).expect("root"), FrameAction::Dropped, "there is no server");
    let Place::Ahead { slice, ticket } = place(&xdp, 2) else { panic!("it is there") };
    assert_eq!((slice.0, ticket), (0, 1), "the second that waited");

    // A server at another address needs another path.
    serve(&mut xdp, 0, at("10.0.3.2:5000"), &[]);
    assert_eq!(xdp.switch.frame(&task(3, 0, &[1; 100])).expect("root"), FrameAction::Dropped);
}

#[test]
fn servers_behind_one_link_are_not_written_to_and_other_slices_are() {
    let Some(mut xdp) = rack() else { return };
    serve(&mut xdp, 0, at("10.0.3.1:4791"), &[0, 1]);
    serve(&mut xdp, 1, at("10.0.3.2:4791"), &[0]);
    serve(&mut xdp, 2, at("10.0.3.3:4791"), &[1]);
    for server in 0..3 {
        let way = if server == 1 { link(0) } else { link(server) };
        xdp.switch.set_server_way(ServerId(server), way).expect("root");
    }
    assert_eq!(xdp.switch.frame(&task(1, 0, &[1; 100])).expect("root"), FrameAction::Dropped);
    assert_eq!(place(&xdp, 1), Place::AtClient);
    assert_eq!(
        xdp.switch.frame(&task(2, 1, &[1; 100])).expect("root"),
        FrameAction::Dropped,
        "0 is in this slice too"
    );

    // The server moves to a link of its own.
    xdp.switch.set_server_way(ServerId(1), link(1)).expect("root");
    for (of, servers) in [(0, [true, true, false]), (1, [true, false, true])] {
        let write = write_of(&xdp, &task(3 + u32::from(of), of, &[1; 100]));
        for (server, gets) in servers.into_iter().enumerate() {
            let way = link(server as u16);
            match xdp.switch.copy(way.link, &write).expect("root") {
                FrameAction::Sent(copy) if gets => assert_eq!(copy[..12], [way.to, way.from].concat()),
                FrameAction::Dropped if !gets => {}
                other => panic!("server {server} of slice {of}: {other:?}"),
            }
        }
    }
}

#[test]
fn bytes_without_a_checksum_go_to_servers_that_need_none() {
    let Some(mut xdp) = rack() else { return };
    serve(&mut xdp, 0, at("10.0.3.1:4791"), &[0]);
    xdp.switch.set_server_way(ServerId(0), link(0)).expect("root");
    let without = |sequence| {
        let mut frame = task(sequence, 0, &[0xab; 301]);
        frame[CHECK4..CHECK4 + 2].fill(0);
        frame
    };
    let write = write_of(&xdp, &without(1));
    assert!(matches!(xdp.switch.copy(100, &write).expect("root"), FrameAction::Sent(_)));

    serve(&mut xdp, 1, at("[fd00::3:2]:4791"), &[0]);
    xdp.switch.set_server_way(ServerId(1), link(1)).expect("root");
    assert_eq!(
        xdp.switch.frame(&without(2)).expect("root"),
        FrameAction::Dropped,
        "they stay with the client"
    );
    let write = write_of(&xdp, &task(3, 0, &[0xab; 301]));
    let FrameAction::Sent(copy) = xdp.switch.copy(101, &write).expect("root") else { panic!("a copy") };
    unwrap(&copy).expect("with a right checksum");
}

#[test]
fn what_a_link_adds_behind_a_task_is_not_written() {
    let Some(mut xdp) = rack() else { return };
    serve(&mut xdp, 0, at("10.0.3.1:4791"), &[0]);
    xdp.switch.set_server_way(ServerId(0), link(0)).expect("root");
    for (sequence, length) in [9, 10, 11, 12, 900, 1_012].into_iter().enumerate() {
        let bytes: Vec<u8> = (0..length).map(|at| at as u8 | 1).collect();
        let padded = [task(sequence as u32, 0, &bytes), vec![7; 9]].concat();
        let write = write_of(&xdp, &padded);
        let FrameAction::Sent(copy) = xdp.switch.copy(100, &write).expect("root") else { panic!("a copy") };
        let left = unwrap(&copy).expect("whole and right");
        let view = View::parse(left.bytes).expect("whole words");
        let (Roce::Write(write), payload) = view.packet().expect("a WRITE") else { panic!("a WRITE") };
        assert_eq!((payload.len(), &payload[12..]), (12 + bytes.len(), &bytes[..]));
        assert_eq!(write.address, sequence as u64 * 1_024);
        assert_eq!(left.bytes[left.bytes.len() - 4..], [0; 4], "no iCRC");
    }
}

#[test]
fn a_task_of_a_page_is_written_ahead_too() {
    let Some(mut xdp) = rack() else { return };
    let bytes: Vec<u8> = (0..3_100u32).map(|at| (at * 31) as u8).collect();
    serve(&mut xdp, 0, at("[fd00::3:1]:4791"), &[]);
    let ring = Step::SetRing { slice: 0, server: 0, rkey: 3, address: 0, slots: 2, slot_bytes: 4_096 };
    xdp.switch.table(ring.table().expect("a step")).expect("root");
    xdp.switch.set_server_way(ServerId(0), link(0)).expect("root");
    let write = write_of(&xdp, &task(1, 0, &bytes));
    let FrameAction::Sent(copy) = xdp.switch.copy(100, &write).expect("root") else { panic!("a copy") };
    let left = unwrap(&copy).expect("right");
    assert_eq!(View::parse(left.bytes).expect("whole").packet().expect("a WRITE").1[12..], bytes);
}

#[test]
fn what_is_no_write_leaves_over_a_servers_link_as_it_is() {
    let Some(mut xdp) = rack() else { return };
    serve(&mut xdp, 0, at("10.0.3.1:4791"), &[0]);
    xdp.switch.set_server_way(ServerId(0), link(0)).expect("root");
    let probe =
        Probe { epoch: Epoch(SHAPE.epoch), key: Key(6), generation: Generation(1), ..Probe::default() };
    let FrameAction::Sent(answer) =
        xdp.switch.frame(&framed(worker_at(), &Packet::Probe(probe), &[])).expect("root")
    else {
        panic!("an ANSWER to the port of RDMA writes")
    };
    let mut other_port = write_of(&xdp, &task(1, 0, &[1; 100]));
    other_port[ETHERNET + 20 + 2..ETHERNET + 20 + 4].copy_from_slice(&[0x12, 0x34]);
    for frame in [answer.clone(), other_port, answer[..60].to_vec()] {
        let mut expected = frame.clone();
        expected[..4].copy_from_slice(&100u32.to_ne_bytes());
        assert_eq!(xdp.switch.copy(100, &frame).expect("root"), FrameAction::Sent(expected));
    }
}

#[test]
fn many_at_once_never_share_a_packet_number() {
    let Some(mut xdp) = rack() else { return };
    serve(&mut xdp, 0, at("10.0.3.1:4791"), &[0]);
    xdp.switch.set_server_way(ServerId(0), link(0)).expect("root");
    // The copy for the first slot is taken for a WRITE of the first ticket again, and starts with that
    // link's address.
    let mut write = write_of(&xdp, &task(1, 0, &[1; 64]));
    write[..6].copy_from_slice(&link(0).to);
    let both = std::sync::Barrier::new(2);
    let work = || {
        for _ in 0..ROUNDS {
            both.wait();
            xdp.switch.run("copy", &write, COPIES).expect("root");
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let TableAnswer::Server(state) = xdp.switch.table(TableOp::ReadServer(ServerId(0))).expect("root") else {
        panic!("a server")
    };
    assert_eq!(state.next.get(), 2 * ROUNDS * COPIES);
}

/// Copies made by each of two threads, which synchronise before each round.
const COPIES: u32 = 500_000;
const ROUNDS: u32 = 16;

#[test]
fn a_task_that_is_swept_out_leaves_no_trace_of_its_place() {
    let Some(mut xdp) = rack() else { return };
    serve(&mut xdp, 0, at("10.0.3.1:4791"), &[0]);
    xdp.switch.set_server_way(ServerId(0), link(0)).expect("root");
    write_of(&xdp, &task(1, 0, &[1; 64]));
    xdp.table(
        Step::SetSlice { slice: 0, open: false, limit: 16, retry_after_ns: 0, target_ns: 0, expected: 0 }
            .table()
            .expect("a step"),
    )
    .expect("root");
    let step = Step::Sweep { at_ns: 0, slice: 0, tasks: true, left: 9, out: None, rounds: 0 };
    let (now, sweep) = step.sweep(SHAPE.epoch).expect("a SWEEP");
    let Sent { to, bytes } = xdp.sweep(now.max(Nanos(1)), sweep).expect("root").expect("a REJECT");
    assert_eq!(to, client_at());
    assert!(matches!(parse(&bytes).expect("a packet").0, Packet::Reject(_)));
}
