//! What a worker serves: the one trait that an application writes.
//!
//! A [`Service`] gets one task at a time on the worker's own thread and appends its answer to a buffer.
//! Everything else (packets, tokens, retries, repeats) is the worker driver's. A service may panic or return
//! an error: the client then gets a reply that says so, and the worker serves on.

use std::cell::Cell;
use std::fmt;

use sluice_wire::{Nanos, TaskId, TaskType};

/// The code that a worker runs for each task.
pub trait Service: Send {
    /// The kinds of task that this service understands.
    fn types(&self) -> Vec<TaskType>;

    /// Runs one task and appends its answer to `reply`, which comes empty.
    ///
    /// An error is the client's to read ([`sluice_wire::ReplyStatus::Failed`]); it is never retried. An
    /// answer longer than [`Task::reply_max`] is such an error too.
    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError>;

    /// Does a piece of the work that a server of many cores has beside its tasks, which it runs where no task
    /// waits (`--batch`); says whether there may be more. It calls `pause` as often as a task would. Most
    /// services have no such work.
    fn batch(&mut self, _pause: &dyn Fn()) -> bool {
        false
    }
}

impl<S: Service + ?Sized> Service for Box<S> {
    fn types(&self) -> Vec<TaskType> {
        (**self).types()
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        (**self).serve(task, reply)
    }

    fn batch(&mut self, pause: &dyn Fn()) -> bool {
        (**self).batch(pause)
    }
}

/// A service made of a function, for tasks of one type.
pub fn service_fn<F>(task_type: TaskType, serve: F) -> impl Service
where
    F: FnMut(Task<'_>, &mut Vec<u8>) -> Result<(), ServiceError> + Send,
{
    FnService { task_type, serve }
}

struct FnService<F> {
    task_type: TaskType,
    serve: F,
}

impl<F> Service for FnService<F>
where
    F: FnMut(Task<'_>, &mut Vec<u8>) -> Result<(), ServiceError> + Send,
{
    fn types(&self) -> Vec<TaskType> {
        vec![self.task_type]
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        (self.serve)(task, reply)
    }
}

/// One task, as its service sees it.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The client's bytes. They come from outside: nothing about them is certain.
    pub bytes: &'a [u8],
    /// What kind of work it is.
    pub task_type: TaskType,
    /// The task's name; the same for a repeat.
    pub id: TaskId,
    /// The longest answer, in bytes: 64 KiB.
    pub reply_max: usize,
    /// The longest answer that fits one packet. The client asks for the rest of a longer one, which takes a
    /// round trip more.
    pub packet_max: usize,
    held: &'a Cell<Nanos>,
    listener: Listener<'a>,
    pauser: Pauser<'a>,
}

/// Who lets others run where a service may pause.
#[derive(Clone, Copy)]
struct Pauser<'a>(Option<&'a dyn Fn()>);

impl fmt::Debug for Pauser<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "pauses" } else { "runs on" })
    }
}

/// Who hears what a service says of its end.
#[derive(Clone, Copy)]
struct Listener<'a>(Option<&'a dyn Fn(Nanos)>);

impl fmt::Debug for Listener<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "listens" } else { "nobody listens" })
    }
}

impl<'a> Task<'a> {
    /// A task over `bytes`; what the service asks of [`Task::hold`] lands in `held`.
    pub const fn new(bytes: &'a [u8], task_type: TaskType, reply_max: usize, held: &'a Cell<Nanos>) -> Self {
        let id = TaskId { incarnation: sluice_wire::Incarnation(0), sequence: sluice_wire::Serial(0) };
        let (listener, pauser) = (Listener(None), Pauser(None));
        Self { bytes, task_type, id, reply_max, packet_max: reply_max, held, listener, pauser }
    }

    /// The same task under its own name.
    #[must_use]
    pub const fn called(mut self, id: TaskId) -> Self {
        self.id = id;
        self
    }

    /// The same task where a packet takes so many bytes.
    #[must_use]
    pub const fn in_packets_of(mut self, packet_max: usize) -> Self {
        self.packet_max = packet_max;
        self
    }

    /// The same task for a service whose words of [`Task::left`] go to `listener`.
    #[must_use]
    pub const fn heard_by(mut self, listener: &'a dyn Fn(Nanos)) -> Self {
        self.listener = Listener(Some(listener));
        self
    }

    /// The same task on a core that `pauser` gives to others.
    #[must_use]
    pub const fn paused_by(mut self, pauser: &'a dyn Fn()) -> Self {
        self.pauser = Pauser(Some(pauser));
        self
    }

    /// A good place to let others run: on a server of many cores (`--cores`) the task yields here once it
    /// has run for 5 µs, and goes on when its turn comes; elsewhere nothing happens. It costs a look at the
    /// clock: say it every few hundred nanoseconds, such as for every key of a scan. What must not be
    /// interrupted, such as what holds a lock, must not span it.
    #[inline]
    pub fn pause(&self) {
        if let Pauser(Some(pause)) = self.pauser {
            pause();
        }
    }

    /// Says that about this much is left of the task, before dilation: the hook for early tokens. A worker
    /// that has them (`--early`) asks for its next task about a token's round trip before this one ends, so
    /// that it comes in time.
    ///
    /// Say it when the work begins and as it goes on, every few microseconds: it costs a look at the clock. A
    /// service that never says it is expected to take what tasks of the same type took, if those were alike.
    pub fn left(&self, left: Nanos) {
        if let Listener(Some(hear)) = self.listener {
            hear(left);
        }
    }

    /// Keeps the worker busy for `span` after `serve` returns, while it still takes packets.
    ///
    /// For services that stand for work instead of doing it. Dilation stretches the span like any service
    /// time.
    pub fn hold(&self, span: Nanos) {
        self.held.set(self.held.get() + span);
    }
}

/// Why a service could not answer a task. Its text goes to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ServiceError(String);

impl ServiceError {
    /// An error that says `why`.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_service_says_is_left_goes_to_its_listener_if_there_is_one() {
        let (held, heard) = (Cell::new(Nanos(0)), Cell::new(Nanos(0)));
        let task = Task::new(b"", TaskType(1), 100, &held);
        task.left(Nanos(5));
        task.heard_by(&|left| heard.set(left)).left(Nanos(7));
        assert_eq!((heard.get(), held.get()), (Nanos(7), Nanos(0)));
    }

    #[test]
    fn a_task_pauses_where_there_is_somebody_to_let_others_run() {
        let (held, paused) = (Cell::new(Nanos(0)), Cell::new(0));
        let task = Task::new(b"", TaskType(1), 100, &held);
        task.pause();
        task.paused_by(&|| paused.set(paused.get() + 1)).pause();
        assert_eq!(paused.get(), 1);
    }

    #[test]
    fn spans_that_a_service_holds_add_up() {
        let held = Cell::new(Nanos(0));
        let task = Task::new(b"", TaskType(1), 100, &held);
        task.hold(Nanos(3));
        task.hold(Nanos(4));
        assert_eq!(held.get(), Nanos(7));
    }
}
