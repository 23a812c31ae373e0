//! What a scheduler adds to the front.

use core::fmt::Debug;

use sluice_wire::tables::{SliceState, SpineRow, TableAnswer, WorkerRow};
use sluice_wire::{
    Dispatch, Endpoint, Nanos, Rank, Reject, Reply, SliceId, Submit, Sweep, TaskJob, Update, WorkerId,
};

use super::{Front, Granted};
use crate::pipeline::Pass;
use crate::program::{Mirror, Parked, Verdict};
use crate::rdma_engine::RdmaEngine;
use crate::refusal::Refusal;

/// A task at the queue: new, or round once more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entering<'a> {
    pub(crate) submit: &'a Submit,
    /// When it arrived first.
    pub(crate) arrived: Nanos,
    /// What the program noted when it sent the task round; `None` for a new one.
    pub(crate) memo: Option<u64>,
}

/// A task that a spine forwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandedDown<'a> {
    pub(crate) from: Endpoint,
    pub(crate) task: &'a Dispatch,
    /// Whether its payload could be kept if it had to go round.
    pub(crate) room: bool,
}

/// Several tasks of one submission at the queue: new, or what is left of them after a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnteringJob<'a> {
    pub(crate) job: &'a TaskJob,
    /// When it arrived first.
    pub(crate) arrived: Nanos,
    /// What the program noted when it sent the rest round; `None` for a new one.
    pub(crate) memo: Option<u64>,
}

/// The scheduling itself: what tokens and tasks do that the front has let in.
pub(crate) trait Scheduler: Debug + Send {
    /// As the registry and the pipeline's checks call it.
    const NAME: &'static str;

    fn front(&self) -> &Front;

    fn front_mut(&mut self) -> &mut Front;

    /// A worker of this slice was granted a token, which says what it stands behind. Most programs tell
    /// nobody to send any.
    fn token(&mut self, _pass: &mut Pass, _now: Nanos, _: SliceId, _: Granted, _rank: Rank) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A task wants to a worker.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict;

    /// Several tasks want to workers. Only programs that say how many they take are asked.
    fn job(&mut self, _pass: &mut Pass, _now: Nanos, _job: EnteringJob<'_>) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A spine forwards a task.
    fn forwarded(&mut self, _pass: &mut Pass, _now: Nanos, _down: HandedDown<'_>) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A leaf tells what is new in its rack.
    fn update(&mut self, _pass: &mut Pass, _now: Nanos, _from: Endpoint, _update: &Update) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// See [`Program::mirrored`](crate::Program::mirrored).
    fn mirrored(&mut self) -> Option<Mirror> {
        None
    }

    /// A note that the program sent to itself is back.
    fn note(&mut self, _pass: &mut Pass, _now: Nanos, _memo: u64) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A worker's REPLY passes.
    fn reply(&mut self, _pass: &mut Pass, _from: Endpoint, _reply: &Reply) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A leaf's REJECT passes, on its way to the client.
    fn rejected(&mut self, _pass: &mut Pass, _from: Endpoint, _reject: &Reject) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// The controller's sweep, of this life and of a slice that exists, and what the program noted when it
    /// sent it round; zero when it comes.
    fn sweep(&mut self, _pass: &mut Pass, _now: Nanos, _sweep: Sweep, _memo: u64) -> Verdict {
        Verdict::Drop(Refusal::SweepDone)
    }

    /// What the controller sees of a slice that exists: all but its row.
    fn slice_state(&self, slice: usize) -> SliceState;

    /// The controller set a worker's row.
    fn worker_set(&mut self, _worker: WorkerId, _row: Option<&WorkerRow>) {}

    /// Nothing that was granted to a worker until now counts any more.
    fn grants_ended(&mut self, _worker: WorkerId) {}

    /// A pool's tasks come from this spine from now on; `None` if this is no leaf of a fabric, or there is no
    /// such pool.
    fn spine_set(&mut self, _pool: SliceId, _row: SpineRow) -> Option<TableAnswer> {
        None
    }

    /// What writes tasks ahead into servers' memory, if anything does: the controller's steps about servers,
    /// WRITEs at egress and NAKs are its.
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
