//! Comparison of two policies on the same tasks.

use sluice_outcome::study::{Estimate, Method, Metric};

use super::chance::{Chance, Total};
use super::interval::around;
use super::measured::Measured;
use super::pool::{Pool, QUANTILES, Quantile};
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
/// class all tasks.
///
/// Both policies got the same tasks, so the luck of the tasks cancels out of the difference, and small
/// differences show. `None` if there are fewer than two pairs.
pub fn paired(
    a: &[Measured],
    b: &[Measured],
    metric: Option<Metric>,
    class: Option<usize>,
) -> Option<Paired> {
    if a.len() != b.len() || a.len() < 2 {
        return None;
    }
    let (a, b) = (Side::of(a, metric, class), Side::of(b, metric, class));
    let value = b.of.value - a.of.value;
    let chance = b.parts.less(&a.parts).chance().filter(|_| a.of.has_interval() && b.of.has_interval());
    let difference = chance.map_or(Estimate::exact(value), |chance| {
        let caution = a.caution.max(b.caution);
        let found = around(value, Chance { variance: chance.variance * caution, ..chance }, Method::Paired);
        possible(found, &a, &b)
    });
    let is_real = difference.has_interval() && (difference.low > 0.0 || difference.high < 0.0);
    Some(Paired { of_a: a.of, of_b: b.of, difference, is_real })
}

/// Limits the interval to possible differences: no number is negative, so none can fall by more than
/// itself. And no number is known better than to a histogram's cell.
fn possible(found: Estimate, a: &Side, b: &Side) -> Estimate {
    let cell = a.cell.max(b.cell);
    let (low, high) = (found.low.min(found.value - cell), found.high.max(found.value + cell));
    Estimate { low: low.max(-a.of.most()), high: high.min(b.of.most()), ..found }
}

/// The number of one policy.
struct Side {
    of: Estimate,
    /// The estimate's deviation from the true number, part by part.
    parts: Total,
    /// By what factor the estimate's variance is taken to be larger than its parts show.
    caution: f64,
    /// The width of the cell that holds the estimate's value.
    cell: f64,
}

impl Side {
    fn of(measured: &[Measured], metric: Option<Metric>, class: Option<usize>) -> Self {
        let Some(Metric { measure, part }) = metric else {
            let of = throughput(measured);
            return Self { of, parts: throughput_parts(measured, of.value), caution: 1.0, cell: 0.0 };
        };
        let pool = Pool::of(measured, class, measure);
        let quantiles = pool.quantiles();
        let quantile = quantiles.iter().zip(QUANTILES).find(|(_, (of, _))| *of == part);
        if let Some((quantile, _)) = quantile {
            return Self::of_quantile(&pool, quantile);
        }
        let of = pool.mean();
        Self { of, parts: pool.mean_parts(of.value), caution: 1.0, cell: 0.0 }
    }

    fn of_quantile(pool: &Pool, quantile: &Quantile) -> Self {
        Self {
            of: quantile.estimate,
            parts: pool.quantile_parts(quantile),
            caution: quantile.caution,
            cell: pool.cell_width(quantile.estimate.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::super::measured::{Backlog, ClassMeasured, TaskTook};
    use super::super::parts::PARTS;
    use super::*;
    use sluice_events::dice::Dice;
    use sluice_outcome::study::{Counts, Gauges, Measure, Part};

    /// A replication whose tasks' times depend on `seed`, plus `extra`.
    fn measured(seed: u64, extra: u64) -> Measured {
        let mut class = ClassMeasured::new(1_000.0, PARTS);
        let mut dice = Dice::new(seed, 1);
        for _ in 0..PARTS {
            let luck = dice.between(10_000, 20_000);
            let mut task = || TaskTook {
                class: 0,
                latency_ns: luck + dice.between(0, 1_000) + extra,
                delay_ns: 1,
                own_milli: 1,
                server_milli: 1,
            };
            let tasks: Vec<_> = (0..100).map(|_| task()).collect();
            ClassMeasured::record(slice::from_mut(&mut class), &tasks);
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

    const P99: Metric = Metric { measure: Measure::LatencyNs, part: Part::P99 };

    #[test]
    fn a_difference_that_luck_hides_shows_in_pairs() {
        let a: Vec<_> = (0..5).map(|seed| measured(seed, 0)).collect();
        let b: Vec<_> = (0..5).map(|seed| measured(seed, 200)).collect();
        let found = paired(&a, &b, Some(P99), None).expect("there are pairs");
        assert!(found.is_real, "{found:?}");
        assert!(found.of_a.high > found.of_b.low, "apart, the two intervals overlap: {found:?}");
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
