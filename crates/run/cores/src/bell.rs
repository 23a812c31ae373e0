//! Wakes a sleeping thread of cores; makes a system call only if the thread sleeps.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, fence};
use std::thread::{self, Thread};
use std::time::Duration;

/// A wake-up signal between the dispatcher and a thread of cores.
#[derive(Debug, Default)]
pub(crate) struct CoreBell {
    sleeper: OnceLock<Thread>,
    asleep: AtomicBool,
}

impl CoreBell {
    /// Wakes the thread if it sleeps; the caller has put something into a ring.
    ///
    /// The fences order the ring's entry before the check of the sleep flag here, and the sleep flag before
    /// the check of the ring in the thread. So at least one side sees the other's write.
    pub(crate) fn ring(&self) {
        fence(SeqCst);
        if self.asleep.load(SeqCst)
            && let Some(sleeper) = self.sleeper.get()
        {
            sleeper.unpark();
        }
    }

    /// Sleeps for at most `long`, unless `is_idle` returns false.
    pub(crate) fn sleep(&self, long: Option<Duration>, is_idle: impl FnOnce() -> bool) {
        self.sleeper.get_or_init(thread::current);
        self.asleep.store(true, SeqCst);
        fence(SeqCst);
        if is_idle() {
            match long {
                Some(long) => thread::park_timeout(long),
                None => thread::park(),
            }
        }
        self.asleep.store(false, SeqCst);
    }
}
