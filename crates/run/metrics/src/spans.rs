//! Histograms of spans of time with fixed buckets: powers of two from 1 µs, so that those of several
//! processes can be added.
//!
//! One thread counts in plain integers and publishes once a batch what has changed.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// How many buckets there are: up to 1 µs, 2 µs, 4 µs and so on to 8.4 s, and one for all that is longer.
pub const SPAN_BUCKETS: usize = 25;

/// The number of the bucket that holds a span.
const fn bucket_of(ns: u64) -> usize {
    let us = ns.div_ceil(1_000);
    let power = if us <= 1 { 0 } else { (u64::BITS - (us - 1).leading_zeros()) as usize };
    if power < SPAN_BUCKETS { power } else { SPAN_BUCKETS - 1 }
}

/// The counting thread's side of a histogram.
#[derive(Clone, Debug, Default)]
pub struct SpanTally {
    counts: [u64; SPAN_BUCKETS],
    sum_ns: u64,
    /// A bit for each bucket that is not published yet.
    changed: u32,
}

impl SpanTally {
    /// Counts a span.
    #[inline]
    pub const fn record(&mut self, ns: u64) {
        let bucket = bucket_of(ns);
        self.counts[bucket] += 1;
        self.sum_ns = self.sum_ns.wrapping_add(ns);
        self.changed |= 1 << bucket;
    }

    /// Makes what was counted visible to other threads. Only one thread may publish to one histogram.
    #[inline]
    pub fn publish(&mut self, to: &PublishedSpans) {
        if self.changed == 0 {
            return;
        }
        to.sum_ns.store(self.sum_ns, Ordering::Relaxed);
        while self.changed != 0 {
            let bucket = self.changed.trailing_zeros() as usize;
            to.counts[bucket].store(self.counts[bucket], Ordering::Relaxed);
            self.changed &= self.changed - 1;
        }
    }
}

/// A histogram that any thread can read.
#[derive(Debug, Default)]
pub struct PublishedSpans {
    counts: [AtomicU64; SPAN_BUCKETS],
    sum_ns: AtomicU64,
}

impl PublishedSpans {
    /// The values now.
    pub fn load(&self) -> SpanValue {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        SpanValue { counts, sum_ns: self.sum_ns.load(Ordering::Relaxed) }
    }
}

/// A histogram as it was at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanValue {
    /// How many spans each bucket holds.
    counts: Vec<u64>,
    sum_ns: u64,
}

impl SpanValue {
    /// Adds another one's spans.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counts.resize(SPAN_BUCKETS, 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
    }

    /// All spans together, in seconds.
    pub(crate) fn sum_s(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// How many spans there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The largest span of each bucket in seconds, and how many spans it holds; the last has no largest span.
    pub(crate) fn buckets(&self) -> Vec<(f64, u64)> {
        let bound = |bucket: usize| {
            if bucket + 1 == SPAN_BUCKETS { f64::INFINITY } else { (1_u64 << bucket) as f64 / 1e6 }
        };
        let count = |bucket: usize| self.counts.get(bucket).copied().unwrap_or(0);
        (0..SPAN_BUCKETS).map(|bucket| (bound(bucket), count(bucket))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_spans_up_to_its_bound_and_not_beyond() {
        let us = |us: u64| us * 1_000;
        for (ns, bucket) in [
            (0, 0),
            (us(1), 0),
            (us(1) + 1, 1),
            (us(2), 1),
            (us(2) + 1, 2),
            (us(1 << 23), 23),
            (us(1 << 23) + 1, 24),
            (u64::MAX, 24),
        ] {
            assert_eq!(bucket_of(ns), bucket, "{ns} ns");
        }
    }

    #[test]
    fn what_is_published_is_what_was_recorded() {
        let (mut tally, published) = (SpanTally::default(), PublishedSpans::default());
        tally.publish(&published);
        assert_eq!(published.load().count(), 0);
        for ns in [500, 1_500, 1_500, 9_000_000_000] {
            tally.record(ns);
        }
        assert_eq!(published.load().count(), 0, "it is not published yet");
        tally.publish(&published);
        let value = published.load();
        let buckets = value.buckets();
        assert_eq!((value.count(), buckets[0], buckets[1]), (4, (1e-6, 1), (2e-6, 2)));
        assert_eq!((buckets[23], buckets[24]), ((8.388_608, 0), (f64::INFINITY, 1)));
        assert!((value.sum_s() - 9.000_003_5).abs() < 1e-9, "{value:?}");
    }
}
