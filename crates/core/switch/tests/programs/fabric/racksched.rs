//! RackSched as spine and as leaf (RS-H, RS-LB): a leaf tells its mean with every reply, and a spine sends
//! each task to the lesser of two racks.

use sluice_switch::racksched::RackSched;
use sluice_wire::{Epoch, MeanQueue, RejectReason};

use super::*;

/// The epoch of a spine, which differs from every leaf's.
const LATER: Epoch = Epoch(EPOCH.0 + 5);

fn spine(samples: u8, leaves: u16) -> RackSched {
    above(leaves, RackSched::spine(samples, config()))
}

/// A spine above leaves that have told nothing yet.
fn above(leaves: u16, mut spine: RackSched) -> RackSched {
    open(&mut spine);
    for leaf in 0..leaves {
        let row = WorkerRow {
            at: leaf_at(leaf),
            generation: GENERATION,
            open: true,
            slice: SLICE,
            ..WorkerRow::default()
        };
        spine.table(TableOp::SetWorker(WorkerId(leaf), Some(row)));
    }
    spine
}

fn leaf(workers: u16) -> RackSched {
    let mut leaf = RackSched::in_fabric(2, config(), 4);
    open(&mut leaf);
    leaf.set_spine(SPINE, Some((link(0), START))).expect("room for it");
    leaf.link(SLICE, Some(SPINE)).expect("a spine that it knows");
    for worker in 0..workers {
        let row = WorkerRow { at: worker_at(0, worker), ..crate::rack::row(worker, 1, true) };
        leaf.table(TableOp::SetWorker(WorkerId(worker), Some(row)));
    }
    leaf
}

fn says(spine: &mut RackSched, leaf: u16, generation: Generation, mean: u32) -> Verdict {
    let news = RackNews::Load(MeanQueue(mean));
    let told = Update { epoch: EPOCH, leaf: WorkerId(leaf), generation, pool: SLICE, news };
    spine.pass(Nanos(0), update_from(leaf_at(leaf), told))
}

fn sent(spine: &mut RackSched, sequence: Serial) -> Dispatch {
    let packet = Packet::Submit(submit(sequence));
    dispatched(spine.pass(Nanos(0), Arrival::Wire { from: at(200), packet, room: true }))
}

fn hands_down(leaf: &mut RackSched, from: Endpoint, task: Dispatch) -> Verdict {
    leaf.pass(Nanos(0), Arrival::Wire { from, packet: Packet::Dispatch(task), room: true })
}

#[test]
fn a_spine_sends_to_the_rack_that_told_less_and_one_that_looks_at_none_to_any() {
    for (samples, only) in [(2, true), (1, false)] {
        let mut spine = spine(samples, 2);
        assert_eq!(says(&mut spine, 0, GENERATION, 0x8000), Verdict::Parked);
        assert_eq!(says(&mut spine, 1, GENERATION, 0x7fff), Verdict::Parked);
        let to = (0..40).map(|task| sent(&mut spine, START.plus(task)).worker).collect::<Vec<_>>();
        assert_eq!(to.iter().all(|leaf| *leaf == WorkerId(1)), only, "{to:?}");
    }
}

#[test]
fn a_spine_that_draws_racks_by_their_workers_draws_one_of_seven_times_as_many_seven_times_as_often() {
    let mut spine = above(3, RackSched::spine_by_size(1, config()));
    let drawn = |spine: &mut RackSched, from: u32| {
        let mut counts = [0; 3];
        let tasks = (from..from + 4_000).map(|task| sent(spine, START.plus(task)).worker);
        tasks.for_each(|leaf| counts[usize::from(leaf.0)] += 1);
        counts
    };
    // Until racks say how many workers they have, they are drawn evenly.
    assert!(drawn(&mut spine, 0).iter().all(|count| (1_233..1_433).contains(count)));
    for (leaf, workers) in [(0, 2), (1, 14), (2, 0)] {
        spine.set_workers(SLICE, WorkerId(leaf), workers);
    }
    let [small, large, empty] = drawn(&mut spine, 4_000);
    assert!((400..600).contains(&small) && large + small == 4_000 && empty == 0, "{small} and {large}");
    // A controller says it in the leaf's row.
    let row = WorkerRow {
        at: leaf_at(0),
        generation: GENERATION,
        open: true,
        slice: SLICE,
        workers: 14,
        ..WorkerRow::default()
    };
    spine.table(TableOp::SetWorker(WorkerId(0), Some(row)));
    let [first, second, _] = drawn(&mut spine, 8_000);
    assert!((1_850..2_150).contains(&first) && first + second == 4_000, "{first} and {second}");
}

#[test]
fn of_two_racks_that_were_drawn_by_their_workers_the_one_that_told_less_gets_the_task() {
    let mut spine = above(2, RackSched::spine_by_size(2, config()));
    (0..2).for_each(|leaf| spine.set_workers(SLICE, WorkerId(leaf), 3));
    says(&mut spine, 0, GENERATION, 0x8000);
    says(&mut spine, 1, GENERATION, 0x7fff);
    let first = (0..4_000).filter(|task| sent(&mut spine, START.plus(*task)).worker == WorkerId(0)).count();
    assert!((900..1_100).contains(&first), "it is drawn twice in a quarter of the tasks, not {first}");
}

