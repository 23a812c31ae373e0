//! A witness that checks the protocol, and panics where it is broken: a generation that is raised before
//! the worker was closed and drained, opened before its counters were reset, or used twice; a ring that
//! overflows; an index that is given away while tokens of its last holder are parked; a task that comes to
//! a worker which does not serve its type.

use std::collections::{BTreeMap, BTreeSet};

use sluice_switch::{Refusal, Verdict};
use sluice_wire::tables::{TableOp, WorkerRow, WorkerState};
use sluice_wire::{Dispatch, Generation, Packet, RejectReason, SliceId, WorkerId};

use super::switch::Switch;

/// What the witness remembers of the steps that it saw.
#[derive(Default)]
pub(crate) struct Witness {
    workers: BTreeMap<WorkerId, Seen>,
    opened: BTreeSet<(WorkerId, Generation)>,
}

#[derive(Default)]
struct Seen {
    last_life: u64,
    /// Packets that were admitted may still be under way (`entering`), and so may packets that matched the
    /// last generation (`matching`).
    entering: bool,
    matching: bool,
    raised: bool,
    reset: bool,
}

impl Switch {
    /// Checks a step before it is carried out.
    pub(super) fn watch(&mut self, op: &TableOp) {
        match *op {
            TableOp::SetSlice(_, row) => assert!(row.limit >= 1, "nothing may wait"),
            TableOp::SetWorker(worker, row) => self.sets_worker(worker, row),
            TableOp::RaiseGeneration(worker, generation) => self.raises(worker, generation),
            TableOp::ResetCounters(worker, _) => self.resets(worker),
            TableOp::SetRing(_, server, Some(_)) => {
                assert!(
                    self.server(server).row.is_some(),
                    "a ring of a server that the switch does not know"
                );
            }
            TableOp::Inject(sweep) => assert_eq!(sweep.epoch, self.shape().epoch, "a sweep of another life"),
            TableOp::Drain => {
                for seen in self.witness.workers.values_mut() {
                    (seen.entering, seen.matching) = (false, false);
                }
            }
            _ => {}
        }
    }

    /// Checks the verdict of a pass.
    pub(super) fn left(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => self.sent(dispatch),
            Verdict::Send { packet: Packet::Reject(reject), .. } => {
                assert_ne!(reject.reason, RejectReason::Unserved, "a task of a class that nobody knows");
            }
            Verdict::Parked => self.rings_hold_what_is_parked(),
            Verdict::Drop(refusal) => assert_ne!(*refusal, Refusal::TokenRingFull),
            _ => {}
        }
    }

    fn sets_worker(&mut self, worker: WorkerId, row: Option<WorkerRow>) {
        let WorkerState { row: was, generation_out, .. } = self.worker(worker);
        let was = was.filter(|was| was.open);
        let parked = self.slices().any(|slice| self.tokens(slice).iter().any(|(of, _)| *of == worker));
        let seen = self.witness.workers.entry(worker).or_default();
        let Some(row) = row.filter(|row| row.open) else {
            seen.entering |= was.is_some();
            return;
        };
        assert_ne!(row.key.0, 0, "keys are never 0");
        if let Some(was) = was {
            assert_eq!((was.generation, was.life, was.key), (row.generation, row.life, row.key));
            assert_eq!(was.slice, row.slice, "a slice move needs a new generation");
            return;
        }
        assert!(seen.reset && seen.raised, "worker {worker} opened before its counters were reset");
        assert_eq!(row.generation, generation_out);
        (seen.reset, seen.raised) = (false, false);
        let fresh = self.witness.opened.insert((worker, row.generation));
        assert!(fresh, "worker {worker}'s generation {} is used twice", row.generation);
        if std::mem::replace(&mut seen.last_life, row.life) != row.life {
            assert!(!parked, "index {worker} is given away while its last holder's tokens are parked");
        }
    }

    fn raises(&mut self, worker: WorkerId, generation: Generation) {
        let WorkerState { row, generation_out, .. } = self.worker(worker);
        let seen = self.witness.workers.entry(worker).or_default();
        assert!(generation > generation_out, "generations only grow");
        assert!(row.is_none_or(|row| !row.open), "raised while tokens are let in");
        assert!(!seen.entering, "raised before the passes that had begun ended");
        (seen.matching, seen.raised, seen.reset) = (true, true, false);
    }

    fn resets(&mut self, worker: WorkerId) {
        let row = self.worker(worker).row;
        let seen = self.witness.workers.entry(worker).or_default();
        assert!(seen.raised && !seen.matching, "reset before raised and drained");
        assert!(row.is_none_or(|row| !row.open), "reset while tokens are let in");
        seen.reset = true;
    }

    fn sent(&mut self, dispatch: &Dispatch) {
        let life = self.witness.workers[&dispatch.worker].last_life;
        let served = self.serves.get(&life);
        let serves = served.is_none_or(|served| served.contains(&dispatch.task_type));
        let (worker, task_type) = (dispatch.worker, dispatch.task_type);
        assert!(serves, "worker {worker} serves {served:?} and got a task of type {task_type}");
    }

    fn rings_hold_what_is_parked(&mut self) {
        for slice in self.slices() {
            let state = self.slice(slice);
            let parked = state.tokens_in.since(state.tokens_out);
            assert!(parked <= self.shape().tokens_per_slice, "the token ring of slice {slice} overflows");
        }
    }

    fn slices(&self) -> impl Iterator<Item = SliceId> + use<> {
        (0..self.shape().slices).map(SliceId)
    }
}
