//! Comparison of two policies on the same tasks: the difference and the quotient of a number, part by part.
//!
//! Both policies got the same tasks, so the luck of the tasks cancels out of the difference and the quotient,
//! and small ones show. Where each number has its own luck, the parts say about as much as both intervals.

use sluice_outcome::study::{Estimate, Method, Metric};

use super::chance::{Chance, Total};
use super::interval::{around, around_quotient, withheld};
use super::measured::Measured;
use super::pool::{PooledValues, QUANTILES, Quantile};
use super::throughput::{throughput, throughput_parts};

/// A number under two policies that got the same tasks, replication by replication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// The number under the first policy.
    pub of_a: Estimate,
    /// The number under the second policy.
    pub of_b: Estimate,
    /// The second minus the first.
    pub difference: Estimate,
    /// Whether the difference's interval excludes zero.
    pub is_real: bool,
}

/// Compares a metric of a class, part by part. Without a metric it compares the throughput, and without a
/// class all tasks. `None` if there are fewer than two pairs.
pub fn paired(
    a: &[Measured],
    b: &[Measured],
    metric: Option<Metric>,
    class: Option<usize>,
) -> Option<Paired> {
    if a.len() != b.len() || a.len() < 2 {
        return None;
    }
    let (a, b) = (NumberInParts::of(a, metric, class), NumberInParts::of(b, metric, class));
    let (of_a, of_b) = (a.estimate, b.estimate);
    let difference = b.less(&a).unwrap_or(Estimate::exact(of_b.value - of_a.value));
    let is_real = difference.has_interval() && (difference.low > 0.0 || difference.high < 0.0);
    Some(Paired { of_a, of_b, difference, is_real })
}

/// A policy's number, with its deviation from the true number part by part, to be compared with another
/// policy's on the same tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberInParts {
    estimate: Estimate,
    /// The estimate's deviation from the true number, part by part.
    parts: Total,
    /// By what factor the estimate's variance is taken to be larger than its parts show.
    caution: f64,
    /// By what further factor in a quotient, because the busiest times may not have come yet.
    withheld: f64,
    /// The width of the cell that holds the estimate's value.
    cell: f64,
}

impl NumberInParts {
    /// A metric (the throughput if there is none) of a class (all tasks if there is none).
    pub fn of(measured: &[Measured], metric: Option<Metric>, class: Option<usize>) -> Self {
        let Some(Metric { measure, part }) = metric else {
            let estimate = throughput(measured);
            return Self::plain(estimate, throughput_parts(measured, estimate.value));
        };
        let pool = PooledValues::of(measured, class, measure);
        let quantiles = pool.quantiles();
        let quantile = quantiles.iter().zip(QUANTILES).find(|(_, (of, _))| *of == part);
        if let Some((quantile, _)) = quantile {
            return Self::of_quantile(&pool, quantile);
        }
        let estimate = pool.mean();
        let parts = pool.mean_parts(estimate.value);
        Self { withheld: withheld(pool.tail_events()), ..Self::plain(estimate, parts) }
    }

    /// What a number comes to whose samples are whole replications.
    pub fn of_replications(estimate: Estimate, samples: &[f64]) -> Self {
        let off = |run: usize, _| (samples[run] - estimate.value) / samples.len() as f64;
        Self::plain(estimate, Total::new(samples.len(), 1, off))
    }

    fn plain(estimate: Estimate, parts: Total) -> Self {
        Self { estimate, parts, caution: 1.0, withheld: 1.0, cell: 0.0 }
    }

    fn of_quantile(pool: &PooledValues, quantile: &Quantile) -> Self {
        Self {
            estimate: quantile.estimate,
            parts: pool.quantile_parts(quantile),
            caution: quantile.caution,
            withheld: withheld(quantile.events),
            cell: pool.cell_width(quantile.estimate.value),
        }
    }

