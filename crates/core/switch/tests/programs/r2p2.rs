//! R2P2: tasks recirculate until a worker is below their target.

use std::collections::{BTreeMap, BTreeSet};

use sluice_switch::{Cargo, Refusal, Verdict};
use sluice_wire::tables::{SliceRow, TableOp, WorkerRow};
use sluice_wire::{Nanos, Packet, RejectReason, SliceId, Submit, TaskType, WorkerId};

use crate::rack::{GET, Rack, SLICE, START, at, circulating, dispatched, rejected, row, submit, token};

/// A rack with all workers idle; each has sent as many tokens as its queue may hold.
fn idle(choice: &str, workers: u16, depth: u32) -> Rack {
    let mut rack = Rack::of(choice, workers, 16);
    for _ in 0..depth {
        (0..workers).for_each(|worker| assert_eq!(rack.token(worker), Verdict::Parked));
    }
    rack
}

#[test]
fn a_task_finds_an_idle_worker_in_its_first_pass_and_the_next_starts_four_further() {
    let mut rack = idle("r2p2:1", 8, 1);
    for worker in [0, 4, 1, 5, 2, 6, 3, 7] {
        assert_eq!(dispatched(rack.task()).worker, WorkerId(worker));
    }
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn no_worker_gets_a_second_task_before_a_full_round_found_no_idle_one() {
    let mut rack = idle("r2p2:2", 8, 2);
    (0..8).for_each(|_| _ = dispatched(rack.task()));
    assert_eq!(rack.token(5), Verdict::Parked);
    let task = circulating(rack.task());
    assert_eq!(dispatched(rack.once_more(task)).worker, WorkerId(5), "the only idle one, a pass later");
    let task = circulating(rack.task());
    let task = circulating(rack.once_more(task));
    let dispatch = dispatched(rack.once_more(task));
    assert_eq!(dispatch.worker, WorkerId(4), "two passes are a round: the target is two now");
    assert_eq!(dispatch.wait_ns, 3_200);
}

#[test]
fn a_task_that_finds_no_room_goes_round_until_a_report_comes() {
    let mut rack = idle("r2p2:1", 4, 1);
    (0..4).for_each(|_| _ = dispatched(rack.task()));
    let mut task = circulating(rack.task());
    for _ in 0..1_000 {
        task = circulating(rack.once_more(task));
    }
    assert_eq!(rack.state().balance, -1);
    assert_eq!(rack.token(2), Verdict::Parked);
    assert_eq!(dispatched(rack.once_more(task)).worker, WorkerId(2));
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn a_later_task_overtakes_one_that_goes_round() {
    let mut rack = idle("r2p2:1", 8, 1);
    (0..8).for_each(|_| _ = dispatched(rack.task()));
    let first = circulating(rack.task());
    assert_eq!(rack.token(5), Verdict::Parked);
    let second = dispatched(rack.task());
    assert_eq!((second.worker, second.task.sequence), (WorkerId(5), START.plus(9)));
    circulating(rack.once_more(first));
}

#[test]
fn a_group_that_the_list_cuts_short_is_looked_at_in_one_pass() {
    let mut rack = idle("r2p2:1", 6, 1);
    let mut found = BTreeMap::new();
    for _ in 0..6 {
        let verdict = rack.task();
        *found.entry(dispatched(rack.go_round(verdict)).worker).or_insert(0) += 1;
    }
    assert_eq!(found.len(), 6, "{found:?}");
}

#[test]
fn any_step_and_sample_finds_every_worker() {
    for choice in ["r2p2:1,sample=1,step=1", "r2p2:1,sample=3,step=2", "r2p2:1,sample=8,step=255"] {
        let mut rack = idle(choice, 7, 1);
        let mut found = BTreeMap::new();
        for _ in 0..7 {
            let verdict = rack.task();
            *found.entry(dispatched(rack.go_round(verdict)).worker).or_insert(0) += 1;
        }
        assert_eq!(found.len(), 7, "{choice}: {found:?}");
    }
}

#[test]
fn a_target_may_rise_before_all_workers_were_looked_at() {
    for (choice, turns) in [("r2p2:2,sample=2", 3), ("r2p2:2,sample=2,rise=2", 1)] {
        let mut rack = idle(choice, 6, 2);
        (0..6).for_each(|_| {
            let verdict = rack.task();
            dispatched(rack.go_round(verdict));
        });
        let mut verdict = rack.task();
        for _ in 0..turns {
            let task = circulating(verdict);
            verdict = rack.once_more(task);
        }
        dispatched(verdict);
    }
}

#[test]
fn more_tasks_than_the_limit_do_not_go_round() {
    let mut rack = Rack::of("r2p2:1", 1, 2);
    let [first, second] = [0, 1].map(|_| circulating(rack.task()));
    assert_eq!(rejected(rack.task()), RejectReason::QueueFull);
    rack.token(0);
    assert_eq!(dispatched(rack.once_more(second)).occupancy, 1);
    let third = circulating(rack.task());
    rack.token(0);
    assert_eq!(dispatched(rack.once_more(first)).worker, WorkerId(0));
    assert!(matches!(third.cargo, Cargo::Task(_)));
    assert_eq!(rack.state().balance, -1);
}

#[test]
fn tasks_of_a_closed_slice_reject_themselves() {
    let mut rack = Rack::of("r2p2:1", 1, 2);
    let task = circulating(rack.task());
    rack.program.table(TableOp::SetSlice(
        SLICE,
        SliceRow { open: false, limit: 2, retry_after: Nanos(500), ..SliceRow::default() },
    ));
    assert_eq!(rejected(rack.once_more(task)), RejectReason::NoWorkers);
    assert_eq!(rack.state().balance, 0);
    assert_eq!(rejected(rack.task()), RejectReason::NoWorkers);
}

#[test]
fn a_worker_that_leaves_takes_its_tokens_along_and_the_others_keep_theirs() {
    let mut rack = idle("r2p2:2", 3, 2);
    rack.program.table(TableOp::SetWorker(WorkerId(0), Some(row(0, 1, false))));
    assert_eq!(rack.state().balance, 4);
    let mut found = BTreeMap::new();
    for _ in 0..4 {
        let verdict = rack.task();
        *found.entry(dispatched(rack.go_round(verdict)).worker).or_insert(0) += 1;
    }
    assert_eq!(found, BTreeMap::from([(WorkerId(1), 2), (WorkerId(2), 2)]));
    rack.admit(0, 2);
    assert_eq!(rack.state().balance, 0, "the new generation sends tokens of its own");
    assert_eq!(rack.token(0), Verdict::Parked);
    rack.program.table(TableOp::ResetCounters(WorkerId(0), START));
    assert_eq!(rack.state().balance, 0, "and so do counters that start anew");
}

#[test]
fn slices_beside_each_other_have_tokens_of_their_own() {
    let mut rack = Rack::of("r2p2:1,sample=2", 8, 16);
    let other = SliceId(0);
    rack.open(other);
    rack.program.table(TableOp::SetType(TaskType(2), Some(other)));
    for worker in 4..8 {
        let row = WorkerRow { slice: other, ..row(worker, 1, true) };
        rack.program.table(TableOp::SetWorker(WorkerId(worker), Some(row)));
    }
    (0..8).for_each(|worker| assert_eq!(rack.token(worker), Verdict::Parked));
    let task_of = |rack: &mut Rack, number, task_type| {
        let task = Submit { task_type, ..submit(START.plus(number)) };
        rack.wire(at(200), Packet::Submit(task))
    };
    for (first, task_type, workers) in [(0, GET, 0..4), (8, TaskType(2), 4..8)] {
        let found: BTreeSet<u16> = (first..first + 4)
            .map(|number| {
                let verdict = task_of(&mut rack, number, task_type);
                dispatched(rack.go_round(verdict)).worker.0
            })
            .collect();
        assert_eq!(found, workers.collect());
        circulating(task_of(&mut rack, first + 4, task_type));
    }
}

#[test]
fn a_repeated_report_counts_once() {
    let mut rack = Rack::of("r2p2:2", 1, 2);
    assert_eq!(rack.token(0), Verdict::Parked);
    rack.wire(at(100), Packet::Token(token(0, START.plus(1))));
    assert_eq!(rack.program.refusals().of(Refusal::RepeatedToken), 1);
    assert_eq!(rack.state().balance, 1);
}

#[test]
fn a_worker_takes_as_many_tasks_as_the_bound_says_also_beyond_eight() {
    for bound in [3_u32, 5, 9] {
        let mut rack = idle(&format!("r2p2:{bound}"), 2, bound);
        let mut given = BTreeMap::new();
        for _ in 0..2 * bound {
            let mut verdict = rack.task();
            while let Verdict::Again(round) = verdict {
                verdict = rack.once_more(round);
            }
            *given.entry(dispatched(verdict).worker).or_insert(0) += 1;
        }
        assert_eq!(given, BTreeMap::from([(WorkerId(0), bound), (WorkerId(1), bound)]));
        let task = circulating(rack.task());
        assert!(matches!(rack.once_more(task), Verdict::Again(_)), "both are full");
    }
}
