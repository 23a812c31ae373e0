//! Records which coroutine runs on a core since when, so that another thread can find a coroutine that
//! never yields.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use sluice_host::orchestrator::{CoreId, ServiceId};
use sluice_wire::Nanos;

/// A coroutine that has run for too long without a yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    pub core: CoreId,
    /// The coroutine's service; `None` for the batch service.
    pub service: Option<ServiceId>,
    /// How long the coroutine has run.
    pub ran: Nanos,
}

/// What a core records about the coroutine that runs. The core writes, other threads read.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct CoreWatch {
    /// When the coroutine was resumed; 0 if none runs.
    since: AtomicU64,
    /// The coroutine's service; [`BATCH_SERVICE`] for the batch service.
    service: AtomicU64,
    /// How much of the core's time the batch service got.
    batch: AtomicU64,
}

/// No service's number.
const BATCH_SERVICE: u64 = u64::MAX;

impl CoreWatch {
    /// Records that a coroutine of a service was resumed; `None` for the batch service.
    pub(crate) fn record_resume(&self, service: Option<ServiceId>, now: Nanos) {
        self.service.store(service.map_or(BATCH_SERVICE, |service| service.index() as u64), Relaxed);
        self.since.store(now.0, Release);
    }

    pub(crate) fn record_return(&self) {
        self.since.store(0, Release);
    }

    /// Records how much time the batch service has got in all.
    pub(crate) fn batch_took(&self, all: Nanos) {
        self.batch.store(all.0, Relaxed);
    }

    /// How much time the batch service has got.
    pub(crate) fn batch_time(&self) -> Nanos {
        Nanos(self.batch.load(Relaxed))
    }

    /// The coroutine that has run for longer than `longest`, if there is one.
    pub(crate) fn overdue(&self, core: CoreId, longest: Nanos, now: Nanos) -> Option<Overdue> {
        let since = self.since.load(Acquire);
        let service = ServiceId::new(self.service.load(Relaxed) as usize);
        let ran = now.since(Nanos(since));
        let is_the_same = self.since.load(Acquire) == since;
        (since != 0 && is_the_same && ran > longest).then_some(Overdue { core, service, ran })
    }
}
