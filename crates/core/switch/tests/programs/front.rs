//! The checks that all programs make before they schedule: wrong packets are refused, and each refusal is
//! counted.

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Refusal, Verdict};
use sluice_wire::tables::{SliceRow, TableAnswer, TableOp};
use sluice_wire::{
    Attempt, ClientId, Epoch, Generation, Key, Nanos, Notice, Packet, Probe, SliceId, Submit, Sweep, Token,
    WorkerId,
};

use crate::rack::{EPOCH, Rack, SLICE, START, at, probe, row, submit, token};

#[test]
fn a_slices_row_is_read_back_as_it_was_set() {
    each(|rack| {
        let row = SliceRow { open: true, limit: 7, retry_after: Nanos(9), ..SliceRow::default() };
        rack.program.table(TableOp::SetSlice(SLICE, row));
        assert_eq!(rack.state().row, row);
    });
}

#[test]
fn a_sweep_for_a_slice_that_is_not_there_is_refused() {
    each(|rack| {
        let mut inject = |slice| {
            let sweep = Sweep { epoch: EPOCH, slice: SliceId(slice), left: 1, ..Sweep::default() };
            rack.program.table(TableOp::Inject(sweep))
        };
        let [first, last, none] = [0, 1, 2].map(&mut inject);
        assert_eq!([first, last, none], [TableAnswer::Done, TableAnswer::Done, TableAnswer::OutOfRange]);
    });
}

fn each(check: impl Fn(&mut Rack)) {
    for program in Choice::all() {
        check(&mut Rack::of(program.name, 2, 16));
    }
}

/// The refusals that this packet adds to the counts.
fn refused(rack: &mut Rack, from: u16, packet: Packet) -> (Verdict, Vec<Refusal>) {
    let before = *rack.program.refusals();
    let verdict = rack.wire(at(from), packet);
    let more = rack.program.refusals().iter().filter(|(refusal, count)| *count > before.of(*refusal));
    (verdict, more.map(|(refusal, _)| refusal).collect())
}

#[test]
fn strangers_are_dropped_and_counted() {
    each(|rack| {
        let (task, ready) = (submit(START), token(0, START.plus(1)));
        for (from, packet, why) in [
            (200, Packet::Submit(Submit { client: ClientId(3), ..task }), Refusal::UnknownSource),
            (200, Packet::Submit(Submit { key: Key(1), ..task }), Refusal::WrongKey),
            (201, Packet::Submit(task), Refusal::WrongAddress),
            (100, Packet::Token(Token { worker: WorkerId(5), ..ready }), Refusal::UnknownSource),
            (100, Packet::Token(Token { worker: WorkerId(99), ..ready }), Refusal::UnknownSource),
            (100, Packet::Token(Token { key: Key(1), ..ready }), Refusal::WrongKey),
            (101, Packet::Token(ready), Refusal::WrongAddress),
            (101, Packet::Probe(probe(0)), Refusal::WrongAddress),
            (100, Packet::Notice(Notice::default()), Refusal::Unexpected),
            (100, Packet::Sweep(Sweep::default()), Refusal::Unexpected),
        ] {
            assert_eq!(refused(rack, from, packet), (Verdict::Drop(why), vec![why]));
        }
    });
}

#[test]
fn what_is_of_another_life_is_answered_and_counted() {
    each(|rack| {
        let ready = token(0, START.plus(1));
        for epoch in [Epoch(6), Epoch(8)] {
            let task = Submit { epoch, ..submit(START) };
            let (verdict, why) = refused(rack, 200, Packet::Submit(task));
            assert!(matches!(verdict, Verdict::Send { packet: Packet::Notice(_), .. }), "{verdict:?}");
            assert_eq!(why, [Refusal::WrongEpoch]);
        }
        for (packet, refusal) in [
            (Packet::Token(Token { epoch: Epoch(6), ..ready }), Refusal::WrongEpoch),
            (Packet::Token(Token { epoch: Epoch(8), ..ready }), Refusal::WrongEpoch),
            (Packet::Probe(Probe { epoch: Epoch(8), ..probe(0) }), Refusal::WrongEpoch),
            (Packet::Token(Token { generation: Generation(0), ..ready }), Refusal::WrongGeneration),
            (Packet::Token(Token { generation: Generation(2), ..ready }), Refusal::WrongGeneration),
            (Packet::Token(token(0, START)), Refusal::RepeatedToken),
            (Packet::Token(token(0, START.plus(9))), Refusal::ImpossibleCounter),
        ] {
            let (verdict, why) = refused(rack, 100, packet);
            assert!(matches!(verdict, Verdict::Send { packet: Packet::Answer(_), .. }), "{verdict:?}");
            assert_eq!(why, [refusal]);
        }
        rack.program.table(TableOp::SetWorker(WorkerId(0), Some(row(0, 1, false))));
        let (_, why) = refused(rack, 100, Packet::Token(ready));
        assert_eq!(why, [Refusal::Closed]);
    });
}

#[test]
fn each_try_of_a_task_enters_once() {
    each(|rack| {
        let task = submit(START);
        let (_, why) = refused(rack, 200, Packet::Submit(task));
        assert_eq!(why, []);
        let again = refused(rack, 200, Packet::Submit(task));
        assert_eq!(again, (Verdict::Drop(Refusal::Replayed), vec![Refusal::Replayed]));
        let (_, why) = refused(rack, 200, Packet::Submit(Submit { attempt: Attempt(2), ..task }));
        assert_eq!(why, []);
    });
}

#[test]
fn a_sweep_of_another_life_or_of_no_slice_finds_nothing() {
    each(|rack| {
        for sweep in [
            Sweep { epoch: Epoch(6), left: 1, ..Sweep::default() },
            Sweep { epoch: Epoch(8), left: 1, ..Sweep::default() },
            Sweep { epoch: EPOCH, slice: SliceId(9), left: 1, ..Sweep::default() },
        ] {
            let verdict = rack.program.pass(rack.now, Arrival::Control(sweep));
            assert_eq!(verdict, Verdict::Drop(Refusal::WrongEpoch));
        }
        let done = rack.control(Sweep { epoch: EPOCH, left: 1, ..Sweep::default() });
        assert_eq!(done, Verdict::Drop(Refusal::SweepDone));
        assert_eq!(rack.program.refusals().of(Refusal::SweepDone), 1);
    });
}
