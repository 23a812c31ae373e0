//! The numbers that a set of tasks gives: four measures, five parts of each one's distribution.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::measured::{ClassMeasured, Measured};
use crate::study::outcome::{Measure, Metric, Part};

/// The quantiles that are read, in [`Part`]'s order behind the mean.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
/// Slowdowns are recorded in thousandths.
const SLOWDOWN_UNIT: f64 = 1_000.0;

/// The numbers of one set of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading([[f64; 5]; 4]);

impl Reading {
    /// One of them.
    pub fn get(&self, metric: Metric) -> f64 {
        let measure = match metric.measure {
            Measure::LatencyNs => 0,
            Measure::Slowdown => 1,
            Measure::SlowdownTypeMean => 2,
            Measure::SlowdownServer => 3,
        };
        let part = match metric.part {
            Part::Mean => 0,
            Part::P50 => 1,
            Part::P90 => 2,
            Part::P99 => 3,
            Part::P999 => 4,
        };
        self.0[measure][part]
    }

    fn of_class(class: &ClassMeasured) -> Self {
        let latency = parts(&class.latency, 1.0);
        let type_mean = latency.map(|ns| ns / class.mean_service_ns);
        let own = parts(&class.slowdown_own, SLOWDOWN_UNIT);
        let server = parts(&class.slowdown_server, SLOWDOWN_UNIT);
        Self([latency, own, type_mean, server])
    }

    /// Classes have different means, so that their slowdowns against these must be merged one by one.
    fn of_all(classes: &[ClassMeasured]) -> Self {
        let [mut latency, mut own, mut type_mean, mut server] = [(); 4].map(|()| Distribution::new());
        for class in classes {
            latency.merge(&class.latency);
            own.merge(&class.slowdown_own);
            type_mean.merge(&class.latency.scaled(SLOWDOWN_UNIT / class.mean_service_ns));
            server.merge(&class.slowdown_server);
        }
        Self([
            parts(&latency, 1.0),
            parts(&own, SLOWDOWN_UNIT),
            parts(&type_mean, SLOWDOWN_UNIT),
            parts(&server, SLOWDOWN_UNIT),
        ])
    }
}

/// What a replication, a batch, or all replications merged say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readings {
    /// All tasks.
    pub overall: Reading,
    /// Each class's.
    pub classes: Vec<Reading>,
    /// Replies per second.
    pub throughput_per_s: f64,
}

impl Readings {
    pub(super) fn of(classes: &[ClassMeasured], throughput_per_s: f64) -> Self {
        let each: Vec<Reading> = classes.iter().map(Reading::of_class).collect();
        let overall = if let [only] = each[..] { only } else { Reading::of_all(classes) };
        Self { overall, classes: each, throughput_per_s }
    }

    /// One replication's.
    pub fn of_one(measured: &Measured) -> Self {
        Self::of(&measured.classes, measured.throughput_per_s())
    }

    /// All replications' tasks in one.
    pub fn of_merged(measured: &[Measured]) -> Self {
        let Some((first, others)) = measured.split_first() else { return Self::default() };
        let mut classes = first.classes.clone();
        for other in others {
            classes.iter_mut().zip(&other.classes).for_each(|(class, of)| class.merge(of));
        }
        let replies: u64 = measured.iter().map(|one| one.backlog.replies).sum();
        let span_ns: u64 = measured.iter().map(|one| one.span_ns).sum();
        Self::of(&classes, per_s(replies, span_ns))
    }

    /// The number of a class, or of all tasks.
    pub fn get(&self, class: Option<usize>, metric: Metric) -> f64 {
        class.map_or(&self.overall, |class| &self.classes[class]).get(metric)
    }
}

impl Measured {
    /// Replies per second in the measured span.
    pub fn throughput_per_s(&self) -> f64 {
        per_s(self.backlog.replies, self.span_ns)
    }

    /// Tasks due per second in the measured span.
    pub fn offered_per_s(&self) -> f64 {
        per_s(self.counts.sent, self.span_ns)
    }
}

pub(super) fn per_s(count: u64, span_ns: u64) -> f64 {
    if span_ns == 0 { 0.0 } else { count as f64 * 1e9 / span_ns as f64 }
}

fn parts(of: &Distribution, unit: f64) -> [f64; 5] {
    let [p50, p90, p99, p999] = of.quantiles(QUANTILES).map(|value| value as f64);
    [of.mean(), p50, p90, p99, p999].map(|value| value / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(mean_service_ns: f64, latencies: &[u64]) -> ClassMeasured {
        let mut class = ClassMeasured::new(mean_service_ns);
        for ns in latencies {
            class.latency.record(*ns);
        }
        class
    }

    #[test]
    fn the_slowdown_against_the_types_mean_takes_each_class_by_its_own() {
        let classes = [class(1_000.0, &[2_000; 50]), class(10_000.0, &[50_000; 50])];
        let readings = Readings::of(&classes, 0.0);
        let metric = |part| Metric { measure: Measure::SlowdownTypeMean, part };
        assert!((readings.classes[0].get(metric(Part::P99)) - 2.0).abs() < 1e-2);
        assert!((readings.overall.get(metric(Part::P50)) - 2.0).abs() < 1e-2);
        assert!((readings.overall.get(metric(Part::P99)) - 5.0).abs() < 1e-2);
        assert!((readings.overall.get(metric(Part::Mean)) - 3.5).abs() < 1e-2);
    }
}
