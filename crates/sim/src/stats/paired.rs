//! Two policies on the same tasks.

use super::interval::{estimate, widened};
use super::measured::Measured;
use super::reading::Readings;
use crate::study::outcome::{Estimate, Method, Metric, Part};

/// A number under two policies that met the same tasks, replication by replication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Under the one.
    pub of_a: Estimate,
    /// Under the other.
    pub of_b: Estimate,
    /// B less A.
    pub difference: Estimate,
    /// The difference's interval leaves out zero.
    pub is_real: bool,
}

/// Compares a metric (the throughput if there is none) of a class (all tasks if there is none), pair by pair.
///
/// What the tasks' own luck does to both is in neither's difference, so that small differences show. None if there are
/// not two pairs.
pub fn paired(
    a: &[Measured],
    b: &[Measured],
    metric: Option<Metric>,
    class: Option<usize>,
) -> Option<Paired> {
    if a.len() != b.len() || a.len() < 2 {
        return None;
    }
    let value =
        |readings: &Readings| metric.map_or(readings.throughput_per_s, |metric| readings.get(class, metric));
    let of = |all: &[Measured]| {
        let samples: Vec<f64> = all.iter().map(|one| value(&Readings::of_one(one))).collect();
        (value(&Readings::of_merged(all)), samples)
    };
    let ((merged_a, samples_a), (merged_b, samples_b)) = (of(a), of(b));
    let differences: Vec<f64> = samples_a.iter().zip(&samples_b).map(|(a, b)| b - a).collect();
    let is_quantile = metric.is_some_and(|metric| metric.part != Part::Mean);
    let widened = |found, value| if is_quantile { widened(found, value) } else { found };
    let difference = estimate(merged_b - merged_a, &differences, Method::Paired);
    let difference = widened(difference, merged_a.max(merged_b));
    Some(Paired {
        of_a: widened(estimate(merged_a, &samples_a, Method::Replications), merged_a),
        of_b: widened(estimate(merged_b, &samples_b, Method::Replications), merged_b),
        difference,
        is_real: difference.low > 0.0 || difference.high < 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::measured::{Backlog, ClassMeasured};
    use super::*;
    use crate::dice::Dice;
    use crate::study::outcome::{Counts, Gauges, Measure};

    /// A replication whose tasks have the luck of `seed`, and `extra` on top.
    fn measured(seed: u64, extra: u64) -> Measured {
        let mut class = ClassMeasured::new(1_000.0);
        let mut dice = Dice::new(seed, 1);
        let luck = dice.between(10_000, 20_000);
        (0..1_000).for_each(|_| class.latency.record(luck + dice.between(0, 1_000) + extra));
        Measured {
            classes: vec![class],
            counts: Counts { sent: 1_000, replied: 1_000, ..Counts::default() },
            gauges: Gauges::default(),
            backlog: Backlog { replies: 1_000, ..Backlog::default() },
            span_ns: 1_000_000,
            warmup_ns: 0,
            settled: true,
            batches: Vec::new(),
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
