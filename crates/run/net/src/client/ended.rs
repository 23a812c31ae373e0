//! How a task's outcome reaches its submitter.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use sluice_host::client as host;
use sluice_rpc::shown;
use sluice_wire::{Nanos, Reply, ReplyStatus, TaskId, WorkerId};
use tokio::sync::oneshot;

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
    fn new(reply: &Reply, bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            failed: reply.status == ReplyStatus::Failed,
            worker: reply.worker,
            switch_wait: Nanos(reply.switch_wait_ns.into()),
            worker_wait: Nanos(reply.worker_wait_ns.into()),
            service: Nanos(reply.service_ns.into()),
        }
    }
}

impl Outcome {
    /// Converts the state machine's outcome; `bytes` are the bytes of the reply, if there is one.
    pub(super) fn new(outcome: &host::Outcome, bytes: &[u8]) -> Self {
        match outcome {
            host::Outcome::Reply(reply) => Self::Reply(TaskReply::new(reply, bytes)),
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

/// A submitted task. Wait for its outcome in a thread ([`PendingTask::wait`]) or as a future.
///
/// Dropping this value does not cancel the task.
#[derive(Debug)]
#[must_use = "the outcome is lost otherwise"]
pub struct PendingTask(oneshot::Receiver<EndedTask>);

impl PendingTask {
    /// Blocks until the task ends, which is at its deadline at the latest. Must not be called inside an
    /// async runtime.
    pub fn wait(self) -> EndedTask {
        self.0.blocking_recv().unwrap_or_else(|_| never_sent())
    }
}

impl Future for PendingTask {
    type Output = EndedTask;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<EndedTask> {
        Pin::new(&mut self.0).poll(context).map(|ended| ended.unwrap_or_else(|_| never_sent()))
    }
}

/// A function that is called with the outcome.
pub(super) type Callback = Box<dyn FnOnce(EndedTask) + Send>;

/// Reports the outcome of one task to its submitter, exactly once. Dropping it reports an outcome too.
pub(super) struct Completion {
    to: Option<CompletionTarget>,
    sent: bool,
}

enum CompletionTarget {
    Pending(oneshot::Sender<EndedTask>),
    Callback(Callback),
}

impl Completion {
    pub(super) fn pending() -> (Self, PendingTask) {
        let (sender, receiver) = oneshot::channel();
        (Self { to: Some(CompletionTarget::Pending(sender)), sent: false }, PendingTask(receiver))
    }

    pub(super) fn callback(callback: Callback) -> Self {
        Self { to: Some(CompletionTarget::Callback(callback)), sent: false }
    }

    /// Notes that the task was sent, so it may run from now on.
    pub(super) const fn sent(&mut self) {
        self.sent = true;
    }

    pub(super) fn tell(mut self, ended: EndedTask) {
        self.complete(ended);
    }

    fn complete(&mut self, ended: EndedTask) {
        match self.to.take() {
            // The submitter may have dropped the `PendingTask`.
            Some(CompletionTarget::Pending(sender)) => drop(sender.send(ended)),
            Some(CompletionTarget::Callback(callback)) => call(callback, ended),
            None => {}
        }
    }
}

/// Calls a callback; its panic must not end the packet thread.
fn call(callback: Callback, ended: EndedTask) {
    if catch_unwind(AssertUnwindSafe(|| callback(ended))).is_err() {
        sluice_log::log!(CallbackPanicked, "a task's callback panicked");
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        let unknown = Outcome::Unknown(UnknownWhy::Deadline);
        let ended = if self.sent { EndedTask { outcome: unknown, ..never_sent() } } else { never_sent() };
        self.complete(ended);
    }
}

fn never_sent() -> EndedTask {
    EndedTask { task: None, attempts: 0, at: Nanos(0), outcome: Outcome::Refused(RefusedWhy::NeverSent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_teller_that_is_dropped_says_whether_the_task_may_have_run() {
        let (completion, pending) = Completion::pending();
        drop(completion);
        assert_eq!(pending.wait().outcome, Outcome::Refused(RefusedWhy::NeverSent));

        let (mut completion, pending) = Completion::pending();
        completion.sent();
        drop(completion);
        assert_eq!(pending.wait().outcome, Outcome::Unknown(UnknownWhy::Deadline));
    }

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

    #[test]
    fn a_callback_is_called_once_and_may_panic() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let completion = Completion::callback(Box::new(move |ended| {
            sender.send(ended.attempts).expect("the test listens");
            panic!("as services do");
        }));
        completion.tell(EndedTask { attempts: 7, ..never_sent() });
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [7]);
    }
}