#[test]
fn the_word_of_a_leaf_counts_in_its_present_generation_only() {
    let mut spine = spine(2, 2);
    assert_eq!(refused(says(&mut spine, 1, Generation(2), 5)), Refusal::WrongGeneration);
    let stranger = Update {
        epoch: EPOCH,
        leaf: WorkerId(1),
        generation: GENERATION,
        pool: SLICE,
        news: RackNews::Load(MeanQueue(5)),
    };
    assert_eq!(refused(spine.pass(Nanos(0), update_from(leaf_at(0), stranger))), Refusal::WrongAddress);
    let idle = Update { news: RackNews::Idle, ..stranger };
    assert_eq!(refused(spine.pass(Nanos(0), update_from(leaf_at(1), idle))), Refusal::Unexpected);
}

#[test]
fn a_leaf_lets_each_number_in_once_and_takes_nothing_from_clients() {
    let (mut spine, mut leaf) = (spine(2, 1), leaf(2));
    let task = sent(&mut spine, START);
    dispatched(hands_down(&mut leaf, spine_at(), task));
    assert_eq!(refused(hands_down(&mut leaf, spine_at(), task)), Refusal::Replayed);
    assert_eq!(refused(hands_down(&mut leaf, at(200), task)), Refusal::UnknownSource);
    let packet = Packet::Submit(submit(START));
    let client = Arrival::Wire { from: at(200), packet, room: true };
    assert_eq!(refused(leaf.pass(Nanos(0), client)), Refusal::Unexpected);
}

/// A tracked task goes round in the leaf before it leaves: bytes that nobody can keep would be lost there.
#[test]
fn a_task_whose_bytes_the_leaf_has_no_room_for_is_turned_away() {
    let (mut spine, mut leaf) = (spine(2, 1), leaf(2));
    let task = sent(&mut spine, START);
    let packet = Packet::Dispatch(task);
    let verdict = leaf.pass(Nanos(0), Arrival::Wire { from: spine_at(), packet, room: false });
    let Verdict::Send { to, packet: Packet::Reject(reject) } = verdict else { panic!("{verdict:?}") };
    assert_eq!((to, reject.task, reject.reason), (at(200), task.task, RejectReason::NoRoom));
}

#[test]
fn every_reply_tells_the_mean_of_what_workers_said() {
    let mut leaf = leaf(2);
    for (worker, load, mean) in [(0, 3, 0x1_8000), (1, 1, 0x2_0000), (0, 0, 0x8000)] {
        let reply =
            Reply { epoch: EPOCH, worker: WorkerId(worker), client: CLIENT, load, ..Reply::default() };
        let from = worker_at(0, worker);
        leaf.pass(Nanos(0), Arrival::Wire { from, packet: Packet::Reply(reply), room: true });
        let told = leaf.mirrored().map(|told| (told.to, told.update.news));
        assert_eq!(told, Some((spine_at(), RackNews::Load(MeanQueue(mean)))), "{worker} holds {load}");
    }
}

/// A client is registered with its spine, and would mistake a leaf's epoch for its spine's.
#[test]
fn what_a_leaf_tells_a_client_names_no_life_of_its_own() {
    let mut leaf = leaf(0);
    leaf.set_spine(SPINE, Some((SpineLink { epoch: LATER, ..link(0) }, START))).expect("room for it");
    let task = Dispatch { epoch: LATER, ..sent(&mut spine(2, 1), START) };
    let Verdict::Send { packet: Packet::Reject(rejected), .. } = hands_down(&mut leaf, spine_at(), task)
    else {
        panic!("a rack without workers")
    };
    assert_eq!(rejected.epoch, LATER, "its spine's");
    let mut fabric = Fabric::new(&[2]);
    let (_, task) = fabric.task();
    let reply = Reply { epoch: EPOCH, worker: task.worker, client: CLIENT, ..Reply::default() };
    let from = worker_at(0, task.worker.0);
    let passed =
        fabric.leaves[0].pass(Nanos(0), Arrival::Wire { from, packet: Packet::Reply(reply), room: true });
    assert!(
        matches!(passed, Verdict::Send { packet: Packet::Reply(Reply { epoch: Epoch(0), .. }), .. }),
        "{passed:?}"
    );
}

/// As with a load balancer that hashes flows; few flows spread badly.
#[test]
fn a_spine_of_flows_sends_all_tasks_of_one_to_the_same_rack() {
    let mut spine = above(8, RackSched::spine_of_flows(3, config()));
    let racks: Vec<u16> = (3..33).map(|task| sent(&mut spine, Serial(task)).worker.0).collect();
    assert!(racks.chunks(3).all(|three| three == &racks[..3]), "{racks:?}");
}
