//! Horus: idle workers first, then the shorter of two queues.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sluice_switch::{Circulating, Refusal, Verdict};
use sluice_wire::tables::{TableOp, WorkerRow};
use sluice_wire::{Dispatch, Packet, RejectReason, Reply, SliceId, WorkerId};

use crate::rack::{CLIENT, EPOCH, Rack, START, at, circulating, dispatched, rejected, row};

/// A reply of this worker that says how many tasks it still holds; it has to reach its client.
fn reply(rack: &mut Rack, worker: u16, load: u32) {
    let reply = Reply { epoch: EPOCH, worker: WorkerId(worker), client: CLIENT, load, ..Reply::default() };
    let passed = rack.wire(at(100 + worker), Packet::Reply(reply));
    assert!(matches!(passed, Verdict::Send { to, packet: Packet::Reply(_) } if to == at(200)), "{passed:?}");
}

/// Dispatches the next task, however often it recirculates.
fn next(rack: &mut Rack) -> Dispatch {
    let verdict = rack.task();
    dispatched(rack.go_round(verdict))
}

fn next_workers(rack: &mut Rack, tasks: u32) -> Vec<u16> {
    (0..tasks).map(|_| next(rack).worker.0).collect()
}

/// A rack whose workers all have a task, and told these loads.
fn busy(horus: &str, loads: &[u32]) -> Rack {
    let mut rack = Rack::of(horus, loads.len() as u16, 16);
    next_workers(&mut rack, loads.len() as u32);
    loads.iter().zip(0..).for_each(|(load, worker)| reply(&mut rack, worker, *load));
    rack
}

fn close(rack: &mut Rack, worker: u16) {
    rack.program.table(TableOp::SetWorker(WorkerId(worker), Some(row(worker, 1, false))));
}

fn counts(workers: &[u16]) -> BTreeMap<u16, u32> {
    let mut counts = BTreeMap::new();
    for worker in workers {
        *counts.entry(*worker).or_insert(0) += 1;
    }
    counts
}

#[test]
fn whoever_is_idle_gets_the_task_the_newest_first() {
    let mut rack = Rack::of("horus", 4, 16);
    assert_eq!(next_workers(&mut rack, 4), [3, 2, 1, 0], "all came in idle");
    reply(&mut rack, 2, 0);
    reply(&mut rack, 0, 0);
    reply(&mut rack, 1, 1);
    assert_eq!(next_workers(&mut rack, 2), [0, 2]);
}

#[test]
fn a_task_for_an_idle_worker_takes_one_pass() {
    let mut rack = Rack::of("horus", 2, 16);
    assert_eq!(dispatched(rack.task()).occupancy, 0);
    assert_eq!(dispatched(rack.task()).occupancy, 0);
}

#[test]
fn without_idle_workers_the_shorter_of_two_queues_gets_it() {
    let mut rack = busy("horus", &[1, 9]);
    assert_eq!(next_workers(&mut rack, 8), [0; 8], "what was sent since is seen");
    let found = counts(&next_workers(&mut rack, 20));
    assert_eq!(found, BTreeMap::from([(0, 10), (1, 10)]));
}

#[test]
fn a_task_goes_round_only_where_a_drift_exceeds_the_difference() {
    let mut rack = busy("horus", &[1, 3]);
    for queue in 1..4 {
        assert_eq!(dispatched(rack.task()).occupancy, queue);
    }
    let task = circulating(rack.task());
    let second = dispatched(rack.once_more(task));
    assert_eq!((second.worker, second.occupancy), (WorkerId(1), 3), "4 before the one, 3 before the other");
}

