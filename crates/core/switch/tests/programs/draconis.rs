//! Draconis: pointers that run ahead, and the packets that fix them.

use sluice_switch::{Cargo, Circulating, Refusal, Verdict};
use sluice_wire::tables::{SliceRow, TableOp};
use sluice_wire::{
    Empty, Generation, Handle, Nanos, Packet, Payload, Place, RejectReason, Serial, Submit, Sweep, SweepOf,
    WorkerId,
};

use crate::rack::{EPOCH, Rack, SLICE, START, at, circulating, dispatched, rejected, submit};

fn rack(limit: u32) -> Rack {
    Rack::of("draconis", 4, limit)
}

fn empty(verdict: Verdict) -> Empty {
    match verdict {
        Verdict::Send { packet: Packet::Empty(empty), .. } => empty,
        other => panic!("not empty: {other:?}"),
    }
}

/// The fix packet that an add sends when it finds the retrieve pointer ahead.
fn fix(verdict: Verdict) -> Circulating {
    let fix = circulating(verdict);
    assert_eq!(fix.cargo, Cargo::Note);
    fix
}

fn land(rack: &mut Rack, fix: Circulating) {
    assert_eq!(rack.once_more(fix), Verdict::Drop(Refusal::FixDone));
}

#[test]
fn tasks_leave_in_the_order_in_which_they_came() {
    let mut rack = rack(16);
    for lap in 0..50 {
        (0..7).for_each(|_| assert_eq!(rack.task(), Verdict::Parked));
        for step in 0..7 {
            let dispatch = dispatched(rack.token((step % 4) as u16));
            assert_eq!(dispatch.task.sequence, START.plus(lap * 7 + step));
            assert_eq!(u32::from(dispatch.occupancy), 6 - step);
        }
    }
}

#[test]
fn how_many_came_and_left_is_counted_and_what_waits_is_between() {
    let mut rack = rack(16);
    (0..3).for_each(|_| assert_eq!(rack.task(), Verdict::Parked));
    dispatched(rack.token(0));
    let state = rack.state();
    assert_eq!(
        (state.tasks_in.0[0], state.tasks_out.0[0], state.balance),
        (START.plus(3), START.plus(1), -2)
    );
}

#[test]
fn a_large_tasks_bytes_stay_with_its_client_whether_there_are_servers_or_not() {
    let payload = Payload { len: 100, handle: Handle(5), ..Payload::EMPTY };
    for mut rack in [rack(16), Rack::with_servers("draconis", 4)] {
        let large = Submit { payload, ..submit(START) };
        assert_eq!(rack.wire(at(200), Packet::Submit(large)), Verdict::Parked);
        let dispatch = dispatched(rack.token(0));
        assert_eq!((dispatch.place, dispatch.payload.handle), (Place::AtClient, Handle::NONE));
    }
}

#[test]
fn an_empty_answer_spends_the_token_and_its_number() {
    let mut rack = rack(16);
    let first = empty(rack.token(1));
    assert_eq!((first.worker, first.epoch, first.generation), (WorkerId(1), EPOCH, Generation(1)));
    assert_eq!((first.sent, first.seen), (START.plus(1), START.plus(1)));
    let second = empty(rack.token(1));
    assert_eq!((second.sent, second.seen), (START.plus(2), START.plus(2)));
}

#[test]
fn an_empty_retrieve_leaves_its_pointer_ahead_and_the_next_add_sends_the_fix() {
    let mut rack = rack(16);
    empty(rack.token(0));
    let fix = fix(rack.task());
    assert_eq!(rack.state().balance, -1, "the task waits");
    land(&mut rack, fix);
    assert_eq!(dispatched(rack.token(1)).task.sequence, START);
}

#[test]
fn retrieves_fail_until_the_fix_lands_whatever_waits() {
    let mut rack = rack(16);
    empty(rack.token(0));
    let fix = fix(rack.task());
    assert_eq!(rack.task(), Verdict::Parked, "one fix is enough");
    (0..3).for_each(|worker| _ = empty(rack.token(worker)));
    land(&mut rack, fix);
    assert_eq!(dispatched(rack.token(0)).task.sequence, START);
    assert_eq!(dispatched(rack.token(1)).task.sequence, START.plus(1));
    empty(rack.token(2));
}

