//! How much longer flows took than in an idle fabric, by their size.

use hdrhistogram::Histogram;
use sluice_wire::Nanos;

use crate::flow::FinishedFlow;

/// Slowdowns are counted in thousandths.
const MILLI: f64 = 1_000.0;
/// The largest slowdown that is told apart is a million; the smallest is a thousandth.
const MILLI_MAX: u64 = 1_000_000_000;
/// Significant digits of the histograms.
const DIGITS: u8 = 3;

/// Slowdowns in buckets of flow sizes. Memory does not grow with the number of flows.
#[derive(Clone, Debug)]
pub struct FlowSlowdowns {
    /// The largest flow of each bucket but the last, in bytes.
    bounds: Vec<u64>,
    buckets: Vec<Histogram<u64>>,
}

impl FlowSlowdowns {
    /// Buckets up to each of these sizes, which rise, and one for larger flows.
    pub fn new(bounds: &[u64]) -> Self {
        let bucket = |_| Histogram::new_with_bounds(1, MILLI_MAX, DIGITS).expect("the bounds are in order");
        Self { bounds: bounds.into(), buckets: (0..=bounds.len()).map(bucket).collect() }
    }

    /// Records a finished flow, which would have taken `idle` in an idle fabric.
    pub fn record(&mut self, finished: &FinishedFlow, idle: Nanos) {
        let slowdown = finished.took.0 as f64 / idle.0.max(1) as f64;
        let bucket = self.bounds.partition_point(|bound| *bound < finished.flow.bytes);
        self.buckets[bucket].saturating_record((slowdown * MILLI).round() as u64);
    }

    /// Adds what another run recorded in the same buckets.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.bounds, other.bounds, "they have the same buckets");
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            bucket.add(more).expect("histograms of all sizes can be added");
        }
    }

    /// For each bucket the largest size (`None` in the last), how many flows there were, and the slowdown
    /// at each of these quantiles.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Vec<(Option<u64>, u64, [f64; N])> {
        let of = |(at, bucket): (usize, &Histogram<u64>)| {
            let quantile = |share| bucket.value_at_quantile(share) as f64 / MILLI;
            (self.bounds.get(at).copied(), bucket.len(), shares.map(quantile))
        };
        self.buckets.iter().enumerate().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowSpec;
    use crate::ids::HostId;

    #[test]
    fn flows_are_told_apart_by_size_and_their_slowdown_is_kept_however_large() {
        let mut slowdowns = FlowSlowdowns::new(&[1_000, 50_000]);
        for (bytes, took) in [(1, 1_500), (1_000, 2_500), (1_001, 7_000), (90_000, 400_000_000)] {
            let flow = FlowSpec { at: Nanos(0), from: HostId(0), to: HostId(1), bytes };
            slowdowns.record(&FinishedFlow { flow, took: Nanos(took) }, Nanos(1_000));
        }
        let mut twice = slowdowns.clone();
        twice.add(&slowdowns);
        let rounded =
            |(bound, count, [median, last]): (_, _, [f64; 2])| (bound, count, median.round(), last.round());
        let expected =
            [(Some(1_000), 4, 2.0, 3.0), (Some(50_000), 2, 7.0, 7.0), (None, 2, 400_000.0, 400_000.0)];
        let found: Vec<_> = twice.quantiles([0.5, 1.0]).into_iter().map(rounded).collect();
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!((found.0, found.1), (expected.0, expected.1));
            assert!(
                (found.2 / expected.2 - 1.0).abs() < 0.002 && (found.3 / expected.3 - 1.0).abs() < 0.002,
                "{found:?}"
            );
        }
    }
}
