//! How far chance moves a total over all replications, found from parts of the runs.
//!
//! Neighbouring parts are joined until their correlation is small, and the rest of the correlation is
//! corrected as for a process of first order. Whole replications, which are independent, may show a larger
//! variance. A total of a few large parts is known less well than the number of parts suggests, so their
//! kurtosis reduces the degrees of freedom.
//!
//! Batch means with a test and a correction for the remaining correlation are those of Steiger et al.
//! (2005, ASAP3) and Tafazzoli et al. (2011, Skart). Left out of these: that the run goes on until the
//! interval is narrow.

/// Neighbouring parts are joined while their correlation is above this.
const CORRELATION_MAX: f64 = 0.3;
/// With fewer parts per replication the correlation cannot be estimated.
const PARTS_MIN: usize = 2;
/// The largest correlation that is corrected.
const CORRELATION_TOP: f64 = 0.7;
/// With fewer degrees of freedom Student's t is too wide to be useful.
const FREEDOM_MIN: f64 = 2.0;
/// With more degrees of freedom Student's t is the normal distribution.
const FREEDOM_MAX: f64 = 1_000.0;

/// A quantity that is summed over all replications, in parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Total {
    /// By replication, then by part.
    parts: Vec<Vec<f64>>,
}

/// How far chance moves a total.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chance {
    pub(super) variance: f64,
    /// Degrees of freedom of the variance.
    pub(super) freedom: usize,
}

impl Total {
    /// `of` returns what a replication's part adds.
    pub(super) fn new(replications: usize, parts: usize, of: impl Fn(usize, usize) -> f64) -> Self {
        let of = &of;
        let replication = |replication| (0..parts).map(|part| of(replication, part)).collect();
        Self { parts: (0..replications).map(replication).collect() }
    }

    /// This total minus another one, part by part.
    pub(super) fn less(&self, other: &Self) -> Self {
        let less = |(one, other): (&Vec<f64>, &Vec<f64>)| {
            one.iter().zip(other).map(|(one, other)| one - other).collect()
        };
        Self { parts: self.parts.iter().zip(&other.parts).map(less).collect() }
    }

    /// The total `factor` times.
    pub(super) fn times(&self, factor: f64) -> Self {
        let times = |parts: &Vec<f64>| parts.iter().map(|part| part * factor).collect();
        Self { parts: self.parts.iter().map(times).collect() }
    }

    /// Whether another total has as many replications of as many parts.
    pub(super) fn is_as_long_as(&self, other: &Self) -> bool {
        let lengths = |total: &Self| total.parts.iter().map(Vec::len).collect::<Vec<_>>();
        lengths(self) == lengths(other)
    }

    /// The chance of this total; `None` if there are fewer than two parts in all.
    pub(super) fn chance(mut self) -> Option<Chance> {
        let whole = self.of_replications();
        loop {
            let (each, all) = (self.parts.first()?.len(), self.parts.iter().map(Vec::len).sum::<usize>());
            if all < 2 {
                return None;
            }
            let correlation = self.correlation();
            if correlation <= CORRELATION_MAX || each <= PARTS_MIN {
                let found = self.of_parts(correlation.clamp(0.0, CORRELATION_TOP));
                return Some(Chance { variance: found.variance.max(whole), ..found });
            }
            self.put_together();
        }
    }

    /// The variance among whole replications; 0 if there is only one.
    fn of_replications(&self) -> f64 {
        let sums: Vec<f64> = self.parts.iter().map(|parts| parts.iter().sum()).collect();
        let count = sums.len() as f64;
        if sums.len() < 2 { 0.0 } else { powers(&sums, 2) * count / (count - 1.0) }
    }