#[test]
fn any_two_workers_may_be_compared_and_never_one_with_itself() {
    let mut rack = busy("horus", &[9, 9, 9, 9, 9, 9, 9, 1]);
    let mut chosen = |of_last: u32| {
        let worker = next(&mut rack).worker.0;
        (0..7).for_each(|worker| reply(&mut rack, worker, 9));
        reply(&mut rack, 7, of_last);
        worker
    };
    assert!((0..100).any(|_| chosen(1) == 7), "some task finds the shortest");
    chosen(99);
    let chosen: BTreeSet<u16> = (0..200).map(|_| chosen(99)).collect();
    assert_eq!(chosen, (0..7).collect());
}

#[test]
fn a_reply_takes_the_place_of_what_was_counted() {
    let mut rack = busy("horus", &[1, 5]);
    next_workers(&mut rack, 3);
    reply(&mut rack, 0, 1);
    assert_eq!(next_workers(&mut rack, 4), [0; 4]);
}

/// Whether an idle worker's task counts decides when the next task has to look twice.
#[test]
fn an_idle_workers_task_counts_unless_the_algorithm_is_read_to_the_letter() {
    for (horus, goes_round) in [("horus", true), ("horus:idle=uncounted", false)] {
        let mut rack = Rack::of(horus, 2, 16);
        next_workers(&mut rack, 2);
        assert_eq!(matches!(rack.task(), Verdict::Again(_)), goes_round, "{horus}");
    }
}

#[test]
fn a_load_that_is_written_anew_clears_the_drift() {
    for (horus, rounds) in [("horus", 5), ("horus:resubmit=writes", 3)] {
        let mut rack = Rack::of(horus, 2, 16);
        next_workers(&mut rack, 2);
        let mut went_round = 0;
        for _ in 0..6 {
            let verdict = rack.task();
            went_round += u32::from(matches!(verdict, Verdict::Again(_)));
            dispatched(rack.go_round(verdict));
        }
        assert_eq!(went_round, rounds, "{horus}");
    }
}

#[test]
fn who_leaves_is_not_chosen_and_who_comes_back_is_idle() {
    let mut rack = Rack::of("horus", 3, 16);
    close(&mut rack, 1);
    assert_eq!(next_workers(&mut rack, 2), [2, 0]);
    assert!(!next_workers(&mut rack, 20).contains(&1));
    rack.admit(1, 2);
    assert_eq!(dispatched(rack.task()).worker, WorkerId(1));
}

/// A busy worker is removed. As printed, another worker leaves the list with it, and is not known as idle
/// any more.
#[test]
fn a_busy_worker_that_leaves_takes_an_idle_one_with_it_only_as_printed() {
    for (horus, chosen) in [("horus", [1, 0]), ("horus:as-published", [1, 1])] {
        let mut rack = Rack::of(horus, 3, 16);
        assert_eq!(next(&mut rack).worker, WorkerId(2));
        // Worker 0 is listed as idle; its load would not win the comparison.
        reply(&mut rack, 0, 5);
        close(&mut rack, 2);
        assert_eq!(next_workers(&mut rack, 2), chosen, "{horus}");
    }
}

/// A reply is repeated. As printed, its worker is listed twice, and gets two tasks while others are idle.
#[test]
fn a_repeated_reply_lists_its_worker_once_and_costs_a_pass_and_twice_as_printed() {
    for (horus, goes_round, second) in [("horus", true, 0), ("horus:as-published", false, 1)] {
        let mut rack = Rack::of(horus, 2, 16);
        assert_eq!(next_workers(&mut rack, 1), [1]);
        (0..2).for_each(|_| reply(&mut rack, 1, 0));
        let first = rack.task();
        assert_eq!(matches!(first, Verdict::Again(_)), goes_round, "{horus}");
        assert_eq!(dispatched(rack.go_round(first)).worker, WorkerId(1), "{horus}");
        assert_eq!(dispatched(rack.task()).worker, WorkerId(second), "{horus}");
    }
}

