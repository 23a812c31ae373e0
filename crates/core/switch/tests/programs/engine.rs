//! Tasks that are written ahead.

use sluice_switch::{Arrival, Cargo, Refusal, Replica, Verdict, WriteAhead};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::sizes::TICKET_MASK;
use sluice_wire::tables::{RingRow, ServerRow, ServerState, SliceRow, TableAnswer, TableOp};
use sluice_wire::{Endpoint, Generation, Handle, Packet, Place, Psn, Qpn, Rkey, ServerId, SliceId, WorkerId};

use crate::rack::{Rack, SLICE, START, at, circulating, dispatched, submit};

const SLOTS: u32 = 8;
const SLOT_BYTES: u32 = 12 + 640;

fn server_at(server: u16) -> Endpoint {
    at(300 + server)
}

fn ring(server: u16) -> RingRow {
    let address = 0x1_0000 * u64::from(server + 1);
    RingRow { rkey: Rkey(70 + u32::from(server)), address, slots: SLOTS, slot_bytes: SLOT_BYTES }
}

/// A rack whose slice is kept by these servers.
fn rack(servers: &[u16], reliable: bool) -> Rack {
    rack_of("rain", servers, reliable, SLOTS)
}

fn rack_of(program: &str, servers: &[u16], reliable: bool, slots: u32) -> Rack {
    let mut rack = Rack::with_servers(program, 2);
    for server in servers.iter().copied() {
        let row = ServerRow { at: server_at(server), qpn: Qpn(50 + u32::from(server)), reliable, icrc: true };
        let start = Psn::new(u32::MAX);
        let done = rack.program.table(TableOp::SetServer(ServerId(server), Some((row, start))));
        assert_eq!(done, TableAnswer::Done);
        let done = rack.program.table(TableOp::SetRing(
            SLICE,
            ServerId(server),
            Some(RingRow { slots, ..ring(server) }),
        ));
        assert_eq!(done, TableAnswer::Done);
    }
    rack
}

fn written(verdict: Verdict) -> WriteAhead {
    match verdict {
        Verdict::Ahead(write) => write,
        other => panic!("not written ahead: {other:?}"),
    }
}

fn replicas(rack: &mut Rack, write: &WriteAhead) -> Vec<Replica> {
    (0..write.copies).filter_map(|copy| rack.program.replica(write, copy)).collect()
}

