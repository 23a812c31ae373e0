//! Samples of one worker during an interval, and the numbers that an interval's samples come to.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sluice_wire::Nanos;

/// Slowdowns are kept in thousandths.
const MILLI: u64 = 1_000;
/// A p99 leaves one sample in this many above itself.
const TAIL: u64 = 100;

/// What a worker measured of a task that it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// How long the task waited in the switch (t_s).
    pub switch_wait: Nanos,
    /// How many tasks still waited in the switch when it dispatched this one (L).
    pub occupancy: u32,
    /// How long the task waited at the worker (t_w).
    pub worker_wait: Nanos,
    /// How long the task's service took (t_p).
    pub service: Nanos,
}

impl Sample {
    /// (t_s + t_w + t_p) / t_p in thousandths, rounded down: exactly, for tasks that took less than an hour.
    #[inline]
    pub fn slowdown_milli(&self) -> u32 {
        let all = self.switch_wait.0 + self.worker_wait.0 + self.service.0;
        // Signed numbers: the processor converts them to floats in one instruction.
        ((all * MILLI).cast_signed() as f64 / self.service.0.max(1).cast_signed() as f64) as u32
    }
}

/// The statistics of an interval's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Numbers {
    pub samples: u64,
    /// How many tasks ended.
    pub tasks: u64,
    /// The p99 of (t_s + t_w + t_p) / t_p (S).
    pub slowdown_p99: f64,
    /// The mean of t_w / (t_s + t_w) over the samples with any wait (r); 0 if there are none.
    pub worker_share: f64,
    /// The p99 of L (Q).
    pub occupancy_p99: u32,
    /// The share of the interval in which the worker was blocked.
    pub idle_share: f64,
}

/// How many tasks are noted before a batch of them enters the sums.
const NOTED: usize = 32;

/// The samples of one worker. Allocates only when it is created.
///
/// Chance decides which tasks a sample sees, and a mispredicted branch would cost more than the division
/// that one task needs. So the gauge notes each task without a branch: the next task overwrites the note
/// unless a sample saw it. Noted tasks enter the sums in batches.
#[derive(Debug)]
pub(super) struct WorkerGauge {
    /// Tasks that samples saw, and behind them the task that ended last.
    noted: [Shown; NOTED],
    seen: usize,
    /// Whether any task has ended.
    has_last: bool,
    /// When the last sample of the previous interval was due.
    base: Nanos,
    /// How many samples were due since `base`.
    due: u64,
    samples: u64,
    tasks: u64,
    slowdowns: Tail,
    occupancies: Tail,
    share_sum: f64,
    waited: u64,
    blocked: Nanos,
}

impl WorkerGauge {
    /// Starts the first interval at `now`, and reserves memory for as many samples as an interval will
    /// bring.
    pub(super) fn new(now: Nanos, sampling: Sampling, interval: Nanos) -> Self {
        let expected = sampling.due(interval);
        Self {
            noted: [Shown::default(); NOTED],
            seen: 0,
            has_last: false,
            base: sampling.every.times(sampling.due(now)),
            due: 0,
            samples: 0,
            tasks: 0,
            slowdowns: Tail::new(expected),
            occupancies: Tail::new(expected),
            share_sum: 0.0,
            waited: 0,
            blocked: Nanos(0),
        }
    }

    #[inline]
    pub(super) fn finished(&mut self, now: Nanos, sampling: Sampling, sample: Sample) {
        self.take(now, sampling);
        self.noted[self.seen] = Shown::of(&sample);
        self.has_last = true;
        self.tasks += 1;
    }

    #[inline]
    pub(super) fn idled(&mut self, blocked: Nanos) {
        self.blocked = self.blocked + blocked;
    }

