//! How a worker is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::udp::Waker;

/// Stops a worker from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    asked: Arc<AtomicU8>,
    waker: Waker,
}

/// How a worker was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopOrder {
    Nothing,
    /// Finish the held tasks, leave, and end.
    Drain,
    /// End now.
    Abort,
}

impl Stopper {
    /// A stopper for the workers of the thread that `waker` wakes.
    pub fn new(waker: Waker) -> Self {
        Self { asked: Arc::new(AtomicU8::new(0)), waker }
    }

    /// The waker of the thread that is to end.
    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Asks the worker to finish the tasks that it holds and end; a second call ends it at once.
    pub fn stop(&self) {
        let more = |asked: u8| Some(asked.saturating_add(1));
        // The closure always returns a value, so the update cannot fail.
        self.asked.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok();
        self.waker.wake();
    }

    /// Whether a stop was asked for.
    pub fn is_asked(&self) -> bool {
        self.asked() != StopOrder::Nothing
    }

    pub(super) fn asked(&self) -> StopOrder {
        match self.asked.load(Ordering::Acquire) {
            0 => StopOrder::Nothing,
            1 => StopOrder::Drain,
            _ => StopOrder::Abort,
        }
    }
}
