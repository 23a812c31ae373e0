//! Pallas: weighted turns over a slice's workers.

use sluice_switch::{Refusal, Verdict};
use sluice_wire::tables::{TableOp, WorkerRow};
use sluice_wire::{Packet, RejectReason, Reply, SliceId, TaskType, WorkerId};

use crate::rack::{GET, Rack, START, at, dispatched, rejected, row, submit};

fn turns(rack: &mut Rack, tasks: usize) -> Vec<u16> {
    (0..tasks).map(|_| dispatched(rack.task()).worker.0).collect()
}

#[test]
fn workers_take_turns_whatever_they_hold() {
    let mut rack = Rack::of("pallas", 3, 1);
    assert_eq!(turns(&mut rack, 7), [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn weights_say_how_often_and_the_turns_are_spread() {
    let mut rack = Rack::of("pallas:weights=4/2/1", 3, 1);
    let round = turns(&mut rack, 7);
    assert_eq!(round, [0, 1, 0, 2, 0, 1, 0]);
    assert_eq!(turns(&mut rack, 7), round);
}

#[test]
fn a_worker_that_comes_or_goes_changes_the_schedule() {
    let mut rack = Rack::of("pallas", 3, 1);
    turns(&mut rack, 2);
    rack.program.table(TableOp::SetWorker(WorkerId(2), Some(row(2, 1, false))));
    assert_eq!(turns(&mut rack, 4), [0, 0, 1, 0], "a turn beyond the schedule is the first one's");
    rack.admit(2, 2);
    assert_eq!(turns(&mut rack, 3), [1, 2, 0]);
    for worker in 0..3 {
        rack.program.table(TableOp::SetWorker(WorkerId(worker), None));
    }
    assert_eq!(rejected(rack.task()), RejectReason::NoWorkers);
}

#[test]
fn each_type_has_workers_of_its_own() {
    let mut rack = Rack::of("pallas", 4, 1);
    let other = SliceId(0);
    for worker in [2, 3] {
        let row = WorkerRow { slice: other, ..row(worker, 1, true) };
        rack.program.table(TableOp::SetWorker(WorkerId(worker), Some(row)));
    }
    rack.open(other);
    rack.program.table(TableOp::SetType(TaskType(2), Some(other)));
    for step in 0..4_u32 {
        let task_type = if step.is_multiple_of(2) { GET } else { TaskType(2) };
        let task = sluice_wire::Submit { task_type, ..submit(START.plus(step)) };
        let dispatch = dispatched(rack.wire(at(200), Packet::Submit(task)));
        assert_eq!(dispatch.worker.0 >= 2, task_type == TaskType(2));
    }
}

#[test]
fn pushed_tasks_are_numbered_and_tell_the_start_as_seen() {
    let mut rack = Rack::of("pallas", 1, 1);
    for number in 1..4 {
        let dispatch = dispatched(rack.task());
        assert_eq!((dispatch.sent, dispatch.seen, dispatch.occupancy), (START.plus(number), START, 0));
    }
}

#[test]
fn a_new_generation_tells_its_own_start_as_seen() {
    let mut rack = Rack::of("pallas", 1, 1);
    rack.task();
    let start = START.plus(100);
    rack.program.table(TableOp::ResetCounters(WorkerId(0), start));
    let dispatch = dispatched(rack.task());
    assert_eq!((dispatch.sent, dispatch.seen), (start.plus(1), start));
}

#[test]
fn neither_tokens_nor_replies_belong_here() {
    let mut rack = Rack::of("pallas", 1, 1);
    assert_eq!(rack.token(0), Verdict::Drop(Refusal::Unexpected));
    let reply = rack.wire(at(100), Packet::Reply(Reply::default()));
    assert_eq!(reply, Verdict::Drop(Refusal::Unexpected));
    assert_eq!(rack.program.refusals().of(Refusal::Unexpected), 2);
}
