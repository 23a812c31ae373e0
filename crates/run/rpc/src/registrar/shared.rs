//! What goes between a host's thread and its registrar's: events one way, wishes the other.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam_queue::ArrayQueue;
use sluice_wire::{Nanos, Serial};
use tokio::sync::Notify;

use super::role::Role;

/// Events that may wait for a host that does not look; the oldest go first, and each is soon said again.
const EVENTS_MAX: usize = 32;

/// What a host learns of its registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrarEvent<G> {
    /// It has this registration, new or renewed.
    Granted(G),
    /// Not yet; it is asked again by itself.
    Wait {
        why: String,
        /// When it is asked again, from now.
        retry_after: Nanos,
    },
    /// No, and the same again would not help. It is asked again by itself all the same, after a pause, since
    /// what was wrong may be mended. A host that never was registered had better end and say why.
    Refused {
        /// Why, and what would help.
        why: String,
    },
    /// The controller cannot be reached; it is tried again by itself. Said once, until it answers again.
    Lost { why: String },
    /// There is no registration any more, as [`leave`](super::Registrar::leave) asked for. The last event.
    Left {
        /// A worker's last `sent` number, if it is known: it may go when all up to this came.
        final_sent: Option<Serial>,
    },
}

/// What the host's thread and the registrar's share.
pub(super) struct RegistrarShared<R: Role> {
    hello: Mutex<R::Hello>,
    pub(super) floor: AtomicU32,
    /// The host wants a call at once.
    pub(super) hurry: AtomicBool,
    pub(super) leaving: AtomicBool,
    pub(super) stopped: AtomicBool,
    /// Rung after each change of the flags.
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

    pub(super) fn say(&self, event: RegistrarEvent<R::Grant>) {
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