    /// Ends the interval and returns its numbers; the next interval begins.
    pub(super) fn close(&mut self, now: Nanos, sampling: Sampling, interval: Nanos) -> Numbers {
        let last = self.noted[self.seen];
        self.take(now, sampling);
        self.reckon();
        self.noted[0] = last;
        let numbers = Numbers {
            samples: self.samples,
            tasks: self.tasks,
            slowdown_p99: f64::from(self.slowdowns.p99(self.samples)) / MILLI as f64,
            worker_share: if self.waited == 0 { 0.0 } else { self.share_sum / self.waited as f64 },
            occupancy_p99: self.occupancies.p99(self.samples),
            idle_share: (self.blocked.0 as f64 / interval.0.max(1) as f64).min(1.0),
        };
        self.slowdowns.clear();
        self.occupancies.clear();
        (self.samples, self.tasks, self.share_sum, self.waited) = (0, 0, 0.0, 0);
        self.blocked = Nanos(0);
        self.base = self.base + sampling.every.times(self.due);
        self.due = 0;
        numbers
    }

    /// Every sample that was due since the last task ended has shown that task: notes how many these were.
    #[inline]
    fn take(&mut self, now: Nanos, sampling: Sampling) {
        let times = sampling.due(now.since(self.base)).saturating_sub(self.due);
        self.due += times;
        self.noted[self.seen].times = u32::try_from(times).unwrap_or(u32::MAX);
        self.seen += usize::from(times > 0) & usize::from(self.has_last);
        if self.seen == NOTED - 1 {
            self.reckon();
        }
    }

    /// Adds the noted tasks to the interval's sums.
    fn reckon(&mut self) {
        let seen = &self.noted[..self.seen];
        self.slowdowns.add(seen.iter().map(|shown| (shown.slowdown_milli, shown.times)));
        self.occupancies.add(seen.iter().map(|shown| (shown.occupancy, shown.times)));
        for Shown { worker_wait, wait, times, .. } in seen {
            // Signed numbers: the processor converts them to floats in one instruction.
            let [worker_wait, all] = [*worker_wait, *wait].map(|wait| wait.cast_signed() as f64);
            self.share_sum += f64::from(*times) * worker_wait / all.max(1.0);
            self.waited += if *wait > 0 { u64::from(*times) } else { 0 };
            self.samples += u64::from(*times);
        }
        self.seen = 0;
    }
}

/// The times at which samples are due: multiples of the sampling distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    every: Nanos,
    /// 2^64 divided by the distance, rounded up; 0 if the quotient needs more than 64 bits.
    inverse: u64,
}

impl Sampling {
    /// Samples at a distance of `every`, which must not be 0.
    pub(super) const fn new(every: Nanos) -> Self {
        Self { every, inverse: (u64::MAX / every.0).wrapping_add(1) }
    }

    /// How many samples are due within `span`. Multiplies by the inverse, which is faster than a division
    /// and gives the same result: rounding the inverse adds less than one part of `every`, as long as
    /// `span` is below the inverse.
    #[inline]
    fn due(self, span: Nanos) -> u64 {
        if span.0 < self.inverse {
            ((u128::from(span.0) * u128::from(self.inverse)) >> 64) as u64
        } else {
            span.0 / self.every.0
        }
    }
}

/// A task that ended, as the sampler sees it.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    slowdown_milli: u32,
    occupancy: u32,
    worker_wait: u64,
    /// Wait in the switch and at the worker together, in nanoseconds.
    wait: u64,
    /// How many samples saw the task.
    times: u32,
}

impl Shown {
    #[inline]
    fn of(sample: &Sample) -> Self {
        Self {
            slowdown_milli: sample.slowdown_milli(),
            occupancy: sample.occupancy,
            worker_wait: sample.worker_wait.0,
            wait: sample.switch_wait.0 + sample.worker_wait.0,
            times: 0,
        }
    }
}

/// The largest values of an interval: as many as the p99 can depend on. Smaller values also stand here
/// until the tail is next cut back.
#[derive(Debug)]
struct Tail {
    /// Pairs of a value and how often it was seen, in any order, and spare room.
    values: Vec<(u32, u32)>,
    len: usize,
    /// The number of largest samples that the p99 depends on.
    kept: usize,
    /// The bar: smaller values cannot change the p99.
    bar: u32,
}

