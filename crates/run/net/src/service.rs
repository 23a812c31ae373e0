//! What a worker serves: the one trait that an application implements.
//!
//! A [`Service`] gets one task at a time on the worker's thread and appends its answer to a buffer. The
//! worker's driver handles everything else (packets, tokens, retries, repeats). A service may panic or
//! return an error: the client then gets a reply that says so, and the worker serves the next task.

use std::cell::Cell;
use std::fmt;

use sluice_wire::{Nanos, TaskId, TaskType};

/// The code that a worker runs for each task.
pub trait Service: Send {
    /// The task types that this service understands.
    fn types(&self) -> Vec<TaskType>;

    /// Runs one task and appends its answer to `reply`, which is empty.
    ///
    /// # Errors
    /// The error goes to the client ([`sluice_wire::ReplyStatus::Failed`]) and is never retried. An answer
    /// longer than [`Task::reply_max`] is such an error too.
    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError>;

    /// Does one piece of batch work, which a server of many cores (`--batch`) runs when no task waits.
    /// Returns whether more work may be left. Like a task, it should call `pause` often. Most services have
    /// no batch work.
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

/// A service from a function, for tasks of one type.
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

/// A task, as its service sees it.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The client's bytes. They come from outside, so they may be anything.
    pub bytes: &'a [u8],
    pub task_type: TaskType,
    /// The task's name; a repeat has the same name.
    pub id: TaskId,
    /// The longest answer, in bytes: 64 KiB.
    pub reply_max: usize,
    /// The longest answer that fits into one packet. The client fetches the rest of a longer one, which
    /// takes another round trip.
    pub packet_max: usize,
    held: &'a Cell<Nanos>,
    listener: Listener<'a>,
    pauser: Pauser<'a>,
}

/// A function that lets other tasks run when a service pauses.
#[derive(Clone, Copy)]
struct Pauser<'a>(Option<&'a dyn Fn()>);

impl fmt::Debug for Pauser<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "pauses" } else { "runs on" })
    }
}

/// A function that gets a service's statements about its remaining time.
#[derive(Clone, Copy)]
struct Listener<'a>(Option<&'a dyn Fn(Nanos)>);

impl fmt::Debug for Listener<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "listens" } else { "nobody listens" })
    }
}

impl<'a> Task<'a> {
    /// A task with these bytes. `held` receives the span that the service passes to [`Task::hold`].
    pub const fn new(bytes: &'a [u8], task_type: TaskType, reply_max: usize, held: &'a Cell<Nanos>) -> Self {
        let id = TaskId { incarnation: sluice_wire::Incarnation(0), sequence: sluice_wire::Serial(0) };
        let (listener, pauser) = (Listener(None), Pauser(None));
        Self { bytes, task_type, id, reply_max, packet_max: reply_max, held, listener, pauser }
    }

    /// This task, with the name `id`.
    #[must_use]
    pub const fn called(mut self, id: TaskId) -> Self {
        self.id = id;
        self
    }

    /// This task, where a packet holds `packet_max` bytes of answer.
    #[must_use]
    pub const fn in_packets_of(mut self, packet_max: usize) -> Self {
        self.packet_max = packet_max;
        self
    }

    /// This task, whose `listener` gets the spans that the service passes to [`Task::left`].
    #[must_use]
    pub const fn with_listener(mut self, listener: &'a dyn Fn(Nanos)) -> Self {
        self.listener = Listener(Some(listener));
        self
    }

    /// This task, whose `pauser` runs at each [`Task::pause`].
    #[must_use]
    pub const fn with_pauser(mut self, pauser: &'a dyn Fn()) -> Self {
        self.pauser = Pauser(Some(pauser));
        self
    }

    /// A point at which other tasks may run. On a server of many cores (`--cores`) the task yields here if
    /// it has run for 5 µs, and continues when its turn comes; elsewhere nothing happens. It costs one read
    /// of the clock: call it every few hundred nanoseconds, such as for every key of a scan. Do not call it
    /// while holding a lock.
    #[inline]
    pub fn pause(&self) {
        if let Pauser(Some(pause)) = self.pauser {
            pause();
        }
    }

    /// States about how much time the task still needs, before dilation. This enables early tokens
    /// (`--early`): the worker asks for its next task about a token's round trip before this one ends, so
    /// that the next task comes in time.
    ///
    /// Call it at the start of the work and every few microseconds after; it costs one read of the clock.
    /// For a service that never calls it, the worker expects the time that earlier tasks of the type took,
    /// if those were alike.
    pub fn left(&self, left: Nanos) {
        if let Listener(Some(hear)) = self.listener {
            hear(left);
        }
    }

    /// Keeps the worker busy for `span` after `serve` returns; it still receives packets.
    ///
    /// For services that emulate work instead of doing it. Dilation stretches the span like any service
    /// time.
    pub fn hold(&self, span: Nanos) {
        self.held.set(self.held.get() + span);
    }
}

/// Why a service could not answer a task. The text goes to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ServiceError(String);

impl ServiceError {
    /// An error with the text `why`.
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
        task.with_listener(&|left| heard.set(left)).left(Nanos(7));
        assert_eq!((heard.get(), held.get()), (Nanos(7), Nanos(0)));
    }

    #[test]
    fn a_task_pauses_where_there_is_somebody_to_let_others_run() {
        let (held, paused) = (Cell::new(Nanos(0)), Cell::new(0));
        let task = Task::new(b"", TaskType(1), 100, &held);
        task.pause();
        task.with_pauser(&|| paused.set(paused.get() + 1)).pause();
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
