//! The trait that a scheduler implements to stand behind the front.

use core::fmt::Debug;

use sluice_wire::tables::{SliceRow, SliceState, SpineRow, TableAnswer, WorkerRow};
use sluice_wire::{
    Dispatch, Endpoint, Nanos, Rank, Reject, Reply, SliceId, Submit, Sweep, TaskJob, Update, WorkerId,
};

use super::{Front, Granted};
use crate::pipeline::Pass;
use crate::program::{Mirror, Parked, Verdict};
use crate::rdma_engine::RdmaEngine;
use crate::refusal::Refusal;

/// A task at the queue: a new one, or one that recirculates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entering<'a> {
    pub(crate) submit: &'a Submit,
    /// When the task arrived at the switch for the first time.
    pub(crate) arrived: Nanos,
    /// The program's note with a task that recirculates; `None` for a new task.
    pub(crate) memo: Option<u64>,
}

/// A task that a spine forwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandedDown<'a> {
    pub(crate) from: Endpoint,
    pub(crate) task: &'a Dispatch,
    /// Whether the switch could keep the task's payload if it had to recirculate.
    pub(crate) room: bool,
}

/// Several tasks of one submission at the queue: a new submission, or the rest of one after a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnteringJob<'a> {
    pub(crate) job: &'a TaskJob,
    /// When the submission arrived at the switch for the first time.
    pub(crate) arrived: Nanos,
    /// The program's note with a rest that recirculates; `None` for a new submission.
    pub(crate) memo: Option<u64>,
}

/// The scheduling itself: what happens to tokens and tasks that the front has let in.
pub(crate) trait Scheduler: Debug + Send {
    /// The name by which the registry and the pipeline's checks call the program.
    const NAME: &'static str;

    fn front(&self) -> &Front;

    fn front_mut(&mut self) -> &mut Front;

    /// A token was granted to a worker of this slice; `_rank` is how many tasks stand before it at the
    /// worker. The workers of programs that push tasks send none; one that does is told later that it was
    /// counted.
    fn token(&mut self, pass: &mut Pass, _now: Nanos, _: SliceId, granted: Granted, _rank: Rank) -> Verdict {
        self.front_mut().note_granted(pass, granted);
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A task asks for a worker.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict;

    /// Several tasks ask for workers. Called only if the program says that it takes jobs.
    fn job(&mut self, _pass: &mut Pass, _now: Nanos, _job: EnteringJob<'_>) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A spine forwards a task.
    fn forwarded(&mut self, _pass: &mut Pass, _now: Nanos, _down: HandedDown<'_>) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A leaf tells its rack's load, or whether it is idle.
    fn update(&mut self, _pass: &mut Pass, _now: Nanos, _from: Endpoint, _update: &Update) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// See [`Program::mirrored`](crate::Program::mirrored).
    fn mirrored(&mut self) -> Option<Mirror> {
        None
    }

    /// A note that the program sent to itself comes back.
    fn note(&mut self, _pass: &mut Pass, _now: Nanos, _memo: u64) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A worker's REPLY passes the switch.
    fn reply(&mut self, _pass: &mut Pass, _from: Endpoint, _reply: &Reply) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A leaf's REJECT passes the switch on its way to the client.
    fn rejected(&mut self, _pass: &mut Pass, _from: Endpoint, _reject: &Reject) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A sweep of the controller, of this epoch and of a slice that exists. `_memo` is the program's note
    /// with a sweep that recirculates; it is zero at the first pass.
    fn sweep(&mut self, _pass: &mut Pass, _now: Nanos, _sweep: Sweep, _memo: u64) -> Verdict {
        Verdict::Drop(Refusal::SweepDone)
    }

    /// What the controller reads of an existing slice, without the slice's row.
    fn slice_state(&self, slice: usize) -> SliceState;

    /// The controller wrote or removed a worker's row.
    fn worker_set(&mut self, _worker: WorkerId, _row: Option<&WorkerRow>) {}

    /// The controller wrote a slice's row over the row `_before`.
    fn slice_set(&mut self, _slice: SliceId, _before: &SliceRow, _row: &SliceRow) {}

    /// All that was granted to a worker until now is void.
    fn grants_ended(&mut self, _worker: WorkerId) {}

    /// Names the spine from which a pool's tasks come from now on; `None` if this program is no leaf of a
    /// fabric, or there is no such pool.
    fn spine_set(&mut self, _pool: SliceId, _row: SpineRow) -> Option<TableAnswer> {
        None
    }

    /// The part that writes tasks ahead into servers' memory, if the program has one. It takes the
    /// controller's steps about servers, WRITEs at egress, and NAKs.
    fn engine(&mut self) -> Option<&mut RdmaEngine> {
        None
    }

    /// See [`Program::waiting`].
    fn waiting(&self) -> u32 {
        0
    }

    /// See [`Program::parked`].
    fn parked(&self, _slice: SliceId) -> Parked {
        Parked::default()
    }
}