#[test]
fn two_retrieves_between_are_fixed_by_one_packet() {
    let mut rack = rack(16);
    (0..2).for_each(|worker| _ = empty(rack.token(worker)));
    let fix = fix(rack.task());
    land(&mut rack, fix);
    assert_eq!(rack.task(), Verdict::Parked);
    assert_eq!(dispatched(rack.token(2)).task.sequence, START);
    assert_eq!(dispatched(rack.token(3)).task.sequence, START.plus(1));
}

#[test]
fn a_full_queue_takes_its_add_pointer_back_and_adds_fail_until_then() {
    let mut rack = rack(2);
    (0..2).for_each(|_| assert_eq!(rack.task(), Verdict::Parked));
    let back = circulating(rack.task());
    assert!(matches!(back.cargo, Cargo::Task(_)));
    assert_eq!(dispatched(rack.token(0)).task.sequence, START);
    assert_eq!(
        rejected(rack.task()),
        RejectReason::QueueFull,
        "there is room, but the pointer is not right yet"
    );
    assert_eq!(rejected(rack.once_more(back)), RejectReason::QueueFull);
    assert_eq!(rack.task(), Verdict::Parked);
    assert_eq!(dispatched(rack.token(0)).task.sequence, START.plus(1));
    assert_eq!(dispatched(rack.token(0)).task.sequence, START.plus(4));
    empty(rack.token(0));
}

#[test]
fn a_retrieve_of_a_place_that_a_failed_add_left_finds_nothing() {
    let mut rack = rack(1);
    assert_eq!(rack.task(), Verdict::Parked);
    let back = circulating(rack.task());
    dispatched(rack.token(0));
    empty(rack.token(1));
    rejected(rack.once_more(back));
    let fix = fix(rack.task());
    land(&mut rack, fix);
    assert_eq!(dispatched(rack.token(2)).task.sequence, START.plus(2));
}

#[test]
fn adds_during_a_fix_do_not_overrun_the_queue() {
    let mut rack = rack(3);
    (0..4).for_each(|worker| _ = empty(rack.token(worker)));
    let fix = fix(rack.task());
    (0..2).for_each(|_| assert_eq!(rack.task(), Verdict::Parked));
    (0..2).for_each(|_| assert_eq!(rejected(rack.task()), RejectReason::QueueFull));
    land(&mut rack, fix);
    for step in 0..3 {
        assert_eq!(dispatched(rack.token(0)).task.sequence, START.plus(step));
    }
    empty(rack.token(0));
}

#[test]
fn tasks_of_a_closed_slice_are_swept_out() {
    let mut rack = rack(4);
    (0..2).for_each(|_| assert_eq!(rack.task(), Verdict::Parked));
    let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tasks, left: 1, carried: None };
    assert_eq!(rack.control(sweep), Verdict::Drop(Refusal::SweepDone), "it is open");
    rack.program.table(TableOp::SetSlice(
        SLICE,
        SliceRow { open: false, limit: 4, retry_after: Nanos(500), ..SliceRow::default() },
    ));
    for _ in 0..2 {
        assert_eq!(rejected(rack.control(sweep)), RejectReason::NoWorkers);
    }
    assert_eq!(rack.control(sweep), Verdict::Drop(Refusal::SweepDone));
    assert_eq!((rack.state().balance, rack.program.waiting()), (0, 0));
}

#[test]
fn a_token_says_once_that_nothing_waits() {
    let mut rack = rack(4);
    let first = empty(rack.token(0));
    let again = rack.wire(at(100), Packet::Token(crate::rack::token(0, first.seen)));
    let Verdict::Send { packet: Packet::Answer(answer), .. } = again else { panic!("{again:?}") };
    let counters = answer.counters.map(|counters| (counters.seen, counters.sent));
    assert_eq!(counters, Some((Serial(first.seen.0), Serial(first.sent.0))));
}

/// So many polls without a task leave the pointer ahead; the next poll puts it right.
const AHEAD_MAX: u32 = 1 << 16;

