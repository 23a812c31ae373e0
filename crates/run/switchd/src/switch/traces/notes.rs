//! What the switch's thread notes, and the thread that sends spans reads.

use sluice_wire::{Attempt, Nanos, TaskId, TaskType, WorkerId};

/// How many notes wait for the other thread at most.
pub(super) const NOTES_MAX: usize = 1 << 14;

/// Something that happened to an attempt of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TracedStep {
    pub(super) task: TaskId,
    pub(super) attempt: Attempt,
    pub(super) at: Nanos,
    pub(super) what: SwitchStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwitchStep {
    Came(TaskType),
    /// It waits in the queue.
    Waits,
    /// It left for a worker, or for the switch of a rack.
    Sent(WorkerId),
    /// Its client gets a REJECT, if it is still there.
    Refused(&'static str),
    /// Nobody hears of it, or its client only that it shall try again.
    Dropped(&'static str),
}
