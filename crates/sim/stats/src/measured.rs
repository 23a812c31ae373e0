//! The measurements of one replication.

use serde::{Deserialize, Serialize};
use sluice_outcome::study::{Counts, Gauges, SliceDepths};

use super::distribution::Distribution;
use super::parts::Parts;

/// The parts of the measured span for which the backlog is recorded.
pub const EIGHTHS: usize = 8;

/// One replication of one point. A task counts if it was due in the measured span, however late it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The classes, in the workload's order.
    pub classes: Vec<ClassMeasured>,
    /// Events of the measured span.
    pub counts: Counts,
    /// Means over the measured span; the summary computes the values per task.
    pub gauges: Gauges,
    /// The backlog of tasks.
    pub backlog: Backlog,
    /// From the first measured task's due time to the due time of the first task after the last measured
    /// one.
    pub span_ns: u64,
    /// When the measured span began.
    pub warmup_ns: u64,
    /// False if the warm-up was to be detected and the run never settled.
    pub settled: bool,
    /// Depths over time, where they are found at run time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depths: Vec<SliceDepths>,
}

impl Measured {
    /// Replies per second in the measured span.
    pub fn throughput_per_s(&self) -> f64 {
        per_s(self.backlog.replies, self.span_ns)
    }

    /// A class's answers in time, a second, to tasks of the measured span; `None` if nobody asks.
    pub fn goodput_per_s(&self, class: usize) -> Option<f64> {
        Some(per_s(self.classes[class].in_time?, self.span_ns))
    }

    /// Tasks due per second in the measured span.
    pub fn offered_per_s(&self) -> f64 {
        per_s(self.counts.sent, self.span_ns)
    }

    /// The same replication with depths over time, and with their mean over the intervals of the measured
    /// span.
    #[must_use]
    pub fn with_depths(mut self, depths: Vec<SliceDepths>) -> Self {
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
    /// From the intended send time to the start of service, in nanoseconds.
    pub scheduling_delay: Distribution,
    /// Latency over the task's own service time, in thousandths.
    pub slowdown_own: Distribution,
    /// Waits in switch and worker + service, over service, in thousandths.
    pub slowdown_server: Distribution,
    /// The same measures by consecutive parts of the run, in coarse cells.
    pub parts: ClassParts,
    /// Answers within the latency that is asked for; `None` if nobody asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_time: Option<u64>,
}

/// A class's tasks in consecutive parts of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassParts {
    /// The parts of [`ClassMeasured::latency`].
    pub latency: Parts,
    /// The parts of [`ClassMeasured::scheduling_delay`].
    pub scheduling_delay: Parts,
    /// The parts of [`ClassMeasured::slowdown_own`].
    pub slowdown_own: Parts,
    /// The parts of [`ClassMeasured::slowdown_server`].
    pub slowdown_server: Parts,
}

impl ClassMeasured {
    pub(super) fn new(mean_service_ns: f64, parts: u32) -> Self {
        let [latency, scheduling_delay, slowdown_own, slowdown_server] =
            [(); 4].map(|()| Distribution::new());
        let parts = ClassParts::new(parts);
        Self {
            mean_service_ns,
            latency,
            scheduling_delay,
            slowdown_own,
            slowdown_server,
            parts,
            in_time: None,
        }
    }

    /// Adds these tasks of the class. One measure is recorded after the other: a histogram does not stay in
    /// the nearest cache, but the cells of many tasks can be fetched in parallel.
    pub(super) fn record(&mut self, tasks: &[TaskTimes]) {
        let Self { latency, scheduling_delay, slowdown_own, slowdown_server, parts, .. } = self;
        record_measure(latency, &mut parts.latency, tasks, |task| task.latency_ns);
        record_measure(scheduling_delay, &mut parts.scheduling_delay, tasks, |task| task.delay_ns);
        record_measure(slowdown_own, &mut parts.slowdown_own, tasks, |task| task.own_milli);
        record_measure(slowdown_server, &mut parts.slowdown_server, tasks, |task| task.server_milli);
    }
}

fn record_measure(
    distribution: &mut Distribution,
    parts: &mut Parts,
    tasks: &[TaskTimes],
    of: impl Fn(&TaskTimes) -> u64,
) {
    distribution.record_all(tasks.iter().map(&of));
    parts.record_all(tasks.iter().map(of));
}

/// A task's latency and scheduling delay, and its two slowdowns in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TaskTimes {
    pub(super) latency_ns: u64,
    pub(super) delay_ns: u64,
    pub(super) own_milli: u64,
    pub(super) server_milli: u64,
}

impl ClassParts {
    fn new(parts: u32) -> Self {
        let [latency, scheduling_delay, slowdown_own, slowdown_server] = [(); 4].map(|()| Parts::new(parts));
        Self { latency, scheduling_delay, slowdown_own, slowdown_server }
    }

    /// Begins the next part.
    pub(super) fn next(&mut self) {
        self.latency.next();
        self.scheduling_delay.next();
        self.slowdown_own.next();
        self.slowdown_server.next();
    }
}

/// Tasks that were sent and had not ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backlog {
    /// The mean number that a task found on its arrival, for each eighth of the measured tasks.
    pub by_eighth: [f64; EIGHTHS],
    /// The mean number of tasks that waited while workers were idle, for each eighth: the waiting tasks,
    /// times the share of workers that served no task. Zeros if it was not measured.
    #[serde(default)]
    pub passed_over: [f64; EIGHTHS],
    /// The largest such number if each task were sent to a worker drawn at random.
    #[serde(default)]
    pub at_random: Option<f64>,
    /// The number when the measured span began.
    pub at_open: u64,
    pub at_close: u64,
    /// Replies in the measured span, to tasks of any time.
    pub replies: u64,
}

/// So many events in a span, per second; 0 for an empty span.
pub(super) fn per_s(count: u64, span_ns: u64) -> f64 {
    if span_ns == 0 { 0.0 } else { count as f64 * 1e9 / span_ns as f64 }
}
