//! Later tries of a task go where the one before went, for a while (Horus A.4).

use sluice_wire::{Attempt, Nanos, Reject, RejectReason, SliceLoad};

use super::*;

const KEEPS: Nanos = Nanos::from_millis(100);
/// A time after which no entry counts, even with the coarse steps of its stamp.
const TOO_LATE: Nanos = Nanos(KEEPS.0 + 200_000);

fn fabric(affinity: Option<Nanos>) -> Fabric {
    let mut fabric = Fabric::of(FabricReading { affinity, ..FabricReading::default() }, &[3, 3]);
    fabric.deliver();
    fabric
}

/// Passes a try of the client's first task through both switches. Returns the rack, the worker, and how
/// often it passed each switch.
fn tried(fabric: &mut Fabric, attempt: u16, now: Nanos) -> (u16, u16, [u32; 2]) {
    let packet = Packet::Submit(sluice_wire::Submit { attempt: Attempt(attempt), ..submit(START) });
    let (down, at_spine) = passes(&mut fabric.spine, now, at(200), packet);
    let leaf = down.worker.0;
    let program = &mut fabric.leaves[usize::from(leaf)];
    let (task, at_leaf) = passes(program, now, spine_at(), Packet::Dispatch(down));
    (leaf, task.worker.0, [at_spine, at_leaf])
}

fn passes(program: &mut dyn Program, now: Nanos, from: Endpoint, packet: Packet) -> (Dispatch, u32) {
    let mut verdict = program.pass(now, Arrival::Wire { from, packet, room: true });
    let mut count = 1;
    while let Verdict::Again(circulating) = verdict {
        verdict = program.pass(now, Arrival::Round(circulating));
        count += 1;
    }
    (dispatched(verdict), count)
}

/// Passes the first try, to a rack that the idle list would not choose for the second.
fn first_try(fabric: &mut Fabric) -> (u16, u16) {
    let (leaf, worker, passed) = tried(fabric, 1, Nanos(0));
    assert_eq!(passed, [1, 1]);
    fabric.says(leaf, RackNews::Busy);
    (leaf, worker)
}

#[test]
fn a_later_try_goes_to_the_rack_and_the_worker_of_the_one_before_in_two_passes_each() {
    let mut fabric = fabric(Some(KEEPS));
    let (leaf, worker) = first_try(&mut fabric);
    for attempt in 2..5 {
        assert_eq!(tried(&mut fabric, attempt, KEEPS), (leaf, worker, [2, 2]));
    }
}

#[test]
fn without_a_table_a_later_try_goes_to_whoever_is_idle() {
    let mut fabric = fabric(None);
    let (leaf, _) = first_try(&mut fabric);
    let (other, _, passed) = tried(&mut fabric, 2, Nanos(0));
    assert_eq!((other, passed), (1 - leaf, [1, 1]));
}

#[test]
fn a_try_that_comes_too_late_chooses_anew_and_the_next_one_follows_that() {
    let mut fabric = fabric(Some(KEEPS));
    let (leaf, _) = first_try(&mut fabric);
    let (other, worker, passed) = tried(&mut fabric, 2, TOO_LATE);
    assert_eq!((other, passed), (1 - leaf, [2, 2]));
    assert_eq!(tried(&mut fabric, 3, TOO_LATE), (other, worker, [2, 2]));
}

#[test]
fn whose_worker_or_rack_is_gone_chooses_anew() {
    let mut fabric = fabric(Some(KEEPS));
    let (leaf, worker) = first_try(&mut fabric);
    fabric.leaves[usize::from(leaf)].table(TableOp::SetWorker(WorkerId(worker), None));
    let (same, other, _) = tried(&mut fabric, 2, Nanos(0));
    assert_eq!((same, other == worker), (leaf, false), "another worker of the rack");
    fabric.spine.table(TableOp::SetWorker(WorkerId(leaf), None));
    assert_eq!(tried(&mut fabric, 3, Nanos(0)).0, 1 - leaf);
}

#[test]
fn who_was_refused_by_a_rack_does_not_come_back_to_it() {
    let mut fabric = fabric(Some(KEEPS));
    let (leaf, _) = first_try(&mut fabric);
    let reject = Reject {
        epoch: EPOCH,
        client: CLIENT,
        task: submit(START).task,
        attempt: Attempt(1),
        task_type: GET,
        reason: RejectReason::NoWorkers,
        behind: 0,
        retry_after_ns: 0,
        load: SliceLoad::default(),
    };
    let arrival = Arrival::Wire { from: leaf_at(leaf), packet: Packet::Reject(reject), room: true };
    let passed = fabric.spine.pass(Nanos(0), arrival);
    assert!(matches!(passed, Verdict::Send { to, .. } if to == at(200)), "{passed:?}");
    assert_eq!(tried(&mut fabric, 2, Nanos(0)).0, 1 - leaf);
}

/// A later try counts in the load of the node that it goes to, and its DISPATCH says whether the spine
/// believes the rack idle.
#[test]
fn a_try_that_follows_is_counted_and_tells_its_rack_what_its_spine_thinks_of_it() {
    let mut fabric = fabric(Some(KEEPS));
    let (leaf, _) = first_try(&mut fabric);
    let before = fabric.spine.known_load(SLICE, WorkerId(leaf));
    tried(&mut fabric, 2, Nanos(0));
    let counted = fabric.spine.known_load(SLICE, WorkerId(leaf));
    assert!(counted > before, "{counted} after {before}");
    assert_eq!(fabric.leaves[usize::from(leaf)].known_tasks(SLICE), 2);
    fabric.says(leaf, RackNews::Idle);
    let packet = Packet::Submit(sluice_wire::Submit { attempt: Attempt(3), ..submit(START) });
    let (down, _) = passes(&mut fabric.spine, Nanos(0), at(200), packet);
    assert_eq!((down.worker.0, down.occupancy), (leaf, sluice_switch::horus::IDLE_SELECTED));
}
