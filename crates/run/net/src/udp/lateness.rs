//! How late this machine sent datagrams that it had held until a due time.

use std::sync::atomic::{AtomicU64, Ordering};

use sluice_wire::Nanos;

/// The lateness of held datagrams. It is this machine's own contribution to what a dilated run measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Datagrams that were held.
    pub datagrams: u64,
    /// The sum of their lateness.
    pub total: Nanos,
    /// The largest lateness.
    pub longest: Nanos,
}

impl Lateness {
    /// The mean lateness of a datagram, in ns.
    pub fn mean_ns(&self) -> f64 {
        self.total.0 as f64 / self.datagrams.max(1) as f64
    }

    /// The lateness of the datagrams of both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            datagrams: self.datagrams + other.datagrams,
            total: self.total + other.total,
            longest: self.longest.max(other.longest),
        }
    }

    /// The lateness since `before`; the largest value is that of all time.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            datagrams: self.datagrams - before.datagrams,
            total: self.total.since(before.total),
            longest: self.longest,
        }
    }

    pub(super) fn add(&mut self, late: Nanos) {
        self.datagrams += 1;
        self.total = self.total + late;
        self.longest = self.longest.max(late);
    }
}

/// A thread's lateness, readable by other threads.
#[derive(Debug, Default)]
pub struct PublishedLateness {
    datagrams: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl PublishedLateness {
    /// Publishes the lateness.
    pub fn store(&self, late: Lateness) {
        self.datagrams.store(late.datagrams, Ordering::Relaxed);
        self.total_ns.store(late.total.0, Ordering::Relaxed);
        self.longest_ns.store(late.longest.0, Ordering::Relaxed);
    }

    /// The last published value.
    pub fn load(&self) -> Lateness {
        Lateness {
            datagrams: self.datagrams.load(Ordering::Relaxed),
            total: Nanos(self.total_ns.load(Ordering::Relaxed)),
            longest: Nanos(self.longest_ns.load(Ordering::Relaxed)),
        }
    }
}