fn next_of(rack: &mut Rack, server: u16) -> u32 {
    match rack.program.table(TableOp::ReadServer(ServerId(server))) {
        TableAnswer::Server(ServerState { next, .. }) => next.get(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_large_task_that_waits_is_written_to_every_server_of_its_slice_and_its_dispatch_names_the_slot() {
    let mut rack = rack(&[0, 2], false);
    for turn in 0..SLOTS + 2 {
        let write = written(rack.large_task(640));
        assert_eq!(
            (write.slice, write.ticket, write.copies),
            (SLICE, START.0.wrapping_add(turn) & TICKET_MASK, 2)
        );
        let mut replicas = replicas(&mut rack, &write);
        replicas.sort_by_key(|replica| replica.server.0);
        for (replica, server) in replicas.iter().zip([0, 2]) {
            let slot = u64::from(write.ticket % SLOTS) * u64::from(SLOT_BYTES);
            assert_eq!((replica.server, replica.to), (ServerId(server), server_at(server)));
            assert_eq!((replica.qpn, replica.rkey), (Qpn(50 + u32::from(server)), ring(server).rkey));
            assert_eq!(replica.address, ring(server).address + slot);
            assert_eq!(replica.psn, Psn::new(u32::MAX).plus(turn), "a number of its own for each server");
        }
        let dispatch = dispatched(rack.token(0));
        assert_eq!(dispatch.place, Place::Ahead { slice: SLICE, ticket: write.ticket });
        assert_eq!((dispatch.task, dispatch.payload.len), (write.task, 640));
    }
}

#[test]
fn servers_take_turns_where_each_task_is_written_to_some_of_them() {
    let mut rack = rack(&[0, 1, 3], false);
    rack.program.table(TableOp::SetCopies(SLICE, 2));
    let mut written_to = Vec::new();
    for _ in 0..3 {
        let write = written(rack.large_task(640));
        written_to
            .push(replicas(&mut rack, &write).iter().map(|replica| replica.server.0).collect::<Vec<_>>());
        rack.token(0);
    }
    written_to.sort();
    assert_eq!(written_to, [[0, 1], [1, 3], [3, 0]]);
}

#[test]
fn servers_take_turns_with_the_tasks_of_each_class() {
    for class in 0..4 {
        let mut rack = rack_of("rain:2,classes=4", &[0, 1], false, 64);
        rack.program.table(TableOp::SetCopies(SLICE, 1));
        let mut written_to = |_| {
            let write = written(rack.large_task_of(class, 640));
            replicas(&mut rack, &write)[0].server.0
        };
        let [first, second, third] = [0, 1, 2].map(&mut written_to);
        assert_eq!((first + second, first), (1, third), "class {class}");
    }
}

#[test]
fn the_controller_reads_back_the_ring_that_it_set() {
    let mut rack = rack(&[2], false);
    let mut read = |server| rack.program.table(TableOp::ReadRing(SLICE, ServerId(server)));
    assert_eq!([read(2), read(1)], [TableAnswer::Ring(Some(ring(2))), TableAnswer::Ring(None)]);
    assert_eq!(read(9), TableAnswer::OutOfRange);
}

#[test]
fn a_slot_longer_than_any_task_takes_the_longest() {
    let mut rack = rack(&[0], false);
    let row = RingRow { slot_bytes: 100_000, ..ring(0) };
    rack.program.table(TableOp::SetRing(SLICE, ServerId(0), Some(row)));
    assert_eq!(written(rack.large_task(u16::MAX)).copies, 1);
}

/// Each class has as many slots as its tasks may wait.
#[test]
fn tasks_of_all_classes_that_wait_are_written_to_slots_of_their_own() {
    let all = [0, 1, 2, 3].map(Labels);
    for (program, needs) in [("rain:2,classes=4", &[Labels::NONE][..]), ("rain:2,labels", &all)] {
        let mut rack = rack_of(program, &[0], false, 4 * 16);
        let row = rack.state().row;
        rack.set_slice(SliceRow { serving: Serving::of(needs, &[Labels(3)]).unwrap(), ..row });
        each_has_its_slot(&mut rack, 4 * 16);
    }
}

fn each_has_its_slot(rack: &mut Rack, slots: u32) {
    let mut waiting: Vec<WriteAhead> = Vec::new();
    let mut dice = 1_u32;
    for _ in 0..2_000 {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if waiting.len() < 16 && dice >> 31 == 0 {
            let write = written(rack.large_task_of((dice >> 20) as u8 % 4, 640));
            let same = waiting.iter().find(|other| other.ticket % slots == write.ticket % slots);
            assert_eq!(same, None, "{write:?}");
            waiting.push(write);
        } else if !waiting.is_empty() {
            let token = rack.token(0);
            let dispatch = dispatched(rack.go_round(token));
            let place = waiting.iter().position(|write| write.task == dispatch.task).expect("it waited");
            let write = waiting.remove(place);
            assert_eq!(dispatch.place, Place::Ahead { slice: SLICE, ticket: write.ticket });
        }
    }
}

#[test]
fn a_task_that_finds_a_token_goes_on_whole() {
    let mut rack = rack(&[0], false);
    rack.token(0);
    assert_eq!(dispatched(rack.large_task(640)).place, Place::Here);
    rack.task();
    assert_eq!(dispatched(rack.token(0)).place, Place::Here, "a short one rides in its entry");
}

#[test]
fn what_fits_no_slot_or_has_no_server_stays_with_its_client() {
    let mut with = rack(&[0], false);
    assert_eq!(with.large_task(641), Verdict::Parked);
    assert_eq!(dispatched(with.token(0)).place, Place::AtClient);
    with.program.table(TableOp::SetRing(SLICE, ServerId(0), None));
    assert_eq!(with.large_task(640), Verdict::Parked);
    assert_eq!(dispatched(with.token(0)).place, Place::AtClient);
    let mut without = Rack::with_servers("draconis", 1);
    assert_eq!(without.large_task(640), Verdict::Parked);
    assert_eq!(dispatched(without.token(0)).place, Place::AtClient);
}

#[test]
fn a_task_that_goes_round_is_written_ahead_when_it_waits_and_the_driver_keeps_nothing() {
    let mut rack = rack(&[0], false);
    rack.token(0);
    rack.program.table(TableOp::RaiseGeneration(WorkerId(0), Generation(9)));
    let mut again = circulating(rack.large_task(640));
    let Cargo::Task(task) = &mut again.cargo else { panic!("{again:?}") };
    task.payload.handle = Handle(5);
    assert_eq!(written(rack.once_more(again)).payload.handle, Handle(5));
    assert_eq!(dispatched(rack.token(1)).payload.handle, Handle::NONE);
}

#[test]
fn one_copy_goes_to_two_servers_by_turns() {
    let mut rack = rack(&[0, 3], false);
    rack.program.table(TableOp::SetCopies(SLICE, 1));
    let servers = [(); 6].map(|()| {
        let write = written(rack.large_task(640));
        let [replica] = replicas(&mut rack, &write)[..] else { panic!("one copy") };
        replica.server.0
    });
    assert!(servers.windows(2).all(|two| two[0] != two[1]), "{servers:?}");
}

#[test]
fn fewer_copies_go_to_each_server_in_turn() {
    let mut rack = rack(&[0, 1, 3], false);
    rack.program.table(TableOp::SetCopies(SLICE, 2));
    let mut copies = [0; 4];
    for _ in 0..9 {
        let write = written(rack.large_task(640));
        let replicas = replicas(&mut rack, &write);
        assert_eq!(replicas.len(), 2);
        assert_ne!(replicas[0].server, replicas[1].server);
        for replica in replicas {
            copies[usize::from(replica.server.0)] += 1;
        }
    }
    let in_turn = [0, 1, 3].map(|server| (5..=7).contains(&copies[server]));
    assert_eq!((in_turn, copies[2]), ([true; 3], 0), "tickets wrap among them: {copies:?}");
}

#[test]
fn a_nak_takes_the_number_back_once() {
    let mut rack = rack(&[1], true);
    for _ in 0..4 {
        let write = written(rack.large_task(640));
        replicas(&mut rack, &write);
    }
    assert_eq!(next_of(&mut rack, 1), 3);
    let mut nak = |from, server, expected| {
        let expected = Psn::new(expected);
        rack.program.pass(rack.now, Arrival::Nak { from, server: ServerId(server), expected })
    };
    assert_eq!(nak(server_at(1), 1, 1), Verdict::Parked);
    assert_eq!(nak(server_at(1), 1, 1), Verdict::Drop(Refusal::OldNak));
    assert_eq!(nak(server_at(1), 1, 2), Verdict::Drop(Refusal::OldNak), "it was not sent since");
    assert_eq!(nak(server_at(0), 1, 1), Verdict::Drop(Refusal::WrongAddress));
    assert_eq!(nak(server_at(1), 2, 1), Verdict::Drop(Refusal::UnknownSource));
    assert_eq!(next_of(&mut rack, 1), 1);
}

#[test]
fn an_unreliable_server_has_no_say() {
    let mut rack = rack(&[1], false);
    let nak = Arrival::Nak { from: server_at(1), server: ServerId(1), expected: Psn::new(0) };
    assert_eq!(rack.program.pass(rack.now, nak), Verdict::Drop(Refusal::Unexpected));
}

#[test]
fn a_server_that_goes_between_pass_and_egress_gets_no_copy() {
    let mut rack = rack(&[1], false);
    let write = written(rack.large_task(640));
    rack.program.table(TableOp::SetServer(ServerId(1), None));
    assert_eq!(rack.program.replica(&write, 0), None);
    assert_eq!(rack.large_task(640), Verdict::Parked);
}

#[test]
fn rings_that_cannot_be_are_refused_to_the_controller() {
    let mut rack = rack(&[0], false);
    let set = |slice, server, row| TableOp::SetRing(SliceId(slice), ServerId(server), Some(row));
    let ops = [
        set(0, 4, ring(0)),
        set(2, 0, ring(0)),
        set(0, 0, RingRow { slots: 12, ..ring(0) }),
        set(0, 0, RingRow { slots: 0, ..ring(0) }),
        set(0, 0, RingRow { slot_bytes: 20, ..ring(0) }),
        TableOp::ReadRing(SliceId(0), ServerId(4)),
        TableOp::SetServer(ServerId(4), None),
        TableOp::ReadServer(ServerId(4)),
        TableOp::SetCopies(SliceId(2), 1),
    ];
    for op in ops {
        assert_eq!(rack.program.table(op), TableAnswer::OutOfRange, "{op:?}");
    }
    let mut without = Rack::new(1, 16);
    assert_eq!(without.program.table(set(0, 0, ring(0))), TableAnswer::OutOfRange);
    let packet = Packet::Submit(submit(START));
    assert_eq!(without.wire(at(200), packet), Verdict::Parked);
}
