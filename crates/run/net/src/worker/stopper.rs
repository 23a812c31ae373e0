//! How a worker is ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::udp::Waker;

/// Ends a worker from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    asked: Arc<AtomicU8>,
    waker: Waker,
}

/// What was asked of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopOrder {
    Nothing,
    /// Finish what is held, leave, and end.
    Drain,
    /// End now.
    Abort,
}

impl Stopper {
    /// What ends workers of a thread that this wakes.
    pub fn new(waker: Waker) -> Self {
        Self { asked: Arc::new(AtomicU8::new(0)), waker }
    }

    /// What wakes the thread that is to end.
    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Asks the worker to finish what it holds and end; asked again, it ends at once.
    pub fn stop(&self) {
        let more = |asked: u8| Some(asked.saturating_add(1));
        // The closure always gives a value, so that the update cannot fail.
        self.asked.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok();
        self.waker.wake();
    }

    /// Whether anything was asked.
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