#[test]
fn an_idle_worker_whose_reply_is_lost_comes_back_with_its_next_one() {
    let mut rack = Rack::of("horus", 2, 16);
    next_workers(&mut rack, 2);
    reply(&mut rack, 0, 0);
    // Worker 1's reply is lost: worker 0 gets all tasks, as it is idle again before each.
    for _ in 0..5 {
        assert_eq!(next(&mut rack).worker, WorkerId(0));
        reply(&mut rack, 0, 0);
    }
    next(&mut rack);
    let found = counts(&next_workers(&mut rack, 4));
    assert!(found.contains_key(&1), "nobody is known as idle: {found:?}");
    reply(&mut rack, 1, 0);
    assert_eq!(dispatched(rack.task()).worker, WorkerId(1));
}

#[test]
fn a_worker_that_left_or_moved_meanwhile_is_replaced() {
    for moves in [false, true] {
        let mut rack = Rack::of("horus", 1, 16);
        next(&mut rack);
        let task: Circulating = circulating(rack.task());
        if moves {
            let moved = WorkerRow { slice: SliceId(0), ..row(0, 2, true) };
            rack.program.table(TableOp::SetWorker(WorkerId(0), Some(moved)));
        } else {
            close(&mut rack, 0);
        }
        rack.admit(1, 1);
        assert_eq!(dispatched(rack.once_more(task)).worker, WorkerId(1), "it is idle");
        rack.program.table(TableOp::SetWorker(WorkerId(1), None));
        assert_eq!(rejected(rack.task()), RejectReason::NoWorkers);
        assert_eq!(rejected(rack.once_more(task)), RejectReason::NoWorkers);
    }
}

#[test]
fn a_generation_begins_with_nothing_before_it() {
    let mut rack = busy("horus", &[9, 9]);
    rack.program.table(TableOp::ResetCounters(WorkerId(1), START));
    assert_eq!(next_workers(&mut rack, 9), [1; 9]);
}

#[test]
fn a_reply_of_another_life_tells_nothing_and_one_from_elsewhere_is_dropped() {
    let mut rack = busy("horus", &[1, 1]);
    let old = Reply { worker: WorkerId(0), client: CLIENT, ..Reply::default() };
    assert!(matches!(rack.wire(at(100), Packet::Reply(old)), Verdict::Send { .. }));
    assert_eq!(dispatched(rack.task()).occupancy, 1, "nobody is idle");
    let real = Reply { epoch: EPOCH, ..old };
    assert_eq!(rack.wire(at(101), Packet::Reply(real)), Verdict::Drop(Refusal::WrongAddress));
}

#[test]
fn nobody_may_send_tokens() {
    let mut rack = Rack::of("horus", 2, 16);
    assert_eq!(rack.token(0), Verdict::Drop(Refusal::Unexpected));
}

/// Passes that 10,000 tasks and their REPLYs take. Each of eight workers has `each` tasks before it, and
/// the oldest task ends when a new one comes.
fn passes(policy: &str, each: usize) -> u32 {
    let mut rack = Rack::of(policy, 8, 16);
    let (mut outstanding, mut held) = (VecDeque::new(), [0; 8]);
    let (mut passes, fill, times) = (0, 8 * each, 10_000);
    for turn in 0..fill + times {
        let mut verdict = rack.task();
        let mut of_this = 1;
        while let Verdict::Again(circulating) = verdict {
            verdict = rack.once_more(circulating);
            of_this += 1;
        }
        let worker = dispatched(verdict).worker.0;
        held[usize::from(worker)] += 1;
        outstanding.push_back(worker);
        if turn >= fill {
            let ended = outstanding.pop_front().unwrap();
            held[usize::from(ended)] -= 1;
            reply(&mut rack, ended, held[usize::from(ended)]);
            passes += of_this + 1;
        }
    }
    passes
}

#[test]
fn two_passes_are_enough_while_somebody_is_idle_and_some_tasks_take_a_third_when_nobody_is() {
    assert_eq!(passes("horus", 0), 20_000);
    assert_eq!(passes("racksched:2", 4), 20_000);
    let busy = passes("horus", 4);
    assert!((22_000..23_500).contains(&busy), "{busy}");
}
