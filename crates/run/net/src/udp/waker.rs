//! Wakes a thread that waits for packets.
//!
//! A wake-up costs a system call only if the thread sleeps: the thread sets a flag before it sleeps, and
//! then checks once more whether it was woken.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// Ends the wait of one socket's owner, from any thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Bell>);

#[derive(Debug)]
struct Bell {
    event: OwnedFd,
    called: AtomicBool,
    asleep: AtomicBool,
}

impl Waker {
    pub(super) fn new() -> io::Result<Self> {
        let event = sys::event_fd()?;
        Ok(Self(Arc::new(Bell { event, called: AtomicBool::new(false), asleep: AtomicBool::new(false) })))
    }

    /// Ends the present wait, or the next one before it begins.
    pub fn wake(&self) {
        self.0.called.store(true, Ordering::SeqCst);
        if self.0.asleep.load(Ordering::SeqCst) {
            sys::ring(self.0.event.as_fd());
        }
    }

    /// Whether the waker was called since the last time this was asked.
    pub(super) fn take(&self) -> bool {
        self.0.called.load(Ordering::Relaxed) && self.0.called.swap(false, Ordering::SeqCst)
    }

    /// Runs `sleep` with the event to wait for, unless the waker was already called. Returns whether the
    /// waker was called.
    pub(super) fn sleep(&self, sleep: impl FnOnce(BorrowedFd<'_>)) -> bool {
        self.0.asleep.store(true, Ordering::SeqCst);
        if !self.0.called.load(Ordering::SeqCst) {
            sleep(self.0.event.as_fd());
        }
        self.0.asleep.store(false, Ordering::SeqCst);
        self.take()
    }
}
