//! Waking a thread of cores that sleeps: a system call only if it does.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, fence};
use std::thread::{self, Thread};
use std::time::Duration;

/// Between the dispatcher and a thread of cores.
#[derive(Debug, Default)]
pub(crate) struct CoreBell {
    sleeper: OnceLock<Thread>,
    asleep: AtomicBool,
}

impl CoreBell {
    /// Something lies in a ring: the thread is woken if it sleeps.
    ///
    /// The fences put the entry before the look here, and the wish to sleep before the look there: one of
    /// both sees the other.
    pub(crate) fn ring(&self) {
        fence(SeqCst);
        if self.asleep.load(SeqCst)
            && let Some(sleeper) = self.sleeper.get()
        {
            sleeper.unpark();
        }
    }

    /// Sleeps this thread for `long` at most, unless there is something to do, as `is_idle` then denies.
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
