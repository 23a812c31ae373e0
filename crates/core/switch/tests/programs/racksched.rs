//! RackSched: the shorter of the sampled queues, as far as the switch knows.

use std::collections::BTreeMap;

use sluice_switch::{Refusal, Verdict};
use sluice_wire::tables::{TableOp, WorkerRow};
use sluice_wire::{Endpoint, Packet, RejectReason, Reply, SliceId, WorkerId};

use crate::rack::{CLIENT, EPOCH, Rack, START, at, circulating, dispatched, rejected, row};

/// A reply of this worker that says how many tasks it still holds.
fn reply(rack: &mut Rack, worker: u16, load: u32) -> Verdict {
    let reply = Reply { epoch: EPOCH, worker: WorkerId(worker), client: CLIENT, load, ..Reply::default() };
    rack.wire(at(100 + worker), Packet::Reply(reply))
}

fn forwarded(verdict: Verdict) -> Endpoint {
    match verdict {
        Verdict::Send { to, packet: Packet::Reply(_) } => to,
        other => panic!("not passed on: {other:?}"),
    }
}

/// How often each worker was chosen for a hundred tasks.
fn chosen(rack: &mut Rack) -> BTreeMap<u16, u32> {
    let mut found = BTreeMap::new();
    for _ in 0..50 {
        let verdict = rack.task();
        *found.entry(dispatched(rack.go_round(verdict)).worker.0).or_insert(0) += 1;
    }
    found
}

#[test]
fn the_shorter_of_two_reported_queues_gets_the_task() {
    let mut rack = Rack::of("racksched:2", 2, 16);
    assert_eq!(forwarded(reply(&mut rack, 0, 3)), at(200));
    assert_eq!(chosen(&mut rack), BTreeMap::from([(1, 50)]), "what was sent since is not seen");
    reply(&mut rack, 1, 4);
    assert_eq!(chosen(&mut rack), BTreeMap::from([(0, 50)]));
}

#[test]
fn two_samples_are_never_the_same_worker() {
    let mut rack = Rack::of("racksched:2", 8, 16);
    reply(&mut rack, 5, 1);
    let found = chosen(&mut rack);
    assert!(!found.contains_key(&5), "{found:?}");
    assert!(found.len() >= 6, "{found:?}");
}

#[test]
fn any_two_workers_may_be_compared() {
    let mut rack = Rack::of("racksched:2", 8, 16);
    // Worker 0 wins only if the other sample is worker 4.
    reply(&mut rack, 0, 1);
    reply(&mut rack, 4, 2);
    let found: Vec<_> = (0..8).map(|_| chosen(&mut rack)).collect();
    assert!(found.iter().any(|found| found.contains_key(&0)), "{found:?}");
    assert!(!found.iter().any(|found| found.contains_key(&4)), "{found:?}");
}

#[test]
fn a_load_goes_with_its_worker_and_ends_with_its_grants() {
    let mut rack = Rack::of("racksched:2", 3, 16);
    reply(&mut rack, 0, 5);
    reply(&mut rack, 2, 9);
    rack.program.table(TableOp::SetWorker(WorkerId(0), Some(row(0, 1, false))));
    assert_eq!(chosen(&mut rack), BTreeMap::from([(1, 50)]), "the last one took its seat, and kept its load");
    reply(&mut rack, 1, 3);
    rack.program.table(TableOp::ResetCounters(WorkerId(2), START));
    assert_eq!(chosen(&mut rack), BTreeMap::from([(2, 50)]));
}

#[test]
fn more_samples_than_workers_look_at_each_once() {
    let mut rack = Rack::of("racksched:8", 3, 16);
    reply(&mut rack, 0, 2);
    reply(&mut rack, 1, 1);
    assert_eq!(chosen(&mut rack), BTreeMap::from([(2, 50)]));
    let mut alone = Rack::of("racksched:2", 1, 16);
    assert_eq!(chosen(&mut alone), BTreeMap::from([(0, 50)]));
}

#[test]
fn a_tracked_task_goes_round_once_and_counts_itself() {
    let mut rack = Rack::of("racksched:2,tracked", 2, 16);
    for _ in 0..5 {
        let [first, second] = [0, 1].map(|_| {
            let task = circulating(rack.task());
            dispatched(rack.once_more(task))
        });
        assert_ne!(first.worker, second.worker, "the second sees the first");
        assert_eq!(first.occupancy, second.occupancy);
    }
}

