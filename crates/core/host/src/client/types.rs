//! The client's inputs and outputs: settings, submissions, outcomes, actions and counters.

use core::fmt;

use sluice_units::show_span;
use sluice_wire::serving::Labels;
use sluice_wire::{
    Budget, Endpoint, Handle, Nanos, Need, Part, Payload, RejectReason, Reply, Submit, TASK_BYTES_MAX,
    TaskId, TaskType,
};

/// Settings that all clients of a driver share; the driver passes them to each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// How long the first attempt may stay unanswered. For a task whose deadline is at the end of time it
    /// may be unlimited, and then no timer is set. Scales with dilation.
    pub first_timeout: Nanos,
    /// The largest timeout: doubling stops there. Scales with dilation.
    pub timeout_max: Nanos,
    /// The time from submission to deadline if the submitter states none.
    pub deadline_default: Nanos,
    /// Retries paid from the budget, in percent of the tasks sent.
    pub retry_budget_percent: u32,
    /// How many retries a full budget holds. The budget starts full.
    pub retry_burst: u32,
    /// The shortest time between two [`Action::Renew`]. Real time: does not scale with dilation.
    pub renew_gap: Nanos,
    /// For how long after a restart of the switch a task that finds no workers is tried again outside the
    /// budget: they register again meanwhile. Real time: does not scale with dilation.
    pub return_time: Nanos,
    /// How many tasks may be outstanding whose types the grant maps to no share.
    pub unmapped_share: u32,
    /// How many tasks may be outstanding, whatever the grant allows; this bounds memory. Values above 2^20
    /// count as 2^20.
    pub outstanding_max: u32,
    /// How many NEEDs in a row may go unanswered before a long reply counts as lost.
    pub need_tries: u8,
    /// Memory for replies that are being fetched, in bytes; a further reply waits.
    pub reply_bytes_max: usize,
}

impl ClientSettings {
    /// The defaults, with all network times multiplied by `factor`. The default deadline leaves time for
    /// five doublings of the first timeout: with fewer attempts, a loss of one packet in a hundred would
    /// leave tasks unknown.
    pub fn dilated(factor: u64) -> Self {
        let first_timeout = Nanos::from_millis(50).times(factor);
        Self {
            first_timeout,
            timeout_max: Nanos::from_millis(1_600).times(factor),
            deadline_default: Nanos::from_millis(5_000).max(first_timeout.times(32)),
            retry_budget_percent: 10,
            retry_burst: 32,
            renew_gap: Nanos::from_millis(50),
            return_time: Nanos::from_millis(1_000),
            unmapped_share: 64,
            outstanding_max: 1 << 16,
            need_tries: 8,
            reply_bytes_max: 64 << 20,
        }
    }

    /// The timeout after `backoffs` doublings; never zero.
    pub(super) fn timeout(&self, backoffs: u32) -> Nanos {
        let first = self.first_timeout.max(Nanos(1));
        first.times(1 << backoffs.min(32)).min(self.timeout_max.max(first))
    }

    /// How long to wait for the answer to a NEED: a worker answers only between two tasks.
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
    /// The type of the task, which selects its slice.
    pub task_type: TaskType,
    /// The task's urgency, for switches with priority classes.
    pub urgency: Urgency,
    /// The labels that the task needs in addition to those of its type, for switches that distinguish kinds
    /// of workers.
    pub needs: Labels,
    /// The task's bytes. Once the task was taken, the client owns the handle until [`Action::Release`].
    pub payload: Payload,
    /// The time by which the outcome is due.
    pub deadline: Nanos,
    /// The time after which the task is not worth beginning; `None` for no such limit. It counts from when
    /// the submitter first offered the task, so it does not move if the task is offered again. What is left
    /// of it is the task's budget; time on the network does not count.
    pub begin_by: Option<Nanos>,
    /// Whether more than one attempt may be made. If not, the first REJECT or timeout is final.
    pub retry: bool,
    /// The submitter's own name for the task; it comes back with the outcome.
    pub tag: u64,
}