impl Tail {
    /// A tail for intervals of about `expected` samples. An interval may last twice as long before its p99
    /// becomes too high.
    fn new(expected: u64) -> Self {
        let kept = (2 * expected / TAIL + 1) as usize;
        // Spare room makes cuts rare. The last place receives values that are not kept.
        Self { values: vec![(0, 0); 4 * kept + NOTED + 1], len: 0, kept, bar: 0 }
    }

    /// At most [`NOTED`] values, each with how often it was seen.
    #[inline]
    fn add(&mut self, seen: impl ExactSizeIterator<Item = (u32, u32)>) {
        if self.len + seen.len() >= self.values.len() {
            self.trim();
        }
        for (value, times) in seen {
            self.values[self.len] = (value, times);
            self.len += usize::from(value >= self.bar);
        }
    }

    #[cold]
    fn trim(&mut self) {
        let values = &mut self.values[..self.len];
        let (_, least, _) = values.select_nth_unstable_by_key(self.kept - 1, |(value, _)| Reverse(*value));
        self.bar = least.0.saturating_add(1);
        self.len = self.kept;
    }

    /// The least value that at most a hundredth of the samples exceed; 0 if there are none.
    fn p99(&mut self, samples: u64) -> u32 {
        let mut left = samples / TAIL;
        // Each kept value was seen at least once, so the p99 cannot lie deeper than this.
        let depth = usize::try_from(left).map_or(self.kept, |left| self.kept.min(left + 1));
        let mut values = &mut self.values[..self.len];
        if values.len() > depth {
            values.select_nth_unstable_by_key(depth, |(value, _)| Reverse(*value));
            values = &mut values[..depth];
        }
        values.sort_unstable_by_key(|(value, _)| Reverse(*value));
        for (value, times) in &*values {
            if u64::from(*times) > left {
                return *value;
            }
            left -= u64::from(*times);
        }
        values.last().map_or(0, |(value, _)| *value)
    }

    fn clear(&mut self) {
        (self.len, self.bar) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const EVERY: Sampling = Sampling::new(Nanos::from_micros(10));

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
        let mut gauge = WorkerGauge::new(Nanos(0), EVERY, Nanos::from_millis(1));
        gauge.finished(Nanos::from_micros(100), EVERY, sample(0, 10, 10));
        gauge.finished(Nanos::from_micros(400), EVERY, sample(30, 10, 10));
        let numbers = gauge.close(Nanos::from_micros(1_000), EVERY, Nanos::from_millis(1));
        assert_eq!((numbers.samples, numbers.tasks), (90, 2));
        assert!((numbers.slowdown_p99 - 5.0).abs() < 1e-9);
        assert!((numbers.worker_share - (30.0 + 60.0 * 0.25) / 90.0).abs() < 1e-9);
    }

    #[test]
    fn a_sample_that_is_due_just_now_is_taken_now_and_one_that_was_due_before_too() {
        let us = Nanos::from_micros;
        let mut gauge = WorkerGauge::new(Nanos(0), EVERY, us(40));
        gauge.finished(us(10), EVERY, sample(0, 10, 10));
        gauge.finished(us(20), EVERY, sample(30, 10, 10));
        let numbers = gauge.close(us(40), EVERY, us(40));
        assert_eq!(numbers.samples, 3);
        assert!((numbers.worker_share - (1.0 + 0.25 + 0.25) / 3.0).abs() < 1e-9, "{numbers:?}");
    }

    #[test]
    fn an_interval_says_nothing_of_the_one_before() {
        let end = Nanos::from_millis(1);
        let mut gauge = WorkerGauge::new(Nanos(0), EVERY, end);
        gauge.finished(Nanos(1), EVERY, Sample { occupancy: 9, ..sample(900, 0, 1) });
        gauge.close(end, EVERY, end);
        gauge.finished(end + Nanos(1), EVERY, sample(0, 0, 1));
        let numbers = gauge.close(end.times(2), EVERY, end);
        assert_eq!((numbers.slowdown_p99, numbers.occupancy_p99, numbers.tasks), (1.0, 0, 1));
    }