    /// The number by itself.
    pub const fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// The same number less a constant, which is known; never below zero.
    #[must_use]
    pub fn less_constant(self, constant: f64) -> Self {
        Self { estimate: self.estimate.less(constant), ..self }
    }

    /// How much more it is than another number of the same tasks; none if one of them has no interval.
    pub fn less(&self, other: &Self) -> Option<Estimate> {
        self.has_pairs_with(other).then_some(())?;
        let chance = self.parts.less(&other.parts).chance()?;
        let caution = self.caution.max(other.caution);
        let chance = Chance { variance: chance.variance * caution, ..chance };
        let found = around(self.estimate.value - other.estimate.value, chance, Method::Paired);
        // No number is negative, so that none falls by more than it is; and none is known better than a
        // histogram's cell.
        let cell = self.cell.max(other.cell);
        let (low, high) = (found.low.min(found.value - cell), found.high.max(found.value + cell));
        Some(Estimate { low: low.max(-other.estimate.most()), high: high.min(self.estimate.most()), ..found })
    }

    /// How many times another number of the same tasks it is; none if one of them has no interval or is zero,
    /// or if chance may double the quotient, so that both numbers' own intervals say more.
    ///
    /// A part moves a number's logarithm by as much as it moves the number, over the number (the delta
    /// method), and moves the quotient's by the difference of both.
    pub fn over(&self, other: &Self) -> Option<Estimate> {
        let (above, below) = (self.estimate.value, other.estimate.value);
        let is_sound = above > 0.0 && below > 0.0 && self.has_pairs_with(other);
        is_sound.then_some(())?;
        let chance = self.parts.times(1.0 / above).less(&other.parts.times(1.0 / below)).chance()?;
        let caution = self.caution.max(other.caution) * self.withheld.max(other.withheld);
        let chance = Chance { variance: chance.variance * caution, ..chance };
        let cell = (self.cell / above).max(other.cell / below);
        around_quotient(above / below, cell, chance, Method::Paired)
    }

    /// The same quotient in parts itself, to be compared with other quotients of the same tasks.
    pub fn quotient(&self, other: &Self) -> Option<Self> {
        let estimate = self.over(other)?;
        let (above, below) = (self.estimate.value, other.estimate.value);
        let [of_above, of_below] = [above, below].map(|of| estimate.value / of);
        Some(Self {
            estimate,
            parts: self.parts.times(of_above).less(&other.parts.times(of_below)),
            caution: self.caution.max(other.caution) * self.withheld.max(other.withheld),
            withheld: 1.0,
            cell: (self.cell * of_above).max(other.cell * of_below),
        })
    }

    /// Whether both numbers have equally many parts, and an interval each.
    fn has_pairs_with(&self, other: &Self) -> bool {
        self.parts.is_as_long_as(&other.parts)
            && self.estimate.has_interval()
            && other.estimate.has_interval()
    }
}

#[cfg(test)]
mod tests {
    use super::super::measured::{Backlog, ClassMeasured, TaskTimes};
    use super::super::parts::PARTS;
    use super::*;
    use sluice_events::dice::Dice;
    use sluice_outcome::study::{Counts, Gauges, Measure, Part};

    /// A replication whose parts' times depend on the seed `luck` and whose tasks' times on the seed `own`.
    /// Each time is multiplied by `factor`, and `extra` is added.
    fn replication(luck: u64, own: u64, factor: f64, extra: u64) -> Measured {
        let mut class = ClassMeasured::new(1_000.0, PARTS);
        let (mut luck, mut own) = (Dice::new(luck, 1), Dice::new(own, 2));
        for _ in 0..PARTS {
            let busy = luck.between(10_000, 20_000);
            let mut task = || TaskTimes {
                latency_ns: ((busy + own.between(0, 1_000)) as f64 * factor) as u64 + extra,
                delay_ns: 1,
                own_milli: 1,
                server_milli: 1,
            };
            let tasks: Vec<_> = (0..100).map(|_| task()).collect();
            class.record(&tasks);
            class.parts.next();
        }
        Measured {
            classes: vec![class],
            counts: Counts { sent: 3_200, replied: 3_200, ..Counts::default() },
            gauges: Gauges::default(),
            backlog: Backlog { replies: 3_200, ..Backlog::default() },
            span_ns: 1_000_000,
            warmup_ns: 0,
            settled: true,
            depths: Vec::new(),
        }
    }

