//! One queue in a server: tasks and tokens meet in the order in which they came.

use sluice_switch::{Refusal, Verdict};
use sluice_wire::tables::{SliceRow, TableOp};
use sluice_wire::{Generation, Nanos, RejectReason, Sweep, SweepOf, WorkerId};

use crate::rack::{EPOCH, Rack, SLICE, dispatched, rejected};

#[test]
fn a_task_goes_to_the_worker_that_has_waited_for_longest_in_one_pass() {
    let mut rack = Rack::of("server", 3, 4);
    for worker in [2, 0, 1] {
        assert_eq!(rack.token(worker), Verdict::Parked);
    }
    let workers = [(); 3].map(|()| dispatched(rack.task()).worker.0);
    assert_eq!(workers, [2, 0, 1]);
}

#[test]
fn a_worker_gets_the_task_that_has_waited_for_longest_and_hears_how_long() {
    let mut rack = Rack::of("server", 2, 4);
    let first = rack.next();
    assert_eq!(rack.task(), Verdict::Parked);
    assert_eq!(rack.task(), Verdict::Parked);
    let dispatch = dispatched(rack.token(1));
    assert_eq!((dispatch.worker, dispatch.task.sequence, dispatch.occupancy), (WorkerId(1), first, 1));
    assert!(dispatch.wait_ns > 0);
}

#[test]
fn a_full_queue_says_so() {
    let mut rack = Rack::of("server", 1, 2);
    assert_eq!([rack.task(), rack.task()], [Verdict::Parked; 2]);
    assert_eq!(rejected(rack.task()), RejectReason::QueueFull);
}

#[test]
fn a_token_of_an_older_generation_gets_no_task() {
    let mut rack = Rack::of("server", 2, 4);
    assert_eq!([rack.token(0), rack.token(1)], [Verdict::Parked; 2]);
    rack.program.table(TableOp::RaiseGeneration(WorkerId(0), Generation(2)));
    assert_eq!(dispatched(rack.task()).worker, WorkerId(1));
    assert_eq!(rack.task(), Verdict::Parked);
}

#[test]
fn tasks_of_a_closed_slice_are_refused_one_a_sweep() {
    let mut rack = Rack::of("server", 1, 4);
    assert_eq!([rack.task(), rack.task()], [Verdict::Parked; 2]);
    let closed = SliceRow { open: false, limit: 4, retry_after: Nanos(500), ..SliceRow::default() };
    rack.program.table(TableOp::SetSlice(SLICE, closed));
    let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tasks, left: 1, carried: None };
    for _ in 0..2 {
        assert!(matches!(rack.control(sweep), Verdict::Swept { .. }));
    }
    assert_eq!(rack.control(sweep), Verdict::Drop(Refusal::SweepDone));
    assert_eq!((rack.state().tasks_in, rack.program.waiting()), (rack.state().tasks_out, 0));
}
