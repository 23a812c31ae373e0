//! What goes into a client and what comes out of it.

use core::fmt;

use sluice_wire::serving::Labels;
use sluice_wire::{
    Endpoint, Handle, Nanos, Need, Part, Payload, RejectReason, Reply, Submit, TASK_BYTES_MAX, TaskId,
    TaskType,
};

/// What all clients of a driver share; handed to each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// How long the first attempt may stay unanswered; with a deadline at the end of time it may be for ever,
    /// which costs no timer. Scales with dilation.
    pub first_timeout: Nanos,
    /// Where the doubling of timeouts ends. Scales with dilation.
    pub timeout_max: Nanos,
    /// How long a task may take when its submitter does not say.
    pub deadline_default: Nanos,
    /// Retries paid from the budget, in percent of the tasks sent.
    pub retry_budget_percent: u32,
    /// Retries that the budget holds when it is full; it starts full.
    pub retry_burst: u32,
    /// The least time between two [`Action::Renew`]. Real time: does not scale with dilation.
    pub renew_gap: Nanos,
    /// Tasks of types that the grant maps to no share, outstanding at most.
    pub unmapped_share: u32,
    /// Tasks outstanding at most, whatever the grant allows: bounds memory. Above 2^20 it counts as 2^20.
    pub outstanding_max: u32,
    /// How often in a row a reply's missing bytes are asked for in vain before it counts as lost.
    pub need_tries: u8,
    /// Bytes of replies that are being fetched, at most; a further one waits.
    pub reply_bytes_max: usize,
}

impl ClientSettings {
    /// The defaults, with all times of the network times `factor`. The deadline has room for five doublings
    /// of the first timeout: with fewer tries, one packet lost in a hundred would leave tasks unknown.
    pub fn dilated(factor: u64) -> Self {
        let first_timeout = Nanos::from_millis(50).times(factor);
        Self {
            first_timeout,
            timeout_max: Nanos::from_millis(1_600).times(factor),
            deadline_default: Nanos::from_millis(5_000).max(first_timeout.times(32)),
            retry_budget_percent: 10,
            retry_burst: 32,
            renew_gap: Nanos::from_millis(50),
            unmapped_share: 64,
            outstanding_max: 1 << 16,
            need_tries: 8,
            reply_bytes_max: 64 << 20,
        }
    }

    /// How long an attempt may stay unanswered after `backoffs` doublings; never zero.
    pub(super) fn timeout(&self, backoffs: u32) -> Nanos {
        let first = self.first_timeout.max(Nanos(1));
        first.times(1 << backoffs.min(32)).min(self.timeout_max.max(first))
    }

    /// How long a NEED may stay unanswered: a worker answers between two tasks.
    pub(super) fn need_wait(&self, tries: u8) -> Nanos {
        let first = Nanos(self.first_timeout.0 / 32).max(Nanos(1));
        first.times(1 << tries.min(32)).min(self.timeout_max.max(first))
    }
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self::dilated(1)
    }
}

/// A task to be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// What kind of work it is.
    pub task_type: TaskType,
    /// How soon it should run, where the switch has classes of tasks.
    pub urgency: Urgency,
    /// The labels that it needs beside those of its type, where the switch tells kinds of workers apart.
    pub needs: Labels,
    /// Its bytes. Once the task was taken, the handle is the client's until [`Action::Release`].
    pub payload: Payload,
    /// When the outcome is due, as a point in time.
    pub deadline: Nanos,
    /// Whether more than one attempt may be made. Without, the first REJECT is final and so is silence.
    pub retry: bool,
    /// The submitter's own name for it; comes back with the outcome.
    pub tag: u64,
}

/// What a submitter says of how soon a task should run. A switch without classes takes all in their order,
/// whatever is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// Nothing: it goes behind those of whom something is said, in the last class.
    #[default]
    Unstated,
    /// It is expected to be so much work. The rack's plan says which class that is; where it does not, all
    /// sizes are of the first.
    Work(Nanos),
    /// Its class; 0 goes first.
    Priority(u8),
}

/// Why a task was not taken now: the application is to hold back and offer it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Busy {
    /// There is no registration, or the switch that it was for is gone.
    NotRegistered,
    /// The client has as many tasks outstanding in the slice as it may.
    ShareSpent,
    /// The switch has no free replay cell for this client.
    CellsSpent,
    /// A task has been outstanding for so long that sequence numbers would no longer tell old from new.
    WindowSpent,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRegistered => {
                "no registration with a living switch: offer the task again after the next grant"
            }
            Self::ShareSpent => {
                "this client's share of the slice is outstanding: offer the task again after an outcome"
            }
            Self::CellsSpent => "no replay cell is free: offer the task again after an outcome",
            Self::WindowSpent => {
                "one task has been outstanding for 2^30 others: offer the task again after its outcome"
            }
        })
    }
}

impl core::error::Error for Busy {}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A worker answered, with success or failure as the reply's status says.
    Reply(Reply),
    /// No attempt can have run.
    Refused(RefusedWhy),
    /// It may have run.
    Unknown(UnknownWhy),
}

