//! Results: what a load found out, as one value with a schema, and its files.
//!
//! `schemas/result.v1.json` describes the JSON; every unit stands in a name. Percentiles come from the whole run's
//! histograms, never from averages of smaller ones.

pub(crate) mod files;
pub(crate) mod table;
mod text;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use serde::Serialize;
use sluice_sim::study::outcome::Depths;

use crate::args::Io;
use crate::decisions::Decision;
use crate::fail::{Failure, Kind, Outcome};
use crate::load::{Bin, Counts, Felt, KindTally, SLOWDOWN_SCALE, Tally};
use crate::plan::{LoadPlan, Plan};

pub(crate) use text::summary;

/// Refused tasks that a run may have, as a share of all.
const REFUSED_MAX: f64 = 0.01;

/// The result of one run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunResult {
    schema: &'static str,
    name: String,
    sluice: &'static str,
    started_unix_s: u64,
    policy: String,
    seed: u64,
    /// All times are this many times those of the rack that is stood for.
    dilation: u32,
    /// Where packets were switched: "udp" or "xdp"; null if the load did not start the switch.
    io: Option<&'static str>,
    /// What was injected into every socket, or with XDP into every host's link; null if nothing.
    faults: Option<String>,
    workers: Option<usize>,
    arrivals: String,
    offered_per_s: Option<f64>,
    mix: BTreeMap<String, f64>,
    warm_up_s: f64,
    length_s: f64,
    deadline_s: f64,
    aborted: bool,
    tasks: TaskCounts,
    warm_up_tasks: TaskCounts,
    types: Vec<TypeResult>,
    sender: Sender,
    events: Vec<EventResult>,
    gates: Vec<Gate>,
    passed: bool,
    timeline_bin_s: f64,
    timeline: Vec<Bin>,
    /// The slices, by the indices that depths name them with.
    slices: Vec<String>,
    /// Depths over time, where they were found at run time; times since the load began.
    depths: Vec<Depths>,
    /// Each decision, with the numbers behind it.
    decisions: Vec<Decision>,
}

/// Tasks by outcome.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct TaskCounts {
    sent: u64,
    replied: u64,
    failed: u64,
    refused: u64,
    refused_by: BTreeMap<&'static str, u64>,
    unknown: u64,
    unknown_by: BTreeMap<&'static str, u64>,
    lost: u64,
    attempts: u64,
}

/// One type's tasks and times.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TypeResult {
    name: String,
    tasks: TaskCounts,
    replied_per_s: f64,
    /// From the intended send time to the reply.
    latency_ns: Quantiles,
    /// Latency over the task's own service time.
    slowdown: Quantiles,
    /// Latency over the type's mean service time.
    slowdown_type_mean: Quantiles,
    /// Waits + service over service, as the rack alone made them.
    slowdown_server: Quantiles,
    switch_wait_ns: Quantiles,
    worker_wait_ns: Quantiles,
    service_ns: Quantiles,
}

/// Where a distribution lies.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Quantiles {
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// Whether the load was sent when it was due.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sender {
    behind_p99_ns: u64,
    behind_max_ns: u64,
    behind_limit_ns: u64,
    fell_behind: bool,
    /// How long tasks waited until the client library took them: admission at work.
    pushed_back_p99_ns: u64,
    pushed_back_max_ns: u64,
}

/// A fault, and how long it was felt.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EventResult {
    /// From the start of the load.
    pub(crate) at_s: f64,
    /// What was done.
    pub(crate) what: String,
    /// When it was undone, from the start of the load.
    pub(crate) returned_at_s: Option<f64>,
    /// How long it was felt; null if there was nothing to compare with.
    pub(crate) felt: Option<Felt>,
}

/// Something that must hold of a result.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Gate {
    name: &'static str,
    passed: bool,
    says: String,
}

