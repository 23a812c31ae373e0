//! How a task's outcome reaches its submitter.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use sluice_wire::Nanos;
use tokio::sync::oneshot;

use super::outcome::{EndedTask, Outcome, RefusedWhy, UnknownWhy};
use super::queue::{Completed, CompletionQueue};

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
    Queue(CompletionQueue, u64),
}

impl Completion {
    pub(super) fn pending() -> (Self, PendingTask) {
        let (sender, receiver) = oneshot::channel();
        (Self { to: Some(CompletionTarget::Pending(sender)), sent: false }, PendingTask(receiver))
    }

    pub(super) fn callback(callback: Callback) -> Self {
        Self { to: Some(CompletionTarget::Callback(callback)), sent: false }
    }

    pub(super) fn queue(queue: CompletionQueue, tag: u64) -> Self {
        Self { to: Some(CompletionTarget::Queue(queue, tag)), sent: false }
    }

    /// An empty buffer for the reply.
    pub(super) fn buffer(&self) -> Vec<u8> {
        match &self.to {
            Some(CompletionTarget::Queue(queue, _)) => queue.buffer(),
            _ => Vec::new(),
        }
    }

    /// Notes that the task was sent, so it may run from now on.
    pub(super) const fn sent(&mut self) {
        self.sent = true;
    }

    /// Reports the outcome. Returns the queue to ring, if it went to one: once for many outcomes.
    pub(super) fn tell(mut self, ended: EndedTask) -> Option<CompletionQueue> {
        self.complete(ended)
    }

    fn complete(&mut self, ended: EndedTask) -> Option<CompletionQueue> {
        match self.to.take()? {
            // The submitter may have dropped the `PendingTask`.
            CompletionTarget::Pending(sender) => drop(sender.send(ended)),
            CompletionTarget::Callback(callback) => call(callback, ended),
            CompletionTarget::Queue(queue, tag) => {
                queue.put(Completed { tag, ended });
                return Some(queue);
            }
        }
        None
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
        if let Some(queue) = self.complete(ended) {
            queue.ring();
        }
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