#[test]
fn a_pointer_that_polls_alone_move_on_stays_near_the_tasks_however_long_a_queue_is_idle() {
    for (program, queues) in [("draconis", 1), ("draconis:classes=4", 4), ("draconis:labels", 1)] {
        let mut rack = Rack::of(program, 4, 16);
        let mut rounds = 0;
        for poll in 0..3 * AHEAD_MAX + 3 {
            let mut verdict = rack.token((poll % 4) as u16);
            while let Verdict::Again(round) = verdict {
                (verdict, rounds) = (rack.once_more(round), rounds + 1);
            }
            empty(verdict);
            let ahead = rack.state().tasks_out.0.map(|out| out.since(START));
            assert!(program == "draconis:labels" || ahead.iter().all(|ahead| *ahead <= AHEAD_MAX as i32 + 1));
        }
        let fixes = rounds - (3 * AHEAD_MAX + 3) * (queues - 1);
        assert!(fixes >= 2 * queues && fixes <= 3 * queues, "{program}: {fixes} of {queues}");
    }
}

#[test]
fn tasks_that_come_before_and_after_a_pointer_was_put_back_leave_in_their_order() {
    for program in ["draconis", "draconis:classes=4", "draconis:labels", "draconis:jobs=5"] {
        for polls in [0, 1, AHEAD_MAX - 9, AHEAD_MAX - 8, AHEAD_MAX - 1, AHEAD_MAX, AHEAD_MAX + 8] {
            let mut rack = Rack::polled(program, 4, 16, polls);
            for worker in [0, 1, 2, 3, 0, 1, 2, 3] {
                let verdict = rack.token(worker);
                empty(rack.go_round(verdict));
            }
            for _ in 0..5 {
                let verdict = rack.task();
                let ends = rack.go_round(verdict);
                assert!(matches!(ends, Verdict::Parked | Verdict::Drop(Refusal::FixDone)), "{ends:?}");
            }
            for task in 0..5 {
                let verdict = rack.token(task as u16 % 4);
                let dispatch = dispatched(rack.go_round(verdict));
                assert_eq!(dispatch.task.sequence, START.plus(task), "{program} after {polls}");
            }
        }
    }
}

#[test]
fn a_task_that_comes_while_a_pointer_is_being_put_back_is_not_lost() {
    for program in ["draconis", "draconis:classes=2", "draconis:labels"] {
        let mut rack = Rack::polled(program, 4, 16, AHEAD_MAX);
        let turning = circulating(rack.token(0));
        assert_eq!(rack.task(), Verdict::Parked, "the fix is on its way already");
        let other = rack.token(1);
        empty(rack.go_round(other));
        empty(rack.go_round(Verdict::Again(turning)));
        assert_eq!(dispatched(rack.token(1)).task.sequence, START);
        assert_eq!(rack.state().balance, 0);
    }
}

#[test]
fn a_poll_that_puts_a_pointer_back_and_whose_worker_left_meanwhile_is_not_answered() {
    let mut rack = Rack::polled("draconis", 4, 16, AHEAD_MAX);
    let turning = circulating(rack.token(0));
    rack.admit(0, 2);
    assert_eq!(rack.once_more(turning), Verdict::Drop(Refusal::FixDone));
    assert_eq!(rack.task(), Verdict::Parked);
    assert_eq!(dispatched(rack.token(1)).task.sequence, START);
}

/// As published, nothing bounds how far the pointer runs.
#[test]
fn as_published_a_pointer_runs_ahead_without_bound() {
    let mut rack = Rack::polled("draconis:as-published", 4, 16, AHEAD_MAX);
    empty(rack.token(0));
}

#[test]
fn a_sweep_in_a_closed_slice_whose_pointer_ran_ahead_puts_it_right() {
    for (program, queues) in [("draconis", 1), ("draconis:classes=2", 2)] {
        let mut rack = Rack::polled(program, 4, 16, AHEAD_MAX);
        let row = rack.state().row;
        rack.set_slice(SliceRow { open: false, ..row });
        let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tasks, left: 1, carried: None };
        let mut sweep = || {
            let verdict = rack.control(sweep);
            rack.go_round(verdict)
        };
        (0..queues).for_each(|_| assert_eq!(sweep(), Verdict::Drop(Refusal::FixDone), "{program}"));
        assert_eq!(sweep(), Verdict::Drop(Refusal::SweepDone), "{program}");
    }
}