/// What every number of a result must be read with.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    /// What the run is called.
    pub(crate) name: String,
    /// The scheduler.
    pub(crate) policy: String,
    /// The seed of load and faults.
    pub(crate) seed: u64,
    /// How many times slower everything ran.
    pub(crate) dilation: u32,
    /// Where packets were switched; unknown if somebody else started the switch.
    pub(crate) io: Option<Io>,
    /// What was injected.
    pub(crate) faults: Option<String>,
    /// Workers at the start; unknown if somebody else started them.
    pub(crate) workers: Option<usize>,
}

impl Label {
    /// The label of a plan's run.
    pub(crate) fn of(plan: &Plan) -> Self {
        Self {
            name: plan.name.clone(),
            policy: plan.policy.clone(),
            seed: plan.seed,
            dilation: plan.dilation,
            io: None,
            faults: plan.faults.clone(),
            workers: Some(plan.workers.len()),
        }
    }
}

/// What a result is made of, beside the tally.
pub(crate) struct Run<'r> {
    /// The rack and how it was run.
    pub(crate) label: Label,
    /// The load.
    pub(crate) load: &'r LoadPlan,
    /// How long was really measured.
    pub(crate) measured: Duration,
    /// Whether it was stopped early.
    pub(crate) aborted: bool,
    /// What happened to the rack.
    pub(crate) events: Vec<EventResult>,
    /// When it began.
    pub(crate) started: SystemTime,
    /// The slices' names, in the order of their indices.
    pub(crate) slices: Vec<String>,
    /// Depths over time, if they were found at run time.
    pub(crate) depths: Vec<Depths>,
    /// What was decided.
    pub(crate) decisions: Vec<Decision>,
}

impl RunResult {
    /// The result of a run.
    pub(crate) fn new(run: Run<'_>, tally: &Tally) -> Self {
        let (label, load) = (run.label, run.load);
        let sender = Sender::new(load, tally);
        let gates = gates(tally, &sender);
        let seconds = run.measured.as_secs_f64().max(1e-9);
        Self {
            schema: "sluice.result.v1",
            name: label.name,
            sluice: env!("CARGO_PKG_VERSION"),
            started_unix_s: run.started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            policy: label.policy,
            seed: label.seed,
            dilation: label.dilation,
            io: label.io.map(Io::name),
            faults: label.faults,
            workers: label.workers,
            arrivals: load.arrivals.to_string(),
            offered_per_s: load.arrivals.rate(),
            mix: load.mix.iter().cloned().collect(),
            warm_up_s: load.warm_up.as_secs_f64(),
            length_s: run.measured.as_secs_f64(),
            deadline_s: load.deadline.as_secs_f64(),
            aborted: run.aborted,
            tasks: TaskCounts::new(&tally.measured()),
            warm_up_tasks: TaskCounts::new(&tally.warm_up),
            types: tally.kinds.iter().map(|kind| TypeResult::new(kind, seconds)).collect(),
            sender,
            events: run.events,
            passed: gates.iter().all(|gate| gate.passed),
            gates,
            timeline_bin_s: tally.timeline.bin().0 as f64 / 1e9,
            timeline: tally.timeline.bins().to_vec(),
            slices: run.slices,
            depths: run.depths,
            decisions: run.decisions,
        }
    }

    /// The slices' names.
    pub(crate) fn slices(&self) -> &[String] {
        &self.slices
    }

    /// Depths over time; empty where they were fixed.
    pub(crate) fn depths(&self) -> &[Depths] {
        &self.depths
    }

    /// What was decided.
    pub(crate) fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// What was run, in a line.
    pub(crate) fn title(&self) -> String {
        let dilated =
            if self.dilation > 1 { format!(", dilated {} times", self.dilation) } else { String::new() };
        format!("{}: {}{dilated}", self.name, self.policy)
    }

    /// Success only if every gate passed and the run came to its end.
    pub(crate) fn verdict(&self) -> Outcome<()> {
        let failed: Vec<&str> =
            self.gates.iter().filter(|gate| !gate.passed).map(|gate| gate.says.as_str()).collect();
        if !failed.is_empty() {
            return Err(Failure::new(
                Kind::GateFailed,
                format!("the result does not hold: {}", failed.join("; ")),
            ));
        }
        if self.aborted {
            let why = format!("stopped after {:.1} s of measuring; the result covers that", self.length_s);
            return Err(Failure::new(Kind::Aborted, why));
        }
        Ok(())
    }