/// Why a task certainly did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedWhy {
    /// The switch rejected every attempt, the last one for this reason, which is not that of
    /// [`RefusedWhy::NoSlice`].
    Rejected(RejectReason),
    /// No slice takes this type. Not tried again: a moment later none does either.
    NoSlice(TaskType),
    /// Its deadline had passed when it was submitted.
    NeverSent,
    /// It has more bytes than any task may have.
    TooLong,
    /// It needs a label that the rack does not know.
    UnknownLabel,
    /// Its priority is no class of the rack's, which has so many.
    NoClass {
        /// What was asked for.
        priority: u8,
        /// How many classes there are.
        classes: u8,
    },
}

impl RefusedWhy {
    /// What the switch's reason says of a task of this type.
    pub(super) const fn of(reason: RejectReason, task_type: TaskType) -> Self {
        match reason {
            RejectReason::UnknownType => Self::NoSlice(task_type),
            reason => Self::Rejected(reason),
        }
    }
}

impl fmt::Display for RefusedWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(reason) => write!(f, "{reason}"),
            Self::NoSlice(task_type) => write!(
                f,
                "no slice takes type {task_type}: add it to a slice's types in the plan, map it to one (`sluice map`), or send \
                 another type"
            ),
            Self::NeverSent => f.write_str(
                "its deadline passed before it could be sent: give it a later one, or send less at once",
            ),
            Self::NoClass { priority, classes } => write!(
                f,
                "priority {priority} is no class of this rack: take 0, which goes first, to {}",
                classes - 1
            ),
            Self::UnknownLabel => f.write_str(
                "it needs a label that the rack does not know: give it to a worker and a type of its slice \
                 in the plan, under a policy with `labels`, or ask for one that is there",
            ),
            Self::TooLong => write!(
                f,
                "it has more than the {TASK_BYTES_MAX} bytes that a task may have: send less, or in several tasks"
            ),
        }
    }
}

/// Why it is not known whether a task ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnknownWhy {
    /// The deadline passed with an attempt unanswered.
    Deadline,
    /// It ran, but the worker no longer keeps the reply, or cannot be reached for the rest of it.
    ReplyGone,
    /// A try of it reached a worker so late that it may have run there and been forgotten; it was not run.
    TooOld,
}

impl fmt::Display for UnknownWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadline => {
                "the deadline passed without an answer: send it again if it may run twice, or give it a later deadline"
            }
            Self::ReplyGone => {
                "it ran, but its reply can no longer be had: send it again if it may run twice"
            }
            Self::TooOld => {
                "it came to a worker too late to tell whether it had run there: send it again if it may run twice"
            }
        })
    }
}

/// What the driver is to do, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this to the switch; with what leaves at the same time, if that is a [`Bundle`](super::Bundle).
    ToSwitch(Submit),
    /// Send these bytes of a task, in PARTs, to the worker that asks.
    Parts {
        /// What it asks for.
        need: Need,
        /// All of the task's bytes.
        payload: Payload,
    },
    /// Tell a worker that asked for a task's bytes that nobody has them any more, since the task has ended.
    Gone {
        to: Endpoint,
        /// A PART without bytes.
        packet: Part,
    },
    /// Ask a worker for bytes of its reply. The driver fills in where they go.
    Need { to: Endpoint, packet: Need },
    /// Make room for all bytes of a reply. Comes with each handle once before its [`Action::Forget`].
    Begin {
        /// What they are known by.
        at: Handle,
        payload: Payload,
        /// The first so many are those of the packet that was handed in.
        have: u16,
    },
    /// Copy the PART that was handed in to this offset of a reply's bytes.
    Place {
        /// What they are known by.
        at: Handle,
        offset: u32,
    },
    /// Compare a reply's bytes with its descriptor, and call `checked`.
    Check {
        task: TaskId,
        /// What its bytes are known by.
        at: Handle,
        payload: Payload,
    },
    /// A fetched reply's bytes are no longer needed; follows the `Done` that carries their handle.
    Forget(Handle),
    /// Tell the submitter; the only time for this task. A reply that has more bytes than its packet brought
    /// was fetched: they lie under its payload's handle.
    Done {
        /// The submitter's name for it.
        tag: u64,
        task: TaskId,
        /// How many attempts were sent.
        attempts: u16,
        outcome: Outcome,
    },
    /// The task's bytes are no longer needed; follows its `Done`.
    Release(Handle),
    /// Talk to the controller at once.
    Renew,
}

/// What a client has counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Tasks taken.
    pub submitted: u64,
    /// Offers that were pushed back.
    pub pushed_back: u64,
    /// Tasks sent, first attempts and retries; several may go in one packet.
    pub sent: u64,
    /// Retries paid from the budget.
    pub retries_paid: u64,
    /// Retries after a backed-off timeout with the budget spent.
    pub retries_probing: u64,
    /// Retries that a new registration gave, or that tasks made which found no room while repeats had some.
    pub retries_free: u64,
    /// Attempts that stayed unanswered for their timeout.
    pub timeouts: u64,
    /// REJECTs that counted.
    pub rejects: u64,
    /// NEEDs that were answered.
    pub needs: u64,
    /// Replies longer than a packet, whose rest was asked for.
    pub long_replies: u64,
    /// … of which bytes could not be had.
    pub long_replies_lost: u64,
    /// Packets that came for an ended task, or said again what was known.
    pub late: u64,
    /// Packets that cannot be for this client.
    pub foreign: u64,
    /// Times that the controller was asked for.
    pub renewals: u64,
    /// Tasks that ended in a reply.
    pub replied: u64,
    /// Tasks that ended refused.
    pub refused: u64,
    /// Tasks that ended unknown.
    pub unknown: u64,
}
