//! What is sampled of one worker in an interval.

use alloc::vec::Vec;

use sluice_wire::Nanos;

/// Slowdowns are kept in thousandths.
const MILLI: u64 = 1_000;
/// What a p99 leaves above itself: one part in this many.
const TAIL: u64 = 100;

/// What a worker knows of a task that it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// What it waited in the switch (t_s).
    pub switch_wait: Nanos,
    /// The tasks that were left waiting there when it was dispatched (L).
    pub occupancy: u32,
    /// What it waited at the worker (t_w).
    pub worker_wait: Nanos,
    /// What its service took (t_p).
    pub service: Nanos,
}

/// What an interval's samples come to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Numbers {
    /// How many samples there are.
    pub samples: u64,
    /// How many tasks ended.
    pub tasks: u64,
    /// The p99 of (t_s + t_w + t_p) / t_p (S).
    pub slowdown_p99: f64,
    /// The mean of t_w / (t_s + t_w) over samples that waited (r); 0 if none did.
    pub worker_share: f64,
    /// The p99 of L (Q).
    pub occupancy_p99: u32,
    /// The share of the interval in which the worker was blocked.
    pub idle_share: f64,
}

/// The samples of one worker: each distinct one once, with how often it was seen.
#[derive(Debug)]
pub(super) struct Gauge {
    last: Option<Sample>,
    /// Samples are taken up to here.
    taken_to: Nanos,
    tasks: u64,
    slowdowns: Vec<(u32, u32)>,
    occupancies: Vec<(u32, u32)>,
    share_sum: f64,
    waited: u64,
    blocked: Nanos,
}

impl Gauge {
    pub(super) const fn new(now: Nanos) -> Self {
        Self {
            last: None,
            taken_to: now,
            tasks: 0,
            slowdowns: Vec::new(),
            occupancies: Vec::new(),
            share_sum: 0.0,
            waited: 0,
            blocked: Nanos(0),
        }
    }

    #[inline]
    pub(super) fn finished(&mut self, now: Nanos, every: Nanos, sample: Sample) {
        self.take(now, every);
        self.last = Some(sample);
        self.tasks += 1;
    }

    #[inline]
    pub(super) fn idled(&mut self, blocked: Nanos) {
        self.blocked = self.blocked + blocked;
    }

    /// The interval ends: its numbers; the next one begins.
    pub(super) fn close(&mut self, now: Nanos, every: Nanos, interval: Nanos) -> Numbers {
        self.take(now, every);
        let samples = self.slowdowns.iter().map(|(_, times)| u64::from(*times)).sum();
        let numbers = Numbers {
            samples,
            tasks: self.tasks,
            slowdown_p99: f64::from(p99(&mut self.slowdowns, samples)) / MILLI as f64,
            worker_share: if self.waited == 0 { 0.0 } else { self.share_sum / self.waited as f64 },
            occupancy_p99: p99(&mut self.occupancies, samples),
            idle_share: (self.blocked.0 as f64 / interval.0.max(1) as f64).min(1.0),
        };
        let (last, slowdowns) = (self.last, core::mem::take(&mut self.slowdowns));
        let occupancies = core::mem::take(&mut self.occupancies);
        *self = Self { last, slowdowns, occupancies, ..Self::new(now) };
        self.slowdowns.clear();
        self.occupancies.clear();
        numbers
    }

    /// The last task is what every sample since then has shown.
    #[inline]
    fn take(&mut self, now: Nanos, every: Nanos) {
        let times = now.0 / every.0 - self.taken_to.0 / every.0;
        self.taken_to = now;
        let Some(sample) = self.last.filter(|_| times > 0) else { return };
        let weight = u32::try_from(times).unwrap_or(u32::MAX);
        let wait = sample.switch_wait.0 + sample.worker_wait.0;
        let slowdown = (wait + sample.service.0) * MILLI / sample.service.0.max(1);
        self.slowdowns.push((u32::try_from(slowdown).unwrap_or(u32::MAX), weight));
        self.occupancies.push((sample.occupancy, weight));
        if wait > 0 {
            self.share_sum += times as f64 * sample.worker_wait.0 as f64 / wait as f64;
            self.waited += times;
        }
    }
}

/// The least value that at most a hundredth of the samples exceed; 0 if there are none. Only the values above it are
/// sorted.
fn p99(values: &mut [(u32, u32)], samples: u64) -> u32 {
    let mut left = samples / TAIL;
    let tail = values.len().min(left as usize + 1);
    if tail == 0 {
        return 0;
    }
    let (_, _, _) = values.select_nth_unstable_by(tail - 1, |a, b| b.cmp(a));
    let tail = &mut values[..tail];
    tail.sort_unstable_by(|a, b| b.cmp(a));
    for (value, times) in tail.iter() {
        if u64::from(*times) > left {
            return *value;
        }
        left -= u64::from(*times);
    }
    tail.last().map_or(0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Nanos = Nanos::from_micros(10);

    fn sample(switch_us: u64, worker_us: u64, service_us: u64) -> Sample {
        Sample {
            switch_wait: Nanos::from_micros(switch_us),
            worker_wait: Nanos::from_micros(worker_us),
            service: Nanos::from_micros(service_us),
            occupancy: 0,
        }
    }

    #[test]
    fn a_task_is_seen_until_the_next_one_ends() {
        let mut gauge = Gauge::new(Nanos(0));
        gauge.finished(Nanos::from_micros(100), EVERY, sample(0, 10, 10));
        gauge.finished(Nanos::from_micros(400), EVERY, sample(30, 10, 10));
        let numbers = gauge.close(Nanos::from_micros(1_000), EVERY, Nanos::from_millis(1));
        assert_eq!((numbers.samples, numbers.tasks), (90, 2));
        assert!((numbers.slowdown_p99 - 5.0).abs() < 1e-9);
        assert!((numbers.worker_share - (30.0 + 60.0 * 0.25) / 90.0).abs() < 1e-9);
    }

    #[test]
    fn a_task_that_no_sample_saw_does_not_count() {
        let mut gauge = Gauge::new(Nanos(0));
        gauge.finished(Nanos(11_000), EVERY, sample(0, 0, 1));
        gauge.finished(Nanos(12_000), EVERY, sample(900, 0, 1));
        gauge.finished(Nanos(13_000), EVERY, sample(0, 0, 1));
        let numbers = gauge.close(Nanos::from_millis(1), EVERY, Nanos::from_millis(1));
        assert!((numbers.slowdown_p99 - 1.0).abs() < 1e-9, "{numbers:?}");
    }

    #[test]
    fn samples_without_a_wait_say_nothing_of_where_it_was() {
        let mut gauge = Gauge::new(Nanos(0));
        gauge.finished(Nanos(1), EVERY, sample(0, 0, 10));
        gauge.finished(Nanos::from_micros(500), EVERY, sample(0, 5, 10));
        let numbers = gauge.close(Nanos::from_millis(1), EVERY, Nanos::from_millis(1));
        assert!((numbers.worker_share - 1.0).abs() < 1e-9, "{numbers:?}");
    }

    #[test]
    fn the_p99_leaves_a_hundredth_above_itself() {
        let mut values: Vec<_> = (1..=1_000).map(|value| (value, 1)).collect();
        assert_eq!(p99(&mut values, 1_000), 990);
        assert_eq!(p99(&mut [(7, 99), (9, 1)], 100), 7);
        assert_eq!(p99(&mut [(9, 2), (7, 98)], 100), 9);
        assert_eq!(p99(&mut [], 0), 0);
    }
}
