//! What a load found out: `schemas/result.v1.json` describes its JSON; every unit stands in a name.
//!
//! Percentiles come from the whole run's histograms, never from averages of smaller ones.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::study::{Depths, Sustained};

/// The result of one run.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// Which schema this follows.
    pub schema: &'static str,
    /// What the run is called.
    pub name: String,
    /// The version that ran it.
    pub sluice: &'static str,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The same, as logs are stamped.
    pub started_utc: String,
    pub policy: String,
    /// The seed of load and faults.
    pub seed: u64,
    /// All times are this many times those of the rack that is stood for.
    pub dilation: u32,
    /// Where packets were switched: "udp" or "xdp"; null if the load did not start the switch.
    pub io: Option<&'static str>,
    /// What was injected into every socket, or with XDP into every host's link; null if nothing.
    pub faults: Option<String>,
    /// Workers at the start; null if somebody else started them.
    pub workers: Option<usize>,
    /// When tasks were sent, in words.
    pub arrivals: String,
    /// Tasks offered per second; null for a trace.
    pub offered_per_s: Option<f64>,
    /// Each type's share of the tasks.
    pub mix: BTreeMap<String, f64>,
    /// How long the load ran before it was measured.
    pub warm_up_s: f64,
    /// How long it was measured.
    pub length_s: f64,
    /// After this a task's outcome is unknown.
    pub deadline_s: f64,
    /// Whether it was stopped early.
    pub aborted: bool,
    /// What stopped it, if that was no signal.
    pub abort_reason: Option<String>,
    /// Tasks of a trace that come after the load's end, and were not sent.
    pub cut_off: u64,
    /// Steps of this machine's wall clock while it ran.
    pub clock_steps: Vec<ClockStep>,
    /// Measured tasks.
    pub tasks: TaskCounts,
    /// Those before them.
    pub warm_up_tasks: TaskCounts,
    /// Replies per second of the measured time, whichever tasks they answer.
    pub replied_per_s: f64,
    /// Whether the load was kept up.
    pub sustained: Sustained,
    /// The types, in the order of the mix.
    pub types: Vec<TypeResult>,
    /// Whether the load was sent when it was due.
    pub sender: Sender,
    /// Faults on schedule.
    pub events: Vec<EventResult>,
    /// Where leaves run on servers of their racks: what packets' way there and back came to.
    pub leaf_trips: Vec<LeafTrip>,
    pub gates: Vec<Gate>,
    /// Whether all of it does.
    pub passed: bool,
    /// The length of a bin of the timeline.
    pub timeline_bin_s: f64,
    /// Bin by bin, from the start of the load.
    pub timeline: Vec<Bin>,
    /// The slices, by the indices that depths name them with.
    pub slices: Vec<String>,
    /// Depths over time, where they were found at run time; times since the load began.
    pub depths: Vec<Depths>,
    /// Each decision, with the numbers behind it.
    pub decisions: Vec<Decision>,
}

/// Tasks by outcome.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TaskCounts {
    /// Tasks that were due.
    pub sent: u64,
    /// Tasks that were answered, those included whose service failed.
    pub replied: u64,
    /// Those of them whose service failed.
    pub failed: u64,
    /// What the service said of the first of them.
    pub first_failure: Option<String>,
    /// Tasks that cannot have run.
    pub refused: u64,
    /// The same by reason.
    pub refused_by: BTreeMap<&'static str, u64>,
    /// Tasks that may have run.
    pub unknown: u64,
    /// The same by reason.
    pub unknown_by: BTreeMap<&'static str, u64>,
    /// Tasks of which nothing was heard.
    pub lost: u64,
    /// Times that any of them was sent.
    pub attempts: u64,
}

/// One type's tasks and times.
#[derive(Clone, Debug, Serialize)]
pub struct TypeResult {
    pub name: String,
    pub tasks: TaskCounts,
    /// Replies per second of the measured time, whichever tasks they answer.
    pub replied_per_s: f64,
    /// From the intended send time to the reply. All times are null where no reply brought any.
    pub latency_ns: Option<Quantiles>,
    /// Latency less service: from the intended send time to the start of service, and the reply's way home.
    pub scheduling_delay_ns: Option<Quantiles>,
    /// Latency over the task's own service time.
    pub slowdown: Option<Quantiles>,
    /// Latency over the type's mean service time.
    pub slowdown_type_mean: Option<Quantiles>,
    /// Waits + service over service, as the rack alone made them.
    pub slowdown_server: Option<Quantiles>,
    /// How long tasks waited in the switch.
    pub switch_wait_ns: Option<Quantiles>,
    /// The same at the worker.
    pub worker_wait_ns: Option<Quantiles>,
    /// How long they were served.
    pub service_ns: Option<Quantiles>,
}

