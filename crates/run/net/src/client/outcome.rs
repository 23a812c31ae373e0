//! How a task ended, as values.

use std::fmt;

use sluice_host::client as host;
use sluice_rpc::shown;
use sluice_wire::{Nanos, Reply, ReplyStatus, TaskId, WorkerId};

pub use sluice_host::client::{CutOff, RefusedWhy, UnknownWhy};

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTask {
    /// The task's name, if it was sent.
    pub task: Option<TaskId>,
    /// How many attempts were sent.
    pub attempts: u16,
    /// When the task ended, on the clock of [`crate::clock::Clock`]. For a reply, the kernel's timestamp of
    /// its arrival.
    pub at: Nanos,
    pub outcome: Outcome,
}

/// The outcome of a task: exactly one of three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A worker ran the task and answered.
    Reply(TaskReply),
    /// The task did not run: no attempt can have run.
    Refused(RefusedWhy),
    /// The task may have run.
    Unknown(UnknownWhy),
}

/// A worker's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskReply {
    /// The service's answer, or its error text.
    pub bytes: Vec<u8>,
    /// Whether the service failed or panicked.
    pub failed: bool,
    pub worker: WorkerId,
    /// How long the task waited in the switch's queue.
    pub switch_wait: Nanos,
    /// How long the task waited at the worker before its service began.
    pub worker_wait: Nanos,
    /// Service time.
    pub service: Nanos,
}

impl TaskReply {
    fn new(reply: &Reply, bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            failed: reply.status == ReplyStatus::Failed,
            worker: reply.worker,
            switch_wait: Nanos(reply.switch_wait_ns.into()),
            worker_wait: Nanos(reply.worker_wait_ns.into()),
            service: Nanos(reply.service_ns.into()),
        }
    }
}

impl Outcome {
    /// Converts the state machine's outcome; `bytes` are the bytes of the reply, if there is one, which are
    /// copied to `buffer`.
    pub(super) fn new(outcome: &host::Outcome, bytes: &[u8], buffer: impl FnOnce() -> Vec<u8>) -> Self {
        match outcome {
            host::Outcome::Reply(reply) => {
                let mut kept = buffer();
                kept.extend_from_slice(bytes);
                Self::Reply(TaskReply::new(reply, kept))
            }
            host::Outcome::Refused(why) => Self::Refused(*why),
            host::Outcome::Unknown(why) => Self::Unknown(*why),
        }
    }

    /// The reply's bytes; `None` unless the service succeeded.
    pub fn done(&self) -> Option<&[u8]> {
        match self {
            Self::Reply(answer) if !answer.failed => Some(&answer.bytes),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(answer) if answer.failed => {
                write!(f, "the service failed: {}", shown(&String::from_utf8_lossy(&answer.bytes)))
            }
            Self::Reply(answer) => write!(f, "{} bytes", answer.bytes.len()),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_reads_as_a_sentence_that_says_what_next() {
        use sluice_wire::{RejectReason, TaskType};
        let rejected = RejectReason::ALL.map(|reason| Outcome::Refused(RefusedWhy::Rejected(reason)));
        let refused = [
            RefusedWhy::NoSlice(TaskType(9)),
            RefusedWhy::NeverSent,
            RefusedWhy::TooLong,
            RefusedWhy::Busy { retry_after: Nanos(50_000) },
            RefusedWhy::LongBudget,
            RefusedWhy::Late(CutOff::Client),
            RefusedWhy::Late(CutOff::Switch),
            RefusedWhy::Late(CutOff::Worker),
        ];
        let unknown = [UnknownWhy::Deadline, UnknownWhy::ReplyGone, UnknownWhy::TooOld];
        let all =
            rejected.into_iter().chain(refused.map(Outcome::Refused)).chain(unknown.map(Outcome::Unknown));
        for outcome in all {
            let said = outcome.to_string();
            let names = ["QueueFull", "NoRoom", "NoWorkers", "UnknownType", "StaleTokens"];
            assert!(!names.iter().any(|name| said.contains(name)), "{said}");
            let (_, what) = said.split_once(": ").expect("which of the three, and why");
            assert!(what.contains(": ") && what.contains(' '), "nothing says what next: {said}");
        }
    }
}