#[test]
fn a_tracked_load_falls_when_the_reply_passes_whatever_it_says() {
    let mut rack = Rack::of("racksched:2,tracked", 2, 16);
    chosen(&mut rack);
    for _ in 0..10 {
        reply(&mut rack, 1, 99);
    }
    let found = chosen(&mut rack);
    assert_eq!(found[&1] - found[&0], 10, "{found:?}");
    (0..200).for_each(|_| _ = reply(&mut rack, 0, 0));
    reply(&mut rack, 1, 0);
    assert!(chosen(&mut rack)[&0] > 25, "a count ends at zero");
}

#[test]
fn two_tasks_that_go_round_at_once_may_choose_the_same_worker() {
    let mut rack = Rack::of("racksched:8,tracked", 8, 16);
    (0..8).filter(|worker| *worker != 3).for_each(|worker| {
        rack.program.table(TableOp::SetWorker(WorkerId(worker), Some(row(worker, 1, false))));
    });
    let [first, second] = [0, 1].map(|_| circulating(rack.task()));
    assert_eq!(first.memo, second.memo);
    assert_eq!(dispatched(rack.once_more(first)).occupancy, 0);
    assert_eq!(dispatched(rack.once_more(second)).occupancy, 1);
}

#[test]
fn a_worker_that_left_meanwhile_is_replaced() {
    let mut rack = Rack::of("racksched:2,tracked", 1, 16);
    let task = circulating(rack.task());
    rack.program.table(TableOp::SetWorker(WorkerId(0), Some(row(0, 1, false))));
    rack.admit(1, 1);
    let again = circulating(rack.once_more(task));
    assert_eq!(dispatched(rack.once_more(again)).worker, WorkerId(1));
    rack.program.table(TableOp::SetWorker(WorkerId(1), None));
    assert_eq!(rejected(rack.task()), RejectReason::NoWorkers);
}

#[test]
fn a_worker_that_moved_meanwhile_does_not_get_another_slices_task() {
    let mut rack = Rack::of("racksched:2,tracked", 1, 16);
    let task = circulating(rack.task());
    rack.admit(1, 1);
    let moved = WorkerRow { slice: SliceId(0), ..row(0, 2, true) };
    rack.program.table(TableOp::SetWorker(WorkerId(0), Some(moved)));
    let again = circulating(rack.once_more(task));
    assert_eq!(dispatched(rack.once_more(again)).worker, WorkerId(1));
}

#[test]
fn a_reply_of_another_life_passes_and_tells_nothing() {
    let mut rack = Rack::of("racksched:2", 2, 16);
    let reply = Reply { worker: WorkerId(0), client: CLIENT, load: 9, ..Reply::default() };
    assert_eq!(forwarded(rack.wire(at(100), Packet::Reply(reply))), at(200));
    assert_eq!(chosen(&mut rack).len(), 2);
}

#[test]
fn a_reply_from_elsewhere_or_to_nobody_is_dropped() {
    let mut rack = Rack::of("racksched:2", 2, 16);
    let real = Reply { epoch: EPOCH, worker: WorkerId(0), client: CLIENT, ..Reply::default() };
    for (from, reply, refusal) in [
        (at(101), real, Refusal::WrongAddress),
        (at(100), Reply { worker: WorkerId(7), ..real }, Refusal::UnknownSource),
        (at(100), Reply { client: sluice_wire::ClientId(3), ..real }, Refusal::UnknownSource),
    ] {
        assert_eq!(rack.wire(from, Packet::Reply(reply)), Verdict::Drop(refusal));
    }
}

#[test]
fn nobody_may_send_tokens() {
    let mut rack = Rack::of("racksched:2", 2, 16);
    assert_eq!(rack.token(0), Verdict::Drop(Refusal::Unexpected));
}

/// With three waiting and one in service a worker is at its bound; the switch counts what it sent.
#[test]
fn a_task_that_would_find_more_waiting_than_the_bound_is_refused() {
    let mut rack = Rack::of("racksched:2,tracked,bound=2", 2, 16);
    for _ in 0..8 {
        let verdict = rack.task();
        dispatched(rack.go_round(verdict));
    }
    let verdict = rack.task();
    assert_eq!(rejected(rack.go_round(verdict)), RejectReason::Busy, "three wait at each");
    reply(&mut rack, 1, 0);
    let verdict = rack.task();
    assert_eq!(dispatched(rack.go_round(verdict)).worker, WorkerId(1), "one of its four is done");
}