    /// The chance, if neighbouring parts have this correlation.
    fn of_parts(&self, correlation: f64) -> Chance {
        let all: Vec<f64> = self.parts.concat();
        let count = all.len() as f64;
        let inflation = (1.0 + correlation) / (1.0 - correlation);
        let squares = powers(&all, 2);
        // The parts' deviations are taken from their own mean, which removes the share of their variance
        // that correlated parts have in common.
        let variance = squares * inflation * count / (count - inflation).max(0.3 * count);
        let independent = ((count - 1.0) / inflation).max(1.0);
        let excess =
            if squares > 0.0 { (powers(&all, 4) * count / (squares * squares) - 3.0).max(0.0) } else { 0.0 };
        let freedom = 2.0 / (excess * inflation / count + 2.0 / independent);
        Chance { variance, freedom: freedom.clamp(FREEDOM_MIN, FREEDOM_MAX) as usize }
    }

    /// The correlation of neighbouring parts in one replication, with its bias in small samples corrected.
    fn correlation(&self) -> f64 {
        let all: Vec<f64> = self.parts.concat();
        let (count, mean) = (all.len() as f64, mean(&all));
        let products: Vec<f64> = self
            .parts
            .iter()
            .flat_map(|parts| parts.windows(2))
            .map(|pair| (pair[0] - mean) * (pair[1] - mean))
            .collect();
        let squares = powers(&all, 2);
        if squares <= 0.0 || products.is_empty() {
            return 0.0;
        }
        let found = products.iter().sum::<f64>() / products.len() as f64 / (squares / count);
        found + (1.0 + found) / count
    }

    fn put_together(&mut self) {
        for parts in &mut self.parts {
            *parts = parts.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }
}

/// The mean of a sample, which must not be empty.
pub(super) fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// The sum of a power of the sample's deviations from its mean.
pub(super) fn powers(sample: &[f64], power: i32) -> f64 {
    let mean = mean(sample);
    sample.iter().map(|one| (0..power).fold(1.0, |product, _| product * (one - mean))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_events::dice::Dice;

    /// Parts of a process of first order: each is `correlation` times the one before, plus noise of
    /// variance 1.
    fn process(seed: u64, correlation: f64) -> Total {
        let mut dice = Dice::new(seed, 1);
        let mut noise = || (0..12).map(|_| dice.unit()).sum::<f64>() - 6.0;
        let replications = (0..5).map(|_| {
            let mut now = noise() / libm::sqrt(1.0 - correlation * correlation);
            let parts = (0..32).map(|_| {
                now = correlation * now + noise();
                now
            });
            parts.collect()
        });
        Total { parts: replications.collect() }
    }

    #[test]
    fn the_variance_of_a_total_is_found_however_its_parts_depend_on_each_other() {
        for correlation in [0.0, 0.3, 0.6, 0.8] {
            // The variance of a long sum of such a process is the noise's variance over (1 − correlation)².
            let right = 160.0 / ((1.0 - correlation) * (1.0 - correlation));
            let mut found: Vec<f64> = (0..201)
                .map(|seed| process(seed, correlation).chance().expect("there are parts").variance / right)
                .collect();
            found.sort_by(f64::total_cmp);
            assert!((0.85..1.5).contains(&found[100]), "{correlation}: {}", found[100]);
        }
    }

    #[test]
    fn a_few_large_parts_cost_freedom() {
        let even =
            Total::new(5, 32, |replication, part| if (replication + part) % 2 == 0 { 1.0 } else { -1.0 });
        let spiky = Total::new(5, 32, |_, part| if part == 9 { 31.0 } else { -1.0 });
        let freedom = |total: Total| total.chance().expect("there are parts").freedom;
        assert!(freedom(even) > 100);
        assert!(freedom(spiky) < 15);
    }

    #[test]
    fn one_part_alone_says_nothing() {
        assert_eq!(Total::new(1, 1, |_, _| 1.0).chance(), None);
        assert_eq!(Total::new(5, 0, |_, _| 1.0).chance(), None);
        assert_eq!(Total::new(0, 32, |_, _| 1.0).chance(), None);
    }
}
