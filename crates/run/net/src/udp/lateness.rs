//! How late this machine was with what it held until its time.

use std::sync::atomic::{AtomicU64, Ordering};

use sluice_wire::Nanos;

/// How late datagrams left that were held until their time. It is this machine's share of what a dilated run
/// measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Datagrams that were held.
    pub datagrams: u64,
    /// How late they were, all together.
    pub total: Nanos,
    /// How late the latest was.
    pub longest: Nanos,
}

impl Lateness {
    /// Mean lateness of a datagram, ns.
    pub fn mean_ns(&self) -> f64 {
        self.total.0 as f64 / self.datagrams.max(1) as f64
    }

    /// These and those.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            datagrams: self.datagrams + other.datagrams,
            total: self.total + other.total,
            longest: self.longest.max(other.longest),
        }
    }

    /// What was counted since `before`; the longest is that of all time.
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

/// A thread's lateness, for others to read.
#[derive(Debug, Default)]
pub struct PublishedLateness {
    datagrams: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl PublishedLateness {
    /// Puts it there.
    pub fn store(&self, late: Lateness) {
        self.datagrams.store(late.datagrams, Ordering::Relaxed);
        self.total_ns.store(late.total.0, Ordering::Relaxed);
        self.longest_ns.store(late.longest.0, Ordering::Relaxed);
    }

    /// What was put there last.
    pub fn load(&self) -> Lateness {
        Lateness {
            datagrams: self.datagrams.load(Ordering::Relaxed),
            total: Nanos(self.total_ns.load(Ordering::Relaxed)),
            longest: Nanos(self.longest_ns.load(Ordering::Relaxed)),
        }
    }
}