/// Where a distribution lies.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quantiles {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    /// 95 % are below.
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Whether the load was sent when it was due.
#[derive(Clone, Debug, Serialize)]
pub struct Sender {
    /// How late a task was sent, at the 99th percentile; null if none was.
    pub behind_p99_ns: Option<u64>,
    /// The same at most.
    pub behind_max_ns: Option<u64>,
    /// How late it may be at the 99th percentile.
    pub behind_limit_ns: u64,
    /// Whether it was later.
    pub fell_behind: bool,
    /// How long tasks waited until the client library took them: admission at work; null if it took none.
    pub pushed_back_p99_ns: Option<u64>,
    /// The same at most.
    pub pushed_back_max_ns: Option<u64>,
}

/// The wall clock was set while a load ran. Times are not taken from it; stamps of arrivals are brought over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockStep {
    /// When that was noticed, from the start of the load.
    pub at_s: f64,
    /// How far it went forward; negative if it went back.
    pub by_s: f64,
}

/// A fault, and how long it was felt.
#[derive(Clone, Debug, Serialize)]
pub struct EventResult {
    /// From the start of the load.
    pub at_s: f64,
    pub what: String,
    /// Whether the plan wanted it.
    pub planned: bool,
    /// When it was undone, from the start of the load.
    pub returned_at_s: Option<f64>,
    /// How long it was felt; null if there was nothing to compare with.
    pub felt: Option<Felt>,
}

/// How long packets were away from a rack's switch, at the leaf on a server of that rack.
#[derive(Clone, Debug, Serialize)]
pub struct LeafTrip {
    /// The rack, from 1 on.
    pub rack: u16,
    /// Tasks and replies that went there and came back.
    pub packets: u64,
    /// How long that took, the leaf's own work included; null if there were none.
    pub trip_ns: Option<Quantiles>,
}

/// Something that must hold of a result.
#[derive(Clone, Debug, Serialize)]
pub struct Gate {
    /// What it is called.
    pub name: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// What was found, and what must be.
    pub says: String,
}

/// What happened in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Tasks that were due.
    pub due: u64,
    /// Replies that came.
    pub replied: u64,
    /// The longest latency among them, ns.
    pub slowest_ns: u64,
    /// Tasks that were due and had to be sent again.
    pub sent_again: u64,
}

/// How long a fault was felt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Felt {
    /// From the fault to the end of its last trace, seconds; 0 when it left none.
    pub lasted_s: f64,
    /// The longest latency meanwhile, ns.
    pub slowest_ns: u64,
    /// Whether the run ended before it was over.
    pub until_the_end: bool,
    /// Tasks that had to be sent again, of those that were due from the bin before the fault on, until for a
    /// second none had.
    pub sent_again: u64,
    /// From the fault to the end of the last bin with such a task, seconds.
    pub sent_again_for_s: f64,
}

/// A decision about depths or slices, with its reason.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// When, in seconds since the load began; negative before.
    pub at_s: f64,
    /// The same, in nanoseconds since 1970.
    #[serde(skip)]
    pub at_unix_ns: u64,
    /// What: `deeper`, `shallower`, `overloaded`, `evened`, `lent`.
    pub what: &'static str,
    /// Whether it was told only.
    pub advised: bool,
    pub slice: String,
    /// The worker, if it is about one.
    pub worker: Option<u32>,
    /// Its depth before.
    pub from_depth: Option<u32>,
    /// The depth from then on.
    pub to_depth: Option<u32>,
    /// The slice that lent the worker.
    pub from_slice: Option<String>,
    /// What it rests on.
    pub numbers: Option<Numbers>,
    /// The same in words.
    pub text: String,
}

/// What a judgement rests on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Numbers {
    /// The p99 of slowdowns in switch and worker.
    pub slowdown_p99: f64,
    /// The worker's part in it.
    pub worker_share: f64,
    /// How many tasks stood at the worker, at the 99th percentile.
    pub occupancy_p99: u32,
    /// How much of the time it stood idle.
    pub idle_share: f64,
    /// How often it was looked at.
    pub samples: u64,
    /// Tasks that it ended.
    pub tasks: u64,
}

impl RunResult {
    /// What was run, in a line.
    pub fn title(&self) -> String {
        let dilated =
            if self.dilation > 1 { format!(", dilated {} times", self.dilation) } else { String::new() };
        format!("{}: {}{dilated}", self.name, self.policy)
    }
}

impl Decision {
    /// What was decided, and why.
    pub fn said(&self) -> (&str, &str) {
        // A slice's name has no colon with a space behind it, or it reads oddly here.
        self.text.rsplit_once(": ").unwrap_or((&self.text, ""))
    }
}
