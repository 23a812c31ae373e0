//! What became of a task, as the protocols tell it: one word for programs, one sentence for people, and
//! whether the task may have run.

use std::fmt;
use std::time::Duration;

use sluice_net::client::{Outcome, RefusedWhy, UnknownWhy};
use sluice_rpc::shown;
use sluice_wire::RejectReason;

/// Why there is no good reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDone {
    /// What a client can make of it.
    pub kind: NotDoneKind,
    /// The reason in one word, the same in all protocols and languages.
    pub word: &'static str,
    /// The reason in a sentence.
    pub text: String,
    /// After this time another task has a chance, if that is known.
    pub retry_after: Option<Duration>,
}

/// What a client can make of a task without a good reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDoneKind {
    /// It certainly did not run: there is more to do than the rack can. Send less.
    Busy,
    /// It certainly did not run. It may be sent again, later.
    NotNow,
    /// It certainly did not run, and would not the next time.
    Never,
    /// It may have run, or may run yet.
    Unknown,
    /// It ran, and its service says that it failed.
    Failed,
}

impl NotDoneKind {
    /// The kind in the words of [`Outcome`].
    pub const fn outcome(self) -> CommandOutcome {
        match self {
            Self::Busy | Self::NotNow | Self::Never => CommandOutcome::Refused,
            Self::Unknown => CommandOutcome::Unknown,
            Self::Failed => CommandOutcome::Failed,
        }
    }
}

/// How a command or a request ended, for counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutcome {
    /// A good reply of a worker.
    Done,
    /// Answered by the gateway alone.
    Answered,
    /// The gateway refused it: it is no task.
    Malformed,
    /// The service failed.
    Failed,
    /// The rack refused a task of it, which certainly did not run.
    Refused,
    /// A task of it may have run.
    Unknown,
}

impl CommandOutcome {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Done, Self::Answered, Self::Malformed, Self::Failed, Self::Refused, Self::Unknown];

    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Answered => "answered",
            Self::Malformed => "malformed",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }
}

impl NotDone {
    /// The bytes of a good reply, or why there is none.
    ///
    /// # Errors
    /// For an outcome that is no good reply.
    pub fn done(outcome: Outcome) -> Result<Vec<u8>, Self> {
        match outcome {
            Outcome::Reply(reply) if !reply.failed => Ok(reply.bytes),
            Outcome::Reply(reply) => Err(Self {
                kind: NotDoneKind::Failed,
                word: "failed",
                text: shown(&String::from_utf8_lossy(&reply.bytes)),
                retry_after: None,
            }),
            Outcome::Refused(why) => Err(Self::refused(why)),
            Outcome::Unknown(why) => Err(Self::unknown(why)),
        }
    }

    fn refused(why: RefusedWhy) -> Self {
        use RefusedWhy::{
            Busy, Late, LongBudget, NeverSent, NoClass, NoSlice, Rejected, TooLong, UnknownLabel,
        };
        use RejectReason::{NoWorkers, StaleTokens, UnknownType, Unserved};
        let retry_after = match why {
            Busy { retry_after } => Some(Duration::from_nanos(retry_after.0)),
            _ => None,
        };
        let kind = match why {
            Rejected(NoWorkers | StaleTokens | Unserved) | NeverSent => NotDoneKind::NotNow,
            Rejected(UnknownType) | NoSlice(_) | LongBudget | TooLong | UnknownLabel | NoClass { .. } => {
                NotDoneKind::Never
            }
            Busy { .. } | Late(_) | Rejected(_) => NotDoneKind::Busy,
        };
        Self { kind, word: why.word(), text: why.to_string(), retry_after }
    }

    fn unknown(why: UnknownWhy) -> Self {
        Self { kind: NotDoneKind::Unknown, word: why.word(), text: why.to_string(), retry_after: None }
    }

    /// A task that was not taken because the gateway ends.
    pub(crate) fn ending() -> Self {
        Self::plain(NotDoneKind::NotNow, "closed", "the gateway ends: send it to another one")
    }

    /// A task for which there was no room until its deadline.
    pub(crate) fn crowded() -> Self {
        let text = "its deadline passed before there was room for it: give it a later one, or send less";
        Self::plain(NotDoneKind::Busy, "never-sent", text)
    }

    /// A task whose deadline passed.
    pub(crate) fn overdue() -> Self {
        Self::unknown(UnknownWhy::Deadline)
    }

    /// A task with more bytes than one may have.
    pub(crate) fn too_long() -> Self {
        Self::refused(RefusedWhy::TooLong)
    }

    fn plain(kind: NotDoneKind, word: &'static str, text: &str) -> Self {
        Self { kind, word, text: text.to_owned(), retry_after: None }
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ran = match self.kind {
            NotDoneKind::Busy | NotDoneKind::NotNow | NotDoneKind::Never => "it did not run",
            NotDoneKind::Unknown => "it may have run, or may run yet",
            NotDoneKind::Failed => "its service failed",
        };
        write!(f, "{ran}: {}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_net::client::TaskReply;
    use sluice_wire::{Nanos, TaskType};

    #[test]
    fn each_refusal_says_that_the_task_did_not_run_and_each_unknown_that_it_may_have() {
        let rejected = RejectReason::ALL.map(RefusedWhy::Rejected);
        let others = [
            RefusedWhy::NoSlice(TaskType(9)),
            RefusedWhy::Busy { retry_after: Nanos(50_000) },
            RefusedWhy::NeverSent,
            RefusedWhy::LongBudget,
            RefusedWhy::TooLong,
            RefusedWhy::UnknownLabel,
            RefusedWhy::NoClass { priority: 4, classes: 4 },
        ];
        for why in rejected.into_iter().chain(others) {
            let not_done = NotDone::done(Outcome::Refused(why)).expect_err("refused");
            assert!(not_done.to_string().starts_with("it did not run: "), "{not_done}");
            assert_eq!(not_done.kind.outcome(), CommandOutcome::Refused);
        }
        for why in [UnknownWhy::Deadline, UnknownWhy::ReplyGone, UnknownWhy::TooOld] {
            let not_done = NotDone::done(Outcome::Unknown(why)).expect_err("unknown");
            assert!(not_done.to_string().starts_with("it may have run"), "{not_done}");
        }
        let busy = NotDone::done(Outcome::Refused(RefusedWhy::Busy { retry_after: Nanos(50_000) }));
        assert_eq!(busy.expect_err("busy").retry_after, Some(Duration::from_micros(50)));
    }

    #[test]
    fn a_failure_is_one_line_whatever_a_service_says() {
        let failed = Outcome::Reply(TaskReply {
            bytes: b"bad\r\n+OK\r\n".to_vec(),
            failed: true,
            ..Default::default()
        });
        let said = NotDone::done(failed).expect_err("failed").to_string();
        assert!(!said.contains(['\r', '\n']) && said.starts_with("its service failed: bad"), "{said}");
    }
}
