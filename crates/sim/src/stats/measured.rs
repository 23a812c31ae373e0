//! What one replication measured.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::reading::Readings;
use crate::study::outcome::{Counts, Depths, Gauges};

/// Parts of the measured span in which the backlog is told.
pub const EIGHTHS: usize = 8;

/// One replication of one point: a task counts if it was due in the measured span, however late it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// In the workload's order.
    pub classes: Vec<ClassMeasured>,
    /// Events of the measured span.
    pub counts: Counts,
    /// Means over the measured span; what they say per task is left to the summary.
    pub gauges: Gauges,
    /// Whether tasks piled up.
    pub backlog: Backlog,
    /// From the first measured task's due time to the first one after the last.
    pub span_ns: u64,
    /// When the measured span began.
    pub warmup_ns: u64,
    /// False if the warm-up was to be detected and the run never settled.
    pub settled: bool,
    /// Readings of consecutive parts of the run, if they were asked for.
    pub batches: Vec<Readings>,
    /// Depths over time, where they are found at run time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depths: Vec<Depths>,
}

impl Measured {
    /// The same with depths over time, and their mean over the intervals of the measured span.
    pub(crate) fn with_depths(mut self, depths: Vec<Depths>) -> Self {
        let measured = self.warmup_ns..=self.warmup_ns + self.span_ns;
        let within: Vec<_> = depths.iter().filter(|depths| measured.contains(&depths.at_ns)).collect();
        let workers: f64 = within.iter().map(|depths| f64::from(depths.workers)).sum();
        let sum: f64 = within.iter().map(|depths| f64::from(depths.workers) * depths.depth_mean).sum();
        self.gauges.depth_mean = (workers > 0.0).then(|| sum / workers);
        self.depths = depths;
        self
    }
}

/// One class of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassMeasured {
    /// The mean service time that the workload states.
    pub mean_service_ns: f64,
    /// From the intended send time to the reply, in nanoseconds.
    pub latency: Distribution,
    /// Latency over the task's own service time, in thousandths.
    pub slowdown_own: Distribution,
    /// Waits in switch and worker + service, over service, in thousandths.
    pub slowdown_server: Distribution,
}

impl ClassMeasured {
    pub(super) fn new(mean_service_ns: f64) -> Self {
        let [latency, slowdown_own, slowdown_server] = [(); 3].map(|()| Distribution::new());
        Self { mean_service_ns, latency, slowdown_own, slowdown_server }
    }

    /// Another replication's tasks of the same class too.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.slowdown_own.merge(&other.slowdown_own);
        self.slowdown_server.merge(&other.slowdown_server);
    }

    pub(super) fn clear(&mut self) {
        self.latency.clear();
        self.slowdown_own.clear();
        self.slowdown_server.clear();
    }
}

/// Tasks that were sent and had not ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backlog {
    /// As many as a task found on its arrival, on average over each eighth of the measured tasks.
    pub by_eighth: [f64; EIGHTHS],
    /// When the measured span began.
    pub at_open: u64,
    /// When it ended.
    pub at_close: u64,
    /// Replies in the measured span, to whichever task.
    pub replies: u64,
}