    fn measured(seed: u64, extra: u64) -> Measured {
        replication(seed, seed, 1.0, extra)
    }

    /// Five replications' number; `stream` says whose luck the tasks have.
    fn number(trial: u64, stream: u64, own: u64, factor: f64, part: Part) -> NumberInParts {
        let one = |run| replication(20 * trial + 10 * stream + run, 20 * trial + 10 * own + run, factor, 0);
        let measured: Vec<_> = (0..5).map(one).collect();
        NumberInParts::of(&measured, Some(Metric { measure: Measure::LatencyNs, part }), None)
    }

    const TRIALS: u64 = 200;
    const FACTOR: f64 = 1.05;

    /// Of `TRIALS` quotients: how many intervals hold the right one, and the middle widths on the scale of
    /// logarithms of those of pairs and of those that both numbers' own intervals give.
    fn quotients(part: Part, stream_of_a: u64) -> (u64, f64, f64) {
        let (mut held, mut by_pairs, mut apart) = (0, Vec::new(), Vec::new());
        for trial in 0..TRIALS {
            let (a, b) = (number(trial, stream_of_a, 0, FACTOR, part), number(trial, 0, 1, 1.0, part));
            let found = a.over(&b).expect("there are pairs");
            held += u64::from((found.low..=found.high).contains(&FACTOR));
            by_pairs.push(libm::log(found.high / found.low));
            let width = |of: Estimate| libm::log(of.high / of.low);
            apart.push(libm::hypot(width(a.estimate()), width(b.estimate())));
        }
        let middle = |mut widths: Vec<f64>| {
            widths.sort_by(f64::total_cmp);
            widths[widths.len() / 2]
        };
        (held, middle(by_pairs), middle(apart))
    }

    #[test]
    fn a_quotient_of_the_same_tasks_is_held_as_often_as_it_says_and_known_better() {
        for part in [Part::Mean, Part::P50, Part::P90, Part::P99] {
            let (held, by_pairs, apart) = quotients(part, 0);
            assert!(held >= TRIALS * 91 / 100, "{part:?}: {held} of {TRIALS} intervals hold");
            assert!(by_pairs < apart / 3.0, "{part:?}: {by_pairs} and {apart}");
        }
    }

    #[test]
    fn a_quotient_of_tasks_with_luck_of_their_own_is_known_as_well_as_both_are() {
        for part in [Part::Mean, Part::P50, Part::P90] {
            let (held, by_pairs, apart) = quotients(part, 1);
            assert!(held >= TRIALS * 91 / 100, "{part:?}: {held} of {TRIALS} intervals hold");
            assert!((0.75..1.33).contains(&(by_pairs / apart)), "{part:?}: {by_pairs} and {apart}");
        }
    }

    /// Two numbers of the same tasks over a third one of others. The third one's luck makes both quotients
    /// uncertain, and cancels out of their difference.
    #[test]
    fn quotients_over_the_same_number_are_told_apart_as_often_as_they_say() {
        for part in [Part::Mean, Part::P90] {
            let (mut held, mut seen, mut seen_apart) = (0, 0, 0);
            for trial in 0..TRIALS {
                let of = |own, factor| number(trial, 0, own, factor, part);
                let third = number(trial, 1, 1, 1.0, part);
                let over = |own, factor| of(own, factor).quotient(&third).expect("there are pairs");
                let (more, less) = (over(0, FACTOR + 0.02), over(2, FACTOR));
                let found = more.less(&less).expect("there are pairs");
                held += u64::from((found.low..=found.high).contains(&0.02));
                seen += u64::from(found.low > 0.0);
                seen_apart += u64::from(more.estimate().low > less.estimate().most());
            }
            assert!(held >= TRIALS * 91 / 100, "{part:?}: {held} of {TRIALS} intervals hold");
            assert!(seen > 2 * seen_apart, "{part:?}: {seen} are seen, {seen_apart} apart");
        }
    }

