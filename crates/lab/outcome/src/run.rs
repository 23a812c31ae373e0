//! The result of a load. `schemas/result.v1.json` describes its JSON; each name contains its unit.
//!
//! Percentiles come from the whole run's histograms, never from averages of smaller ones.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::study::{SliceDepths, Sustained};

/// The result of one run.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// The schema that this value follows.
    pub schema: &'static str,
    pub name: String,
    /// The version of Sluice that ran it.
    pub sluice: &'static str,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// When the run began, in UTC, as in log files.
    pub started_utc: String,
    pub policy: String,
    /// The seed of load and faults.
    pub seed: u64,
    /// The factor between this run's times and those of the emulated rack.
    pub dilation: u32,
    /// Where packets were switched: "udp", "xdp" or "bmv2"; null if the load did not start the switch.
    pub io: Option<&'static str>,
    /// The faults injected into every socket, or on links into every host's link; null if there were none.
    pub faults: Option<String>,
    /// How many workers the run started; null if they ran already.
    pub workers: Option<usize>,
    /// The arrival process, in words.
    pub arrivals: String,
    /// Offered tasks per second; null for a trace.
    pub offered_per_s: Option<f64>,
    /// Each type's share of the tasks.
    pub mix: BTreeMap<String, f64>,
    /// How long the load ran before the measurement.
    pub warm_up_s: f64,
    /// The measured time.
    pub length_s: f64,
    /// The time after which a task's outcome is unknown.
    pub deadline_s: f64,
    /// Whether the run was stopped early.
    pub aborted: bool,
    /// What stopped the run, if it was not a signal.
    pub abort_reason: Option<String>,
    /// Tasks of a trace that come after the load's end and were not sent.
    pub cut_off: u64,
    /// Changes of this machine's wall clock during the run.
    pub clock_steps: Vec<ClockStep>,
    /// Measured tasks.
    pub tasks: TaskCounts,
    /// The tasks of the warm-up, before the measured tasks.
    pub warm_up_tasks: TaskCounts,
    /// Replies per second of the measured time, including replies to earlier tasks.
    pub replied_per_s: f64,
    /// Answers in time, per second of the measured time; null if nobody asks for goodput.
    pub goodput_per_s: Option<f64>,
    /// Whether the rack kept up with the load.
    pub sustained: Sustained,
    /// The types, in the order of the mix.
    pub types: Vec<TypeResult>,
    /// The stages of a load whose rate changes with time.
    pub stages: Vec<StageResult>,
    /// Whether the load was sent on time.
    pub sender: SenderReport,
    /// Faults on schedule.
    pub events: Vec<EventResult>,
    /// For leaves on servers of their racks: the times that packets took to the leaf and back.
    pub leaf_trips: Vec<LeafTrip>,
    pub gates: Vec<Gate>,
    /// Whether all gates passed.
    pub passed: bool,
    /// The length of a bin of the timeline, in seconds.
    pub timeline_bin_s: f64,
    /// The timeline's bins, from the start of the load.
    pub timeline: Vec<Bin>,
    /// The names of the slices; `depths` refers to them by index.
    pub slices: Vec<String>,
    /// Depths over time, if they were found at run time; times count from the start of the load.
    pub depths: Vec<SliceDepths>,
    /// Each decision with its numbers.
    pub decisions: Vec<Decision>,
}

/// Tasks by outcome.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TaskCounts {
    /// Tasks that were due in the measured time.
    pub sent: u64,
    /// Tasks that were answered, including failed ones.
    pub replied: u64,
    /// Answered tasks whose service failed.
    pub failed: u64,
    /// The error text of the first failed task.
    pub first_failure: Option<String>,
    /// Tasks that cannot have run.
    pub refused: u64,
    /// Refused tasks by reason.
    pub refused_by: BTreeMap<&'static str, u64>,
    /// Tasks that may have run.
    pub unknown: u64,
    /// Unknown tasks by reason.
    pub unknown_by: BTreeMap<&'static str, u64>,
    /// Tasks without any answer.
    pub lost: u64,
    pub attempts: u64,
}