/// What a submitter says about a task's urgency. A switch without classes ignores it and serves tasks in
/// order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// Nothing: the task gets the last class, behind all tasks with a stated urgency.
    #[default]
    Unstated,
    /// The expected service time. The rack's plan maps times to classes; without such a map every task gets
    /// the first class.
    Work(Nanos),
    /// The class itself; class 0 goes first.
    Priority(u8),
}

/// Why a task was not taken: the application should wait and offer it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Busy {
    /// The client has no registration, or its registration is dead.
    NotRegistered,
    /// The client has as many tasks outstanding in the slice as its share allows.
    ShareSpent,
    /// The switch has no free replay cell for this client.
    CellsSpent,
    /// One task has been outstanding for so long that new sequence numbers could be confused with old ones.
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
    /// A worker answered. The reply's status says whether the task succeeded.
    Reply(Reply),
    /// The task did not run: no attempt can have run.
    Refused(RefusedWhy),
    /// The task may have run.
    Unknown(UnknownWhy),
}

/// Where a task was when its budget was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutOff {
    /// At its client, before a try that could still be sent.
    Client,
    /// In the switch: when it came, or when a token took it.
    Switch,
    Worker,
}

/// Why a task certainly did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedWhy {
    /// The switch rejected every attempt. The reason is the last one's, and never one that
    /// [`RefusedWhy::NoSlice`], [`RefusedWhy::Busy`] or [`RefusedWhy::Late`] stands for.
    Rejected(RejectReason),
    /// No slice takes this type. The client does not retry: the next attempt would meet the same switch
    /// tables.
    NoSlice(TaskType),
    /// More tasks come than the slice can serve in time: the switch refused this one because it would have
    /// waited for longer than the slice's target, or the client did because it had sent its share. It is not
    /// tried again.
    Busy {
        /// After this time another task has a chance.
        retry_after: Nanos,
    },
    /// The deadline had already passed at submission.
    NeverSent,
    /// The task's budget was spent before the task could begin.
    Late(CutOff),
    /// The task may begin later than a packet can tell.
    LongBudget,
    /// The task has more bytes than [`TASK_BYTES_MAX`] allows.
    TooLong,
    /// The task needs a label that the rack does not know.
    UnknownLabel,
    /// The task's priority is not one of the rack's classes.
    NoClass {
        /// The priority that was asked for.
        priority: u8,
        classes: u8,
    },
}

