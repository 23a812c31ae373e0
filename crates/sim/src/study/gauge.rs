//! What a statement may ask of a point beside its tasks' times: writes, queues, memory, depths.

use sluice_outcome::study::Unit;

use super::bench::Bench;
use super::{StudyError, hint};
use crate::stats::{Each, Estimate, Method, estimate};

/// A number that replications count or average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    /// Copies of waiting tasks that are written to servers, a second.
    WritesPerS,
    /// The same by Rain §5.4: throughput × share that waits × share over 8 bytes × servers.
    WritesReckonedPerS,
    /// The first over the second.
    WritesOverReckoned,
    /// Copies a task.
    WritesPerTask,
    /// The share of tasks that waited in the switch.
    QueuedShare,
    /// What the rings of one server take.
    RingBytes,
    /// Workers' depths.
    DepthMean,
}

/// What is the same in all replications of a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    servers: f64,
    large: f64,
}

impl Facts {
    pub(super) fn of(bench: &Bench, case: usize, change: Option<usize>) -> Self {
        let classes = &bench.workload_of(case, change).classes;
        let large = classes.iter().map(|class| class.share * class.large).sum();
        Self { servers: bench.testbed(case, change).servers.count.into(), large }
    }
}

impl Gauge {
    const ALL: [(&'static str, Self); 7] = [
        ("writes_per_s", Self::WritesPerS),
        ("writes_reckoned_per_s", Self::WritesReckonedPerS),
        ("writes_over_reckoned", Self::WritesOverReckoned),
        ("writes_per_task", Self::WritesPerTask),
        ("queued_share", Self::QueuedShare),
        ("ring_bytes", Self::RingBytes),
        ("depth_mean", Self::DepthMean),
    ];

    /// Reads its name.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, gauge)| gauge).ok_or_else(|| {
            StudyError::Point(hint::unknown("gauge", text, Self::ALL.iter().map(|(name, _)| *name)))
        })
    }

    /// The unit of its numbers.
    pub const fn unit(self) -> Unit {
        match self {
            Self::WritesPerS | Self::WritesReckonedPerS => Unit::PerS,
            Self::WritesOverReckoned | Self::WritesPerTask | Self::DepthMean => Unit::Ratio,
            Self::QueuedShare => Unit::Share,
            Self::RingBytes => Unit::Count,
        }
    }

    /// The mean of all replications.
    pub(super) fn of(self, each: &[Each], facts: &Facts) -> (Estimate, String) {
        let values: Vec<f64> = each.iter().map(|one| self.of_one(one, facts)).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let found = estimate(mean, &values, Method::Replications);
        // No share is above one.
        let most = if self.unit() == Unit::Share { 1.0 } else { f64::INFINITY };
        (Estimate { high: found.high.min(most), ..found }, String::new())
    }

    fn of_one(self, one: &Each, facts: &Facts) -> f64 {
        let span_s = one.span_ns.max(1) as f64 / 1e9;
        let (writes, replied) = (one.counts.writes as f64, one.counts.replied.max(1) as f64);
        let queued = one.counts.queued as f64 / replied;
        let reckoned = replied / span_s * queued * facts.large * facts.servers;
        match self {
            Self::WritesPerS => writes / span_s,
            Self::WritesReckonedPerS => reckoned,
            Self::WritesOverReckoned => writes / span_s / reckoned.max(f64::MIN_POSITIVE),
            Self::WritesPerTask => writes / replied,
            Self::QueuedShare => queued,
            Self::RingBytes => one.gauges.ring_bytes.unwrap_or(0.0),
            Self::DepthMean => one.gauges.depth_mean.unwrap_or(0.0),
        }
    }
}