    #[test]
    fn a_number_over_itself_is_one_to_a_cell() {
        let one = number(0, 0, 0, 1.0, Part::P99);
        let found = one.over(&one).expect("there are pairs");
        assert!((found.value - 1.0).abs() < 1e-12 && found.method == Method::Paired);
        assert!(found.low < 1.0 && found.low > 0.998 && found.high > 1.0 && found.high < 1.002, "{found:?}");
    }

    #[test]
    fn means_of_replications_are_compared_replication_by_replication() {
        let of = |samples: [f64; 4]| {
            let mean = samples.iter().sum::<f64>() / 4.0;
            NumberInParts::of_replications(
                super::super::estimate(mean, &samples, Method::Replications),
                &samples,
            )
        };
        let (a, b) = (of([10.0, 20.0, 30.0, 40.0]), of([11.0, 22.0, 33.0, 44.0]));
        let found = b.over(&a).expect("there are pairs");
        assert!((found.low - 1.1).abs() < 1e-9 && (found.high - 1.1).abs() < 1e-9, "{found:?}");
        let difference = b.less(&a).expect("there are pairs");
        // 1, 2, 3 and 4 more: Student's t with three degrees of freedom.
        let half = 3.1824 * libm::sqrt(5.0 / 3.0 / 4.0);
        assert!((difference.value - 2.5).abs() < 1e-9 && (2.5 - difference.low - half).abs() < 1e-3);
    }

    #[test]
    fn what_cannot_be_compared_in_pairs_has_no_quotient() {
        let one = number(0, 0, 0, 1.0, Part::P99);
        let short = NumberInParts::of(&[measured(0, 0), measured(1, 0)], Some(P99), None);
        assert_eq!(one.over(&short), None);
        let nothing =
            NumberInParts::of_replications(Estimate::between(0.0, 0.0, 0.0, Method::Batches), &[0.0; 4]);
        assert_eq!(nothing.over(&nothing), None);
    }

    const P99: Metric = Metric { measure: Measure::LatencyNs, part: Part::P99 };

    #[test]
    fn a_difference_that_luck_hides_shows_in_pairs() {
        const MEAN: Metric = Metric { part: Part::Mean, ..P99 };
        let a: Vec<_> = (0..5).map(|seed| measured(seed, 0)).collect();
        for (metric, extra) in [(MEAN, 50), (P99, 1_000)] {
            let b: Vec<_> = (0..5).map(|seed| measured(seed, extra)).collect();
            let found = paired(&a, &b, Some(metric), None).expect("there are pairs");
            assert!(found.is_real, "{found:?}");
            assert!(found.of_a.most() > found.of_b.low, "apart, the two intervals overlap: {found:?}");
        }
    }

    #[test]
    fn a_policy_does_not_differ_from_itself() {
        let a: Vec<_> = (0..5).map(|seed| measured(seed, 0)).collect();
        let found = paired(&a, &a, Some(P99), Some(0)).expect("there are pairs");
        assert!(!found.is_real && found.difference.value.abs() < 1e-9);
        assert!(!paired(&a, &a, None, None).expect("there are pairs").is_real);
    }

    #[test]
    fn without_pairs_there_is_nothing_to_compare() {
        let a: Vec<_> = (0..3).map(|seed| measured(seed, 0)).collect();
        assert!(paired(&a, &a[..2], Some(P99), None).is_none());
        assert!(paired(&a[..1], &a[..1], Some(P99), None).is_none());
    }
}