/// One type's tasks and times.
#[derive(Clone, Debug, Serialize)]
pub struct TypeResult {
    pub name: String,
    pub tasks: TaskCounts,
    /// Replies per second of the measured time, including replies to earlier tasks.
    pub replied_per_s: f64,
    /// The latency within which an answer is in time; null if nobody asks for goodput.
    pub within_ns: Option<u64>,
    /// Answers in time, of the tasks due in the measured time, per second; null if nobody asks for goodput.
    pub goodput_per_s: Option<f64>,
    /// From the intended send time to the reply. All times are null if no reply came.
    pub latency_ns: Option<Quantiles>,
    /// Latency minus service time: from the intended send time to the start of service, plus the reply's
    /// way back.
    pub scheduling_delay_ns: Option<Quantiles>,
    /// Latency divided by the task's own service time.
    pub slowdown: Option<Quantiles>,
    /// Latency divided by the type's mean service time.
    pub slowdown_type_mean: Option<Quantiles>,
    /// Waits plus service, divided by service: the rack's part of the slowdown.
    pub slowdown_server: Option<Quantiles>,
    /// How long tasks waited in the switch.
    pub switch_wait_ns: Option<Quantiles>,
    /// How long tasks waited at the worker.
    pub worker_wait_ns: Option<Quantiles>,
    /// How long tasks were served.
    pub service_ns: Option<Quantiles>,
    /// The 95 % intervals of numbers, as far as the run's parts tell them: `replied_per_s`, the shares
    /// `refused`, `failed` and `unknown` of the tasks sent, and `latency_ns_p99` and so on.
    pub intervals: BTreeMap<&'static str, [f64; 2]>,
}

/// The tasks of all types that were due in one stage of a load.
#[derive(Clone, Debug, Serialize)]
pub struct StageResult {
    /// When the stage began, from the start of the load.
    pub from_s: f64,
    /// When the stage ended; earlier than planned if the run was stopped.
    pub until_s: f64,
    /// Offered tasks per second at the beginning.
    pub from_per_s: f64,
    /// Offered tasks per second at the planned end.
    pub to_per_s: f64,
    pub tasks: TaskCounts,
    /// Replies per second of the stage, including replies to earlier tasks.
    pub replied_per_s: f64,
    /// From the intended send time to the reply; null if no reply came.
    pub latency_ns: Option<Quantiles>,
    /// The same 95 % intervals as those of types; none for a ramp, whose parts differ by design.
    pub intervals: BTreeMap<&'static str, [f64; 2]>,
}

/// Quantiles of a distribution.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quantiles {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    /// 95 % of the values are below.
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Whether the load was sent on time.
#[derive(Clone, Debug, Serialize)]
pub struct SenderReport {
    /// The 99th percentile of the sender's lateness; null if no task was sent.
    pub behind_p99_ns: Option<u64>,
    /// The largest lateness of the sender.
    pub behind_max_ns: Option<u64>,
    /// The largest allowed 99th percentile.
    pub behind_limit_ns: u64,
    /// Whether the limit was exceeded.
    pub fell_behind: bool,
    /// The 99th percentile of the time until the client library accepted a task; null if it accepted none.
    pub pushed_back_p99_ns: Option<u64>,
    /// The largest such time.
    pub pushed_back_max_ns: Option<u64>,
}

/// A change of the wall clock during a load. Measured times do not use the wall clock; the kernel's
/// timestamps are converted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockStep {
    /// When the change was noticed, from the start of the load.
    pub at_s: f64,
    /// How far the clock went forward; negative if it went back.
    pub by_s: f64,
}

/// A fault, and how long it had effects.
#[derive(Clone, Debug, Serialize)]
pub struct EventResult {
    /// The time of the fault, from the start of the load.
    pub at_s: f64,
    pub what: String,
    /// Whether the plan asked for the fault.
    pub planned: bool,
    /// When the fault was undone, from the start of the load.
    pub returned_at_s: Option<f64>,
    /// The fault's effects; null if there was nothing to compare with.
    pub felt: Option<FaultEffect>,
}

