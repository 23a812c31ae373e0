//! What a load found out, made from its tally; and its files.

pub mod files;
pub mod kept;
pub mod studies;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use sluice_outcome::run::{
    Decision, EventResult, Gate, LeafTrip, Quantiles, RunResult, Sender, TaskCounts, TypeResult,
};
use sluice_outcome::study::Depths;

use crate::fail::{Failure, Kind, Outcome};
use crate::flags::Io;
use crate::load::{Counts, KindTally, SLOWDOWN_SCALE, Tally};
use crate::plan::{LoadPlan, Plan};
use crate::utc;

/// Refused tasks that a run may have, as a share of all.
const REFUSED_MAX: f64 = 0.01;

/// What every number of a result must be read with.
#[derive(Clone, Debug)]
pub struct Label {
    /// What the run is called.
    pub name: String,
    /// The scheduler.
    pub policy: String,
    /// The seed of load and faults.
    pub seed: u64,
    /// How many times slower everything ran.
    pub dilation: u32,
    /// Where packets were switched; unknown if somebody else started the switch.
    pub io: Option<Io>,
    /// What was injected.
    pub faults: Option<String>,
    /// Workers at the start; unknown if somebody else started them.
    pub workers: Option<usize>,
}

impl Label {
    /// The label of a plan's run.
    pub fn of(plan: &Plan) -> Self {
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
pub struct Run<'r> {
    /// The rack and how it was run.
    pub label: Label,
    /// The load.
    pub load: &'r LoadPlan,
    /// How long was really measured.
    pub measured: Duration,
    /// Whether it was stopped early.
    pub aborted: bool,
    /// What happened to the rack.
    pub events: Vec<EventResult>,
    /// When it began.
    pub started: SystemTime,
    /// The slices' names, in the order of their indices.
    pub slices: Vec<String>,
    /// What packets' way to leaves on servers of their racks and back came to.
    pub leaf_trips: Vec<LeafTrip>,
    /// Depths over time, if they were found at run time.
    pub depths: Vec<Depths>,
    /// What was decided.
    pub decisions: Vec<Decision>,
}

impl Run<'_> {
    /// What it came to.
    pub fn result(self, tally: &Tally) -> RunResult {
        let (label, load) = (self.label, self.load);
        let sender = sender(load, tally);
        let gates = gates(tally, &sender);
        let seconds = self.measured.as_secs_f64().max(1e-9);
        RunResult {
            schema: "sluice.result.v1",
            name: label.name,
            sluice: env!("CARGO_PKG_VERSION"),
            started_utc: utc::stamp(self.started),
            started_unix_s: self.started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
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
            length_s: self.measured.as_secs_f64(),
            deadline_s: load.deadline.as_secs_f64(),
            aborted: self.aborted,
            tasks: task_counts(&tally.measured()),
            warm_up_tasks: task_counts(&tally.warm_up),
            types: tally.kinds.iter().map(|kind| type_result(kind, seconds)).collect(),
            sender,
            events: self.events,
            passed: gates.iter().all(|gate| gate.passed),
            gates,
            timeline_bin_s: tally.timeline.bin().0 as f64 / 1e9,
            timeline: tally.timeline.bins().to_vec(),
            leaf_trips: self.leaf_trips,
            slices: self.slices,
            depths: self.depths,
            decisions: self.decisions,
        }
    }
}

/// Success only if every gate passed and the run came to its end.
pub fn verdict(of: &RunResult) -> Outcome<()> {
    let failed: Vec<&str> =
        of.gates.iter().filter(|gate| !gate.passed).map(|gate| gate.says.as_str()).collect();
    let missed = (!failed.is_empty()).then(|| format!("the result does not hold: {}", failed.join("; ")));
    // Of a run that was stopped a gate says little: the tasks that it stopped count against it.
    if of.aborted {
        let covers = format!("stopped after {:.1} s of measuring; the result covers that", of.length_s);
        let why = missed.map_or(covers.clone(), |missed| format!("{covers}; {missed}"));
        return Err(Failure::new(Kind::Aborted, why));
    }
    missed.map_or(Ok(()), |missed| Err(Failure::new(Kind::GateFailed, missed)))
}

fn task_counts(counts: &Counts) -> TaskCounts {
    TaskCounts {
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

fn type_result(kind: &KindTally, seconds: f64) -> TypeResult {
    let times = &kind.times;
    let latency = quantiles(&times.latency, 1.0);
    let service = quantiles(&times.service, 1.0);
    TypeResult {
        name: kind.name.clone(),
        tasks: task_counts(&kind.counts),
        replied_per_s: kind.counts.replied as f64 / seconds,
        scheduling_delay_ns: quantiles(&times.scheduling_delay, 1.0),
        slowdown: quantiles(&times.slowdown, SLOWDOWN_SCALE),
        slowdown_type_mean: over(latency, service.mean),
        slowdown_server: quantiles(&times.slowdown_server, SLOWDOWN_SCALE),
        switch_wait_ns: quantiles(&times.switch_wait, 1.0),
        worker_wait_ns: quantiles(&times.worker_wait, 1.0),
        latency_ns: latency,
        service_ns: service,
    }
}

/// Where what was measured lies, in a unit of so many of what it was measured in.
pub fn quantiles(histogram: &Histogram<u64>, scale: f64) -> Quantiles {
    let at = |share: f64| histogram.value_at_quantile(share) as f64 / scale;
    Quantiles {
        mean: histogram.mean() / scale,
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: histogram.max() as f64 / scale,
    }
}

fn over(of: Quantiles, unit: f64) -> Quantiles {
    let over = |value: f64| if unit > 0.0 { value / unit } else { 0.0 };
    Quantiles {
        mean: over(of.mean),
        p50: over(of.p50),
        p90: over(of.p90),
        p95: over(of.p95),
        p99: over(of.p99),
        p999: over(of.p999),
        max: over(of.max),
    }
}

fn sender(load: &LoadPlan, tally: &Tally) -> Sender {
    let limit = load.behind_max.as_nanos() as u64;
    let behind = tally.behind.value_at_quantile(0.99);
    Sender {
        behind_p99_ns: behind,
        behind_max_ns: tally.behind.max(),
        behind_limit_ns: limit,
        fell_behind: behind > limit,
        pushed_back_p99_ns: tally.pushed_back.value_at_quantile(0.99),
        pushed_back_max_ns: tally.pushed_back.max(),
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
