//! Who runs where since when, for whoever watches from another thread: how a coroutine is found that never
//! yields.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use sluice_host::orchestrator::{CoreId, ServiceId};
use sluice_wire::Nanos;

/// A coroutine that has run for long without a yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// Where.
    pub core: CoreId,
    /// Whose.
    pub service: ServiceId,
    /// For how long by now.
    pub ran: Nanos,
}

/// What a core tells of the coroutine that it has resumed. The core writes, others read.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct CoreWatch {
    /// When it was resumed; 0 while none runs.
    since: AtomicU64,
    service: AtomicU64,
}

impl CoreWatch {
    pub(crate) fn resumes(&self, service: ServiceId, now: Nanos) {
        self.service.store(service.index() as u64, Relaxed);
        self.since.store(now.0, Release);
    }

    pub(crate) fn is_back(&self) {
        self.since.store(0, Release);
    }

    /// The coroutine that has run for longer than this, if it has.
    pub(crate) fn overdue(&self, core: CoreId, longest: Nanos, now: Nanos) -> Option<Overdue> {
        let since = self.since.load(Acquire);
        let service = ServiceId::new(self.service.load(Relaxed) as usize)?;
        let ran = now.since(Nanos(since));
        let is_the_same = self.since.load(Acquire) == since;
        (since != 0 && is_the_same && ran > longest).then_some(Overdue { core, service, ran })
    }
}