    #[test]
    fn a_task_is_seen_in_later_intervals_too_until_the_next_one_ends() {
        let end = Nanos::from_millis(1);
        let mut gauge = WorkerGauge::new(Nanos(0), EVERY, end);
        gauge.finished(Nanos::from_micros(5), EVERY, sample(0, 30, 10));
        for interval in 1..4 {
            let numbers = gauge.close(end.times(interval), EVERY, end);
            assert_eq!((numbers.samples, numbers.slowdown_p99), (100, 4.0));
            assert_eq!(numbers.tasks, u64::from(interval == 1));
        }
    }

    #[test]
    fn a_task_that_no_sample_saw_does_not_count() {
        let mut gauge = WorkerGauge::new(Nanos(0), EVERY, Nanos::from_millis(1));
        gauge.finished(Nanos(11_000), EVERY, sample(0, 0, 1));
        gauge.finished(Nanos(12_000), EVERY, sample(900, 0, 1));
        gauge.finished(Nanos(13_000), EVERY, sample(0, 0, 1));
        let numbers = gauge.close(Nanos::from_millis(1), EVERY, Nanos::from_millis(1));
        assert!((numbers.slowdown_p99 - 1.0).abs() < 1e-9, "{numbers:?}");
    }

    #[test]
    fn samples_without_a_wait_say_nothing_of_where_it_was() {
        let mut gauge = WorkerGauge::new(Nanos(0), EVERY, Nanos::from_millis(1));
        gauge.finished(Nanos(1), EVERY, sample(0, 0, 10));
        gauge.finished(Nanos::from_micros(500), EVERY, sample(0, 5, 10));
        let numbers = gauge.close(Nanos::from_millis(1), EVERY, Nanos::from_millis(1));
        assert!((numbers.worker_share - 1.0).abs() < 1e-9, "{numbers:?}");
    }

    fn p99(values: impl IntoIterator<Item = (u32, u32)>, expected: u64) -> u32 {
        let (mut tail, mut samples) = (Tail::new(expected), 0);
        let seen: Vec<_> = values.into_iter().filter(|(_, times)| *times > 0).collect();
        for some in seen.chunks(NOTED) {
            tail.add(some.iter().copied());
            samples += some.iter().map(|(_, times)| u64::from(*times)).sum::<u64>();
        }
        tail.p99(samples)
    }

    #[test]
    fn the_p99_leaves_a_hundredth_above_itself() {
        assert_eq!(p99((1..=1_000).map(|value| (value, 1)), 1_000), 990);
        assert_eq!(p99((1..=1_000).rev().map(|value| (value, 1)), 1_000), 990);
        assert_eq!(p99([(7, 99), (9, 1)], 100), 7);
        assert_eq!(p99([(9, 2), (7, 98)], 100), 9);
        assert_eq!(p99([], 100), 0);
    }

    proptest! {
        #[test]
        fn as_many_samples_are_due_as_a_division_says(
            every in prop_oneof![1_u64..99_999, any::<u64>().prop_map(|every| every.max(1))],
            span in prop_oneof![0_u64..9_999_999_999, any::<u64>()],
            times in 0_u64..99_999,
            before in 0_u64..2,
        ) {
            let due = |span: u64| Sampling::new(Nanos(every)).due(Nanos(span));
            let edge = every.saturating_mul(times).saturating_sub(before);
            prop_assert_eq!((due(span), due(edge)), (span / every, edge / every));
        }

        #[test]
        fn the_p99_is_that_of_all_samples_in_order(
            values in vec((prop_oneof![0_u32..9, any::<u32>()], 0_u32..4), 0..600),
        ) {
            let each = |(value, times): &(u32, u32)| core::iter::repeat_n(*value, *times as usize);
            let mut all: Vec<u32> = values.iter().flat_map(each).collect();
            all.sort_unstable();
            let expected = all.iter().nth_back(all.len() / TAIL as usize).copied().unwrap_or_default();
            prop_assert_eq!(p99(values, all.len().div_ceil(2) as u64), expected);
        }
    }

    #[test]
    fn an_interval_may_last_twice_as_long_as_it_should() {
        assert_eq!(p99((1..=2_000).map(|value| (value, 1)), 1_000), 1_980);
    }
}