/// Times that packets took to the leaf on a server of a rack and back, measured at the rack's switch.
#[derive(Clone, Debug, Serialize)]
pub struct LeafTrip {
    /// The number of the rack, from 1.
    pub rack: u16,
    /// Tasks and replies that went to the leaf and came back.
    pub packets: u64,
    /// How long the trips took, including the leaf's work; null if there were none.
    pub trip_ns: Option<Quantiles>,
}

/// A condition that a result must meet.
#[derive(Clone, Debug, Serialize)]
pub struct Gate {
    /// The name of the condition.
    pub name: &'static str,
    /// Whether the condition holds.
    pub passed: bool,
    /// The measured value and the bound, as text.
    pub says: String,
    /// The threshold behind the condition, if somebody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<ThresholdResult>,
}

/// A bound that somebody set, and the number that it bounds.
#[derive(Clone, Debug, Serialize)]
pub struct ThresholdResult {
    /// The threshold as it is written in plans and flags.
    pub text: String,
    /// The measured number; null if nothing was measured.
    pub measured: Option<f64>,
    pub bound: f64,
    /// The unit of both: "ns", "share", "per_s" or "quotient".
    pub unit: &'static str,
}

/// Events in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Tasks that were due in this stretch.
    pub due: u64,
    /// Replies that came.
    pub replied: u64,
    /// Tasks that were due in it and were refused.
    pub refused: u64,
    /// The longest latency of these tasks, in ns.
    pub slowest_ns: u64,
    /// Tasks that were due in it and had to be retried.
    pub sent_again: u64,
}

/// How long a fault had effects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FaultEffect {
    /// From the fault to the end of its last effect, in seconds; 0 if there was none.
    pub lasted_s: f64,
    /// The longest latency in that time, in ns.
    pub slowest_ns: u64,
    /// Whether the effects lasted to the end of the run.
    pub until_the_end: bool,
    /// Retried tasks among those that were due from the bin before the fault until a second passed without
    /// one.
    pub sent_again: u64,
    /// From the fault to the end of the last bin with a retried task, in seconds.
    pub sent_again_for_s: f64,
}

/// A decision about depths or slices, with its reason.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// The time of the decision, in seconds since the start of the load; negative before it.
    pub at_s: f64,
    /// The time of the decision, in nanoseconds since 1970.
    #[serde(skip)]
    pub at_unix_ns: u64,
    /// The kind of decision: `deeper`, `shallower`, `overloaded`, `evened`, `lent`.
    pub what: &'static str,
    /// Whether the decision was only recommended.
    pub advised: bool,
    pub slice: String,
    /// The worker concerned, if it is about one.
    pub worker: Option<u32>,
    /// The worker's depth before the decision.
    pub from_depth: Option<u32>,
    /// The depth after the decision.
    pub to_depth: Option<u32>,
    /// The slice that lent the worker.
    pub from_slice: Option<String>,
    /// The numbers behind the decision.
    pub numbers: Option<VerdictNumbers>,
    /// The decision as a sentence.
    pub text: String,
}

/// The numbers behind a verdict on a worker.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct VerdictNumbers {
    /// The p99 of slowdowns in switch and worker.
    pub slowdown_p99: f64,
    /// The share of the wait that was spent at the worker.
    pub worker_share: f64,
    /// The 99th percentile of the number of tasks that waited in the switch.
    pub occupancy_p99: u32,
    /// The share of the time in which the worker was idle.
    pub idle_share: f64,
    pub samples: u64,
    /// How many tasks the worker ended.
    pub tasks: u64,
}

impl RunResult {
    /// The title of the run, in one line.
    pub fn title(&self) -> String {
        let dilated =
            if self.dilation > 1 { format!(", dilated {} times", self.dilation) } else { String::new() };
        format!("{}: {}{dilated}", self.name, self.policy)
    }
}

impl Decision {
    /// The decision and its reason.
    pub fn said(&self) -> (&str, &str) {
        // A slice's name with a colon and a space in it would be split in the wrong place.
        self.text.rsplit_once(": ").unwrap_or((&self.text, ""))
    }
}
