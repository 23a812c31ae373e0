//! The warm-up: how much of a run's beginning is left out.

use core::fmt;

use serde::{Deserialize, Serialize};
use sluice_wire::Nanos;

/// The part at a run's beginning that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    Tasks(u64),
    /// The tasks due before this time, in nanoseconds.
    TimeNs(u64),
    /// A pilot whose length is tested by MSER-5 (White, Cobb and Spratt 2000): it is long enough if the
    /// standard error of the mean of its rest is smallest with at most half of it cut off. The whole pilot
    /// is left out, not the cut alone.
    Detect,
}

impl Warmup {
    /// The tasks due before this time.
    pub const fn time(until: Nanos) -> Self {
        Self::TimeNs(until.0)
    }
}

impl fmt::Display for Warmup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tasks(tasks) => write!(f, "{tasks} tasks"),
            Self::TimeNs(ns) if ns % 1_000_000_000 == 0 => write!(f, "{} s", ns / 1_000_000_000),
            Self::TimeNs(ns) => write!(f, "{} ms", *ns as f64 / 1e6),
            Self::Detect => f.write_str("detected"),
        }
    }
}

/// How many observations each mean of the pilot has at first.
const OBSERVATIONS_A_MEAN: u32 = 5;
/// At so many means, neighbours are merged.
const MEANS_MAX: usize = 4_096;

/// The beginning of a run, in bounded memory.
#[derive(Clone, Debug)]
pub(super) struct Pilot {
    means: Vec<f64>,
    a_mean: u32,
    sum: f64,
    observed: u32,
    /// The number of observations after which it is tested next.
    look_at: u64,
    seen: u64,
}

impl Pilot {
    /// A pilot that is tested after `first` observations, and each time their number has doubled.
    pub(super) fn new(first: u64) -> Self {
        let means = Vec::with_capacity(MEANS_MAX);
        Self { means, a_mean: OBSERVATIONS_A_MEAN, sum: 0.0, observed: 0, look_at: first, seen: 0 }
    }

    pub(super) fn observe(&mut self, value: f64) {
        self.seen += 1;
        self.sum += value;
        self.observed += 1;
        if self.observed == self.a_mean {
            self.means.push(self.sum / f64::from(self.a_mean));
            (self.sum, self.observed) = (0.0, 0);
        }
        if self.means.len() == MEANS_MAX {
            self.halve();
        }
    }

    /// Whether the transient is over. Tests all means, at rare times only.
    pub(super) fn has_settled(&mut self) -> bool {
        if self.seen < self.look_at {
            return false;
        }
        self.look_at = self.seen * 2;
        cut(&self.means) <= self.means.len() / 2
    }

    fn halve(&mut self) {
        for at in 0..self.means.len() / 2 {
            self.means[at] = f64::midpoint(self.means[2 * at], self.means[2 * at + 1]);
        }
        self.means.truncate(self.means.len() / 2);
        self.a_mean *= 2;
    }
}

/// How many of the first means MSER leaves out: the fewest for which Σ (x − x̄)² ÷ n² of the others is
/// smallest.
///
/// The last few means could give a small value by chance, so the cut stops before them.
fn cut(means: &[f64]) -> usize {
    let (mut best, mut least) = (0, f64::INFINITY);
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    let last = means.len().saturating_sub(10);
    for (at, mean) in means.iter().enumerate().rev() {
        count += 1.0;
        sum += mean;
        squares += mean * mean;
        let spread = (squares - sum * sum / count) / (count * count);
        if at <= last && spread <= least {
            (best, least) = (at, spread);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_events::dice::Dice;

    fn observe(pilot: &mut Pilot, dice: &mut Dice, count: u32, mean: impl Fn(f64) -> f64) {
        for n in 0..count {
            pilot.observe(mean(f64::from(n) / f64::from(count)) * dice.between(800, 1_200) as f64 / 1_000.0);
        }
    }

    #[test]
    fn noise_alone_has_settled() {
        for seed in 0..50 {
            let mut pilot = Pilot::new(2_000);
            observe(&mut pilot, &mut Dice::new(seed, 1), 2_000, |_| 10.0);
            assert!(pilot.has_settled(), "seed {seed}");
        }
    }

    #[test]
    fn a_climb_has_not_settled_until_it_is_long_over() {
        let mut pilot = Pilot::new(2_000);
        let mut dice = Dice::new(1, 1);
        observe(&mut pilot, &mut dice, 2_000, |part| 10.0 + 90.0 * part);
        assert!(!pilot.has_settled());
        observe(&mut pilot, &mut dice, 1_000, |_| 100.0);
        assert!(!pilot.has_settled(), "it is looked at again when it is twice as long");
        observe(&mut pilot, &mut dice, 5_000, |_| 100.0);
        assert!(pilot.has_settled());
    }

    #[test]
    fn a_long_pilot_takes_no_more_memory() {
        let mut pilot = Pilot::new(2_000);
        observe(&mut pilot, &mut Dice::new(1, 1), 300_000, |_| 10.0);
        assert!(pilot.means.len() < MEANS_MAX && pilot.means.capacity() == MEANS_MAX);
        assert!(pilot.has_settled());
    }

    #[test]
    fn warm_ups_are_told_in_words() {
        let told =
            [Warmup::Tasks(500), Warmup::TimeNs(2_000_000_000), Warmup::TimeNs(1_500_000), Warmup::Detect];
        assert_eq!(told.map(|warmup| warmup.to_string()), ["500 tasks", "2 s", "1.5 ms", "detected"]);
    }
}