    /// The JSON, one line.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("every key is a string and every number is finite or null")
    }
}

impl TaskCounts {
    fn new(counts: &Counts) -> Self {
        Self {
            sent: counts.sent,
            replied: counts.replied,
            failed: counts.failed,
            refused: counts.refused(),
            refused_by: counts.refused.clone(),
            unknown: counts.unknown(),
            unknown_by: counts.unknown.clone(),
            lost: counts.lost(),
            attempts: counts.attempts,
        }
    }
}

impl TypeResult {
    fn new(kind: &KindTally, seconds: f64) -> Self {
        let times = &kind.times;
        let latency = Quantiles::of(&times.latency, 1.0);
        let service = Quantiles::of(&times.service, 1.0);
        Self {
            name: kind.name.clone(),
            tasks: TaskCounts::new(&kind.counts),
            replied_per_s: kind.counts.replied as f64 / seconds,
            slowdown: Quantiles::of(&times.slowdown, SLOWDOWN_SCALE),
            slowdown_type_mean: latency.over(service.mean),
            slowdown_server: Quantiles::of(&times.slowdown_server, SLOWDOWN_SCALE),
            switch_wait_ns: Quantiles::of(&times.switch_wait, 1.0),
            worker_wait_ns: Quantiles::of(&times.worker_wait, 1.0),
            latency_ns: latency,
            service_ns: service,
        }
    }
}

impl Quantiles {
    fn of(histogram: &Histogram<u64>, scale: f64) -> Self {
        let at = |share: f64| histogram.value_at_quantile(share) as f64 / scale;
        Self {
            mean: histogram.mean() / scale,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / scale,
        }
    }

    fn over(self, unit: f64) -> Self {
        let over = |value: f64| if unit > 0.0 { value / unit } else { 0.0 };
        Self {
            mean: over(self.mean),
            p50: over(self.p50),
            p90: over(self.p90),
            p99: over(self.p99),
            p999: over(self.p999),
            max: over(self.max),
        }
    }
}

impl Sender {
    fn new(load: &LoadPlan, tally: &Tally) -> Self {
        let limit = load.behind_max.as_nanos() as u64;
        let behind = tally.behind.value_at_quantile(0.99);
        Self {
            behind_p99_ns: behind,
            behind_max_ns: tally.behind.max(),
            behind_limit_ns: limit,
            fell_behind: behind > limit,
            pushed_back_p99_ns: tally.pushed_back.value_at_quantile(0.99),
            pushed_back_max_ns: tally.pushed_back.max(),
        }
    }
}

/// What must hold of every run, its warm-up included.
fn gates(tally: &Tally, sender: &Sender) -> Vec<Gate> {
    let all = tally.everything();
    let refused = all.refused() as f64 / all.sent.max(1) as f64;
    let (behind, limit) = (sender.behind_p99_ns as f64 / 1e6, sender.behind_limit_ns as f64 / 1e6);
    vec![
        Gate {
            name: "none_lost",
            passed: all.lost() == 0,
            says: format!("{} of {} tasks lost (none may be)", all.lost(), all.sent),
        },
        Gate {
            name: "none_unknown",
            passed: all.unknown() == 0,
            says: format!("{} of {} tasks unknown (none may be)", all.unknown(), all.sent),
        },
        Gate {
            name: "few_refused",
            passed: refused < REFUSED_MAX,
            says: format!("{:.2} % of the tasks refused (must be under 1 %)", refused * 100.0),
        },
        Gate {
            name: "sender_kept_up",
            passed: !sender.fell_behind,
            says: format!("the sender was {behind:.1} ms behind at its 99th percentile (at most {limit} ms)"),
        },
    ]
}
