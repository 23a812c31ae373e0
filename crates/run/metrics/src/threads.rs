//! What a packet thread counts, for other threads to read.
//!
//! The thread counts as it likes, and publishes once a batch. Several threads of one process may count the
//! same, such as the clients of several spines: each has words of its own, and a scrape adds them up.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::families::{MetricFamily, MetricKind};
use crate::measured::MetricSample;
use crate::source::{Collecting, MetricSource};
use crate::spans::{PublishedSpans, SpanTally, SpanValue};

/// A counter or a gauge, and its label if it has one.
pub type CountRow = (MetricFamily, Option<(&'static str, &'static str)>);

/// The metrics of all threads that count the same.
#[derive(Debug)]
pub struct ThreadMetrics {
    counts: Vec<CountRow>,
    spans: Vec<MetricFamily>,
    threads: Mutex<Threads>,
}

#[derive(Debug)]
struct Threads {
    live: Vec<Arc<Words>>,
    /// What threads counted that have ended: a total does not fall because one ends.
    ended: Totals,
}

/// The words of one thread.
#[derive(Debug)]
struct Words {
    counts: Vec<AtomicU64>,
    spans: Vec<PublishedSpans>,
}

#[derive(Clone, Debug)]
struct Totals {
    counts: Vec<u64>,
    spans: Vec<SpanValue>,
}

impl ThreadMetrics {
    /// Metrics that nobody has counted yet.
    pub fn new(counts: Vec<CountRow>, spans: Vec<MetricFamily>) -> Self {
        let ended = Totals { counts: vec![0; counts.len()], spans: vec![SpanValue::default(); spans.len()] };
        Self { counts, spans, threads: Mutex::new(Threads { live: Vec::new(), ended }) }
    }

    /// The meter of one more thread.
    pub fn meter(&self) -> ThreadMeter {
        let words = Arc::new(Words {
            counts: self.counts.iter().map(|_| AtomicU64::new(0)).collect(),
            spans: self.spans.iter().map(|_| PublishedSpans::default()).collect(),
        });
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.live.push(Arc::clone(&words));
        ThreadMeter { words, tallies: vec![SpanTally::default(); self.spans.len()] }
    }

    fn values(&self) -> Vec<MetricSample> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let Threads { live, ended } = &mut *threads;
        // A meter that was dropped counts no more.
        let (left, gone) = mem::take(live).into_iter().partition(|words| Arc::strong_count(words) > 1);
        *live = left;
        for words in gone {
            ended.add(&words, |at| self.counts[at].0.kind() == MetricKind::Counter);
        }
        let mut all = ended.clone();
        for words in &*live {
            all.add(words, |_| true);
        }
        let counts = self.counts.iter().zip(all.counts).map(|((metric, label), value)| {
            let of = match metric.kind() {
                MetricKind::Gauge => MetricSample::level(*metric, value as f64),
                MetricKind::Counter | MetricKind::Histogram => MetricSample::count(*metric, value),
            };
            label.iter().fold(of, |of, (name, value)| of.with(name, *value))
        });
        let spans =
            self.spans.iter().zip(all.spans).map(|(metric, spans)| MetricSample::spans(*metric, spans));
        counts.chain(spans).collect()
    }
}

impl MetricSource for ThreadMetrics {
    fn collect(&self) -> Collecting<'_> {
        Box::pin(std::future::ready(self.values()))
    }
}

impl Totals {
    /// Adds a thread's words, of its counts those that `takes` says.
    fn add(&mut self, words: &Words, takes: impl Fn(usize) -> bool) {
        for (at, (sum, word)) in self.counts.iter_mut().zip(&words.counts).enumerate() {
            *sum += if takes(at) { word.load(Ordering::Relaxed) } else { 0 };
        }
        self.spans.iter_mut().zip(&words.spans).for_each(|(sum, spans)| sum.add(&spans.load()));
    }
}

/// A thread's side: what it has counted and not published.
#[derive(Debug)]
pub struct ThreadMeter {
    words: Arc<Words>,
    tallies: Vec<SpanTally>,
}

impl ThreadMeter {
    /// Counts a span in the histogram of this number.
    #[inline]
    pub fn record(&mut self, histogram: usize, ns: u64) {
        self.tallies[histogram].record(ns);
    }

    /// Makes these counts, in the order of their rows, and what was recorded visible to other threads.
    pub fn publish(&mut self, counts: &[u64]) {
        let words = self.words.counts.iter().zip(counts);
        words.for_each(|(word, count)| word.store(*count, Ordering::Relaxed));
        self.tallies.iter_mut().zip(&self.words.spans).for_each(|(tally, spans)| tally.publish(spans));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::MetricValue;

    #[test]
    fn totals_of_a_thread_that_has_ended_stay_and_its_levels_do_not() {
        let counts = vec![(MetricFamily::ClientSubmitted, None), (MetricFamily::ClientOutstanding, None)];
        let metrics = ThreadMetrics::new(counts, vec![MetricFamily::ClientLatency]);
        let (mut one, mut other) = (metrics.meter(), metrics.meter());
        one.record(0, 1_000);
        one.publish(&[3, 2]);
        other.record(0, 1_000);
        other.publish(&[4, 1]);
        let now = || {
            let of = |value: &MetricSample| match value.value() {
                MetricValue::Count(count) => *count,
                MetricValue::Level(level) => *level as u64,
                MetricValue::Spans(spans) => spans.count(),
            };
            metrics.values().iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(now(), [7, 3, 2]);
        drop(one);
        assert_eq!(now(), [7, 1, 2]);
        drop(other);
        assert_eq!((now(), now()), (vec![7, 0, 2], vec![7, 0, 2]));
    }
}
