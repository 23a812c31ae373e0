//! Who runs where since when, for whoever watches from another thread: how a coroutine is found that never
//! yields.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use sluice_host::orchestrator::{CoreId, ServiceId};
use sluice_wire::Nanos;

/// A coroutine that has run for long without a yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    pub core: CoreId,
    /// Whose; none if it is the batch service's.
    pub service: Option<ServiceId>,
    /// For how long by now.
    pub ran: Nanos,
}

/// What a core tells of the coroutine that it has resumed. The core writes, others read.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct CoreWatch {
    /// When it was resumed; 0 while none runs.
    since: AtomicU64,
    /// Whose it is; [`BATCH_SERVICE`] for the batch service's.
    service: AtomicU64,
    /// What the batch service got of the core's time.
    batch: AtomicU64,
}

/// No service's number.
const BATCH_SERVICE: u64 = u64::MAX;

impl CoreWatch {
    /// A coroutine of a service is resumed, or the batch service's.
    pub(crate) fn resumes(&self, service: Option<ServiceId>, now: Nanos) {
        self.service.store(service.map_or(BATCH_SERVICE, |service| service.index() as u64), Relaxed);
        self.since.store(now.0, Release);
    }

    pub(crate) fn is_back(&self) {
        self.since.store(0, Release);
    }

    /// The batch service got so much of the core's time by now.
    pub(crate) fn batch_took(&self, all: Nanos) {
        self.batch.store(all.0, Relaxed);
    }

    /// What the batch service got so far.
    pub(crate) fn batch_time(&self) -> Nanos {
        Nanos(self.batch.load(Relaxed))
    }

    /// The coroutine that has run for longer than this, if it has.
    pub(crate) fn overdue(&self, core: CoreId, longest: Nanos, now: Nanos) -> Option<Overdue> {
        let since = self.since.load(Acquire);
        let service = ServiceId::new(self.service.load(Relaxed) as usize);
        let ran = now.since(Nanos(since));
        let is_the_same = self.since.load(Acquire) == since;
        (since != 0 && is_the_same && ran > longest).then_some(Overdue { core, service, ran })
    }
}
