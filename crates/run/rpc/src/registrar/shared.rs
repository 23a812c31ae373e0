//! What a host's thread and its registrar's thread share: events in one direction, requests in the other.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam_queue::ArrayQueue;
use sluice_wire::{Nanos, Serial};
use tokio::sync::Notify;

use super::role::Role;

/// How many events may wait for a host that does not take them. The oldest are dropped; each event is soon
/// repeated.
const EVENTS_MAX: usize = 32;

/// An event about a host's registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrarEvent<G> {
    /// The host has this registration, new or renewed.
    Granted(G),
    /// Not registered yet; the registrar asks again by itself.
    Wait {
        why: String,
        /// The time until the registrar asks again.
        retry_after: Nanos,
    },
    /// Refused; the same request would be refused again. The registrar still asks again after a pause,
    /// since the cause may be corrected. A host that was never registered should end and report why.
    Refused {
        /// The reason, and what would help.
        why: String,
    },
    /// The controller cannot be reached; the registrar keeps trying. Reported once for each loss.
    Lost { why: String },
    /// The registration has ended, as [`leave`](super::Registrar::leave) asked for. The last event.
    Left {
        /// A worker's last `sent` number, if it is known: the worker may end once all tasks up to it have
        /// come.
        final_sent: Option<Serial>,
    },
}

/// The state that the host's thread and the registrar's thread share.
pub(super) struct RegistrarShared<R: Role> {
    hello: Mutex<R::Hello>,
    pub(super) floor: AtomicU32,
    /// The host asks for a call at once.
    pub(super) hurry: AtomicBool,
    pub(super) leaving: AtomicBool,
    pub(super) stopped: AtomicBool,
    /// Notified after each change of the flags.
    pub(super) bell: Notify,
    pub(super) events: ArrayQueue<RegistrarEvent<R::Grant>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl<R: Role> RegistrarShared<R> {
    pub(super) fn new(hello: R::Hello, floor: Serial, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            hello: Mutex::new(hello),
            floor: AtomicU32::new(floor.0),
            hurry: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            bell: Notify::new(),
            events: ArrayQueue::new(EVENTS_MAX),
            wake,
        }
    }

    pub(super) fn push_event(&self, event: RegistrarEvent<R::Grant>) {
        self.events.force_push(event);
        (self.wake)();
    }

    pub(super) fn hello(&self) -> R::Hello {
        self.hello.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_hello(&self, hello: R::Hello) {
        // Nothing that can panic happens under this lock.
        *self.hello.lock().unwrap_or_else(PoisonError::into_inner) = hello;
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