impl RefusedWhy {
    /// The refusal that a REJECT's reason stands for.
    pub(super) const fn of(reason: RejectReason, task_type: TaskType) -> Self {
        match reason {
            RejectReason::UnknownType => Self::NoSlice(task_type),
            RejectReason::Busy => Self::Busy { retry_after: Nanos(0) },
            RejectReason::Late => Self::Late(CutOff::Switch),
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
            Self::Busy { retry_after } => write!(
                f,
                "more tasks come than its slice can serve in time: offer one again after {}, send less, or \
                 start more workers",
                show_span(*retry_after)
            ),
            Self::NeverSent => f.write_str(
                "its deadline passed before it could be sent: give it a later one, or send less at once",
            ),
            Self::Late(at) => write!(
                f,
                "its budget was spent {}: give it a longer one, send less, or start more workers",
                match at {
                    CutOff::Client => "before it could be sent",
                    CutOff::Switch => "in the switch's queue",
                    CutOff::Worker => "before its worker could begin it",
                }
            ),
            Self::LongBudget => write!(
                f,
                "its budget is over {} ms, the most that a packet can tell: give it less, or none",
                Budget::LONGEST.0 / 1_000_000
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

impl ClientStats {
    /// Counts a task that ended refused.
    pub(super) const fn count_refused(&mut self, why: RefusedWhy) {
        self.refused += 1;
        match why {
            RefusedWhy::Late(CutOff::Client) => self.over_budget_here += 1,
            RefusedWhy::Late(CutOff::Switch) => self.over_budget_in_switch += 1,
            RefusedWhy::Late(CutOff::Worker) => self.over_budget_at_worker += 1,
            _ => {}
        }
    }
}

/// Why it is not known whether a task ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnknownWhy {
    /// The deadline passed before an attempt was answered.
    Deadline,
    /// The task ran, but the worker no longer keeps the reply, or cannot be reached for the rest of it.
    ReplyGone,
    /// An attempt reached a worker so late that the worker may have run the task earlier and forgotten it.
    /// The worker did not run it again.
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

/// What the driver has to do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this task to the switch. A driver may join tasks that leave at the same time in a
    /// [`Bundle`](super::Bundle).
    ToSwitch(Submit),
    /// Send these bytes of a task, in PARTs, to the worker that asked for them.
    Parts {
        /// The worker's request.
        need: Need,
        /// All of the task's bytes.
        payload: Payload,
    },
    /// Tell a worker that asked for a task's bytes that the task has ended and its bytes no longer exist.
    Gone {
        to: Endpoint,
        /// A PART without bytes.
        packet: Part,
    },
    /// Ask a worker for bytes of its reply. The driver fills in the address to which the worker sends them.
    Need { to: Endpoint, packet: Need },
    /// Make room for all bytes of a reply. Comes once for each handle before its [`Action::Forget`].
    Begin {
        /// The handle of the reply's bytes.
        at: Handle,
        payload: Payload,
        /// How many of the first bytes the packet that was handed in holds.
        have: u16,
    },
    /// Copy the PART that was handed in to this offset in a reply's bytes.
    Place {
        /// The handle of the reply's bytes.
        at: Handle,
        offset: u32,
    },
    /// Compare a reply's bytes with its descriptor, and call [`Client::checked`](super::Client::checked).
    Check {
        task: TaskId,
        /// The handle of the reply's bytes.
        at: Handle,
        payload: Payload,
    },
    /// A fetched reply's bytes are no longer needed. Comes after the `Done` that carries their handle.
    Forget(Handle),
    /// Tell the submitter the outcome. Comes exactly once for each task. If the reply is longer than its
    /// packet, its bytes were fetched and lie under its payload's handle.
    Done {
        /// The submitter's name for the task.
        tag: u64,
        task: TaskId,
        /// How many attempts were sent.
        attempts: u16,
        outcome: Outcome,
    },
    /// The task's bytes are no longer needed. Comes after the task's `Done`.
    Release(Handle),
    /// Contact the controller at once.
    Renew,
}

/// Counters since the client's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Tasks taken.
    pub submitted: u64,
    /// Tasks that were not taken ([`Busy`]).
    pub pushed_back: u64,
    /// Attempts sent, first ones and retries. One packet may carry several.
    pub sent: u64,
    /// Retries paid from the budget.
    pub retries_paid: u64,
    /// Retries sent after a doubled timeout although the budget was spent.
    pub retries_probing: u64,
    /// Retries outside the budget: after a new registration, after a wait for room in the share, or after a
    /// REJECT while this client's repeats may have taken the room.
    pub retries_free: u64,
    /// Attempts that were not answered within their timeout.
    pub timeouts: u64,
    /// REJECTs that counted.
    pub rejects: u64,
    /// NEEDs that the client answered.
    pub needs: u64,
    /// Replies longer than one packet, of which the client fetched the rest.
    pub long_replies: u64,
    /// Long replies whose missing bytes could not be had.
    pub long_replies_lost: u64,
    /// Packets for tasks that had ended, or that said nothing new.
    pub late: u64,
    /// Packets that cannot be for this client.
    pub foreign: u64,
    /// Requests to contact the controller.
    pub renewals: u64,
    /// Tasks that ended in a reply.
    pub replied: u64,
    /// Tasks that ended refused.
    pub refused: u64,
    /// Of these, tasks that were not sent, because the client had sent its share to a busy slice.
    pub refused_here: u64,
    /// Of these, tasks whose budget was spent at the client.
    pub over_budget_here: u64,
    /// Of these, tasks whose budget was spent in the switch.
    pub over_budget_in_switch: u64,
    /// Of these, tasks whose budget was spent at a worker.
    pub over_budget_at_worker: u64,
    /// Tasks that ended unknown.
    pub unknown: u64,
}
