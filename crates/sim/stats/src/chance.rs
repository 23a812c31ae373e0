//! How much chance moves a total over all replications, found from the runs' own parts.
//!
//! Neighbouring parts are put together until what remains of their correlation is small, and that is made up
//! for as for a process of first order; whole replications, which are independent, may say that it moves
//! more. A total of few large parts is known worse than their number says, so that their kurtosis costs
//! degrees of freedom.
//!
//! Batch means with a test and a correction for what correlation is left are Steiger et al. (2005, ASAP3) and
//! Tafazzoli et al. (2011, Skart); left out of those is that the run goes on until the interval is narrow.

/// Neighbours are put together above this correlation.
const CORRELATION_MAX: f64 = 0.3;
/// Fewer parts a replication say nothing of correlation.
const PARTS_MIN: usize = 2;
/// What is made up for at most.
const CORRELATION_TOP: f64 = 0.7;
/// Student's t with fewer degrees of freedom is wide beyond use.
const FREEDOM_MIN: f64 = 2.0;
/// With more of them it is the normal distribution.
const FREEDOM_MAX: f64 = 1_000.0;

/// A quantity that is summed up over all replications, in the parts in which it came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Total {
    /// By replication, then by part.
    parts: Vec<Vec<f64>>,
}

/// What chance does to a total.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chance {
    pub(super) variance: f64,
    /// How well that is known: degrees of freedom.
    pub(super) freedom: usize,
}

impl Total {
    /// `of` says what a replication's part adds.
    pub(super) fn new(replications: usize, parts: usize, of: impl Fn(usize, usize) -> f64) -> Self {
        let of = &of;
        let replication = |replication| (0..parts).map(|part| of(replication, part)).collect();
        Self { parts: (0..replications).map(replication).collect() }
    }

    /// The same less another one, part by part.
    pub(super) fn less(&self, other: &Self) -> Self {
        let less = |(one, other): (&Vec<f64>, &Vec<f64>)| {
            one.iter().zip(other).map(|(one, other)| one - other).collect()
        };
        Self { parts: self.parts.iter().zip(&other.parts).map(less).collect() }
    }

    /// So many times the same.
    pub(super) fn times(&self, factor: f64) -> Self {
        let times = |parts: &Vec<f64>| parts.iter().map(|part| part * factor).collect();
        Self { parts: self.parts.iter().map(times).collect() }
    }

    /// Whether another one has as many replications of as many parts.
    pub(super) fn is_as_long_as(&self, other: &Self) -> bool {
        let lengths = |total: &Self| total.parts.iter().map(Vec::len).collect::<Vec<_>>();
        lengths(self) == lengths(other)
    }

    /// What chance does to it; none if there are not two parts in all.
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

    /// The variance that whole replications show; 0 if there is only one.
    fn of_replications(&self) -> f64 {
        let sums: Vec<f64> = self.parts.iter().map(|parts| parts.iter().sum()).collect();
        let count = sums.len() as f64;
        if sums.len() < 2 { 0.0 } else { powers(&sums, 2) * count / (count - 1.0) }
    }

    /// Parts this much correlated with their neighbours.
    fn of_parts(&self, correlation: f64) -> Chance {
        let all: Vec<f64> = self.parts.concat();
        let count = all.len() as f64;
        let inflation = (1.0 + correlation) / (1.0 - correlation);
        let squares = powers(&all, 2);
        // The parts' mean takes away as much of their variance as correlated parts share.
        let variance = squares * inflation * count / (count - inflation).max(0.3 * count);
        let independent = ((count - 1.0) / inflation).max(1.0);
        let excess =
            if squares > 0.0 { (powers(&all, 4) * count / (squares * squares) - 3.0).max(0.0) } else { 0.0 };
        let freedom = 2.0 / (excess * inflation / count + 2.0 / independent);
        Chance { variance, freedom: freedom.clamp(FREEDOM_MIN, FREEDOM_MAX) as usize }
    }

    /// Of neighbouring parts in one replication, the small-sample bias made good.
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

/// The mean of a sample that has one.
pub(super) fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// The sum of a sample's deviations from its mean, to a power.
pub(super) fn powers(sample: &[f64], power: i32) -> f64 {
    let mean = mean(sample);
    sample.iter().map(|one| (0..power).fold(1.0, |product, _| product * (one - mean))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_events::dice::Dice;

    /// Parts of a process of first order: each is so much of the one before, and noise of variance 1.
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
            // A long sum of such a process has the noise's variance over (1 − correlation)².
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
