//! The result of a load, computed from its tally; and its files.

pub mod either;
pub mod export;
pub mod files;
mod intervals;
pub mod kept;
pub mod studies;
mod thresholds;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use sluice_outcome::run::{
    Bin, Decision, EventResult, Gate, LeafTrip, Quantiles, RunResult, SenderReport, StageResult, TaskCounts,
    TypeResult,
};
use sluice_outcome::study::{SliceDepths, Sustained};
use sluice_report::run;
use sluice_stats::{RunPart, sustained_in_parts};
use sluice_wire::Nanos;

use crate::fail::{Failure, Kind, Outcome};
use crate::flags::Io;
use crate::load::{Counts, KindTally, SLOWDOWN_SCALE, StageTally, Tally};
use crate::plan::{LoadPlan, Plan, REFUSED_MAX, RateStage, RateStages};
use crate::{print, utc};
use intervals::{AtOneRate, intervals};

/// How long it takes to notice that a host is gone, in seconds.
const LEASE_S: f64 = 1.0;
/// Into how many parts the measured time is divided to decide whether the rack kept up with the load.
const PARTS: usize = 8;

/// The settings behind all numbers of a result.
#[derive(Clone, Debug)]
pub struct Label {
    /// The name of the run.
    pub name: String,
    pub policy: String,
    /// The seed of load and faults.
    pub seed: u64,
    /// The factor by which all times were stretched.
    pub dilation: u32,
    /// Where packets were switched; unknown if this command did not start the switch.
    pub io: Option<Io>,
    pub faults: Option<String>,
    /// Workers at the start; unknown if this command did not start them.
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

/// The inputs of a result, beside the tally.
pub struct RunInputs<'r> {
    /// The settings of the run.
    pub label: Label,
    pub load: &'r LoadPlan,
    /// Whether it was stopped early.
    pub aborted: bool,
    /// Why the run was stopped early; `None` after a signal.
    pub abort_reason: Option<String>,
    /// The faults of the rack.
    pub events: Vec<EventResult>,
    pub started: SystemTime,
    /// The slices' names, in the order of their indices.
    pub slices: Vec<String>,
    /// The times that packets took to leaves on servers and back.
    pub leaf_trips: Vec<LeafTrip>,
    /// Depths over time, if they were found at run time.
    pub depths: Vec<SliceDepths>,
    pub decisions: Vec<Decision>,
}

impl RunInputs<'_> {
    /// The result.
    pub fn result(self, tally: &Tally) -> RunResult {
        let (label, load) = (self.label, self.load);
        let sender = sender(load, tally);
        let sustained = sustained(load, tally, &self.events);
        let measured = tally.measured_time();
        let seconds = measured.end.since(measured.start).0 as f64 / 1e9;
        let mut gates = gates(load, tally, &sender, &sustained);
        gates.extend(load.thresholds.iter().map(|threshold| thresholds::gate(threshold, tally, seconds)));
        let types: Vec<_> = tally.kinds.iter().map(|kind| type_result(tally, kind, seconds)).collect();
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
            length_s: seconds,
            deadline_s: load.deadline.as_secs_f64(),
            aborted: self.aborted,
            abort_reason: self.abort_reason,
            cut_off: tally.cut_off,
            clock_steps: tally.clock_steps.clone(),
            tasks: task_counts(&tally.measured()),
            warm_up_tasks: task_counts(&tally.warm_up),
            replied_per_s: types.iter().map(|kind| kind.replied_per_s).sum(),
            goodput_per_s: types.iter().map(|kind| kind.goodput_per_s).sum(),
            sustained,
            types,
            stages: stages(load, tally),
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

/// Where a result goes.
#[derive(Clone, Copy, Debug)]
pub struct ResultPlaces<'p> {
    /// The folder for its files.
    pub folder: Option<&'p Path>,
    /// The file for its tables in Markdown.
    pub markdown: Option<&'p Path>,
    /// Whether stdout gets JSON.
    pub json: bool,
}

/// Prints a result, stores it, and returns whether it holds. `ended` is the error that ended
/// the run early, if any. The table is printed first, so that it is visible even if the result cannot be
/// stored.
pub fn tell(result: &RunResult, tally: &Tally, places: ResultPlaces<'_>, ended: Outcome<()>) -> Outcome<()> {
    let printed =
        if places.json { print::line(run::json(result)) } else { print::line(run::summary(result)) };
    let kept = places.folder.map_or(Ok(()), |folder| files::write(folder, result, tally));
    let kept = kept.and_then(|()| export::write(places.markdown, &run::markdown(result)));
    let kept = kept.map_err(Failure::with_result_shown);
    let found = [ended, kept, printed, verdict(result)].into_iter().filter_map(Result::err);
    let found = found.reduce(|first, other| first.and(&other));
    found.map_or(Ok(()), |failure| Err(failure.with_result_shown()))
}

/// Success only if every gate passed and the run was complete; a stopped run is not.
fn verdict(of: &RunResult) -> Outcome<()> {
    let failed: Vec<&str> =
        of.gates.iter().filter(|gate| !gate.passed).map(|gate| gate.says.as_str()).collect();
    let holds = failed.is_empty();
    let why = format!("the result does not hold: {}", failed.join("; "));
    if !of.aborted {
        return if holds { Ok(()) } else { Err(Failure::new(Kind::GateFailed, why)) };
    }
    let stopped = format!("stopped after {:.1} s of measuring; the result covers that", of.length_s);
    Err(Failure::new(Kind::Aborted, if holds { stopped } else { format!("{stopped}; {why}") }))
}

fn task_counts(counts: &Counts) -> TaskCounts {
    TaskCounts {
        sent: counts.sent,
        replied: counts.replied,
        failed: counts.failed,
        first_failure: counts.first_failure.clone(),
        refused: counts.refused(),
        refused_by: counts.refused.clone(),
        unknown: counts.unknown(),
        unknown_by: counts.unknown.clone(),
        lost: counts.lost(),
        attempts: counts.attempts,
    }
}

fn type_result(tally: &Tally, kind: &KindTally, seconds: f64) -> TypeResult {
    let times = &kind.times;
    let latency = quantiles(&times.latency, 1.0);
    let service = quantiles(&times.service, 1.0);
    let per_s = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let intervals = if tally.stages.is_empty() {
        intervals(&AtOneRate {
            counts: &kind.counts,
            replied_in_time: kind.replied_in_time,
            latency: &times.latency,
            parts: &kind.parts,
            seconds,
            end: tally.measured_time().end,
        })
    } else {
        BTreeMap::new()
    };
    TypeResult {
        name: kind.name.clone(),
        tasks: task_counts(&kind.counts),
        replied_per_s: per_s(kind.replied_in_time),
        within_ns: kind.within.map(|within| within.0),
        goodput_per_s: kind.within.map(|_| per_s(kind.in_time)),
        scheduling_delay_ns: quantiles(&times.scheduling_delay, 1.0),
        slowdown: quantiles(&times.slowdown, SLOWDOWN_SCALE),
        slowdown_type_mean: latency.zip(service).and_then(|(latency, service)| over(latency, service.mean)),
        slowdown_server: quantiles(&times.slowdown_server, SLOWDOWN_SCALE),
        switch_wait_ns: quantiles(&times.switch_wait, 1.0),
        worker_wait_ns: quantiles(&times.worker_wait, 1.0),
        latency_ns: latency,
        service_ns: service,
        intervals,
    }
}

/// The stages that began before the run ended.
fn stages(load: &LoadPlan, tally: &Tally) -> Vec<StageResult> {
    let planned = load.arrivals.stages().into_iter().flat_map(RateStages::all);
    let end = tally.measured_time().end;
    let begun = planned.zip(&tally.stages).filter(|(_, stage)| stage.span.start < end);
    let seconds = |at: Nanos| at.0 as f64 / 1e9;
    let result = |(planned, stage): (&RateStage, &StageTally)| {
        let until = stage.span.end.min(end);
        let lasted_s = seconds(until.since(stage.span.start));
        let at_one_rate = stage.parts.as_ref().map(|parts| AtOneRate {
            counts: &stage.counts,
            replied_in_time: stage.replied_in_time,
            latency: &stage.latency,
            parts,
            seconds: lasted_s,
            end,
        });
        StageResult {
            from_s: seconds(stage.span.start),
            until_s: seconds(until),
            from_per_s: planned.from_per_s,
            to_per_s: planned.to_per_s,
            tasks: task_counts(&stage.counts),
            replied_per_s: stage.replied_in_time as f64 / lasted_s,
            latency_ns: quantiles(&stage.latency, 1.0),
            intervals: at_one_rate.as_ref().map_or_else(BTreeMap::new, intervals),
        }
    };
    begun.map(result).collect()
}

/// Quantiles of a histogram, divided by `scale`; `None` if it is empty.
pub fn quantiles(histogram: &Histogram<u64>, scale: f64) -> Option<Quantiles> {
    let at = |share: f64| histogram.value_at_quantile(share) as f64 / scale;
    (!histogram.is_empty()).then(|| Quantiles {
        mean: histogram.mean() / scale,
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: histogram.max() as f64 / scale,
    })
}

fn over(of: Quantiles, unit: f64) -> Option<Quantiles> {
    let over = |value: f64| value / unit;
    (unit > 0.0).then(|| Quantiles {
        mean: over(of.mean),
        p50: over(of.p50),
        p90: over(of.p90),
        p95: over(of.p95),
        p99: over(of.p99),
        p999: over(of.p999),
        max: over(of.max),
    })
}

/// The 99th percentile and the maximum; `None` if the histogram is empty.
fn worst(of: &Histogram<u64>) -> Option<(u64, u64)> {
    (!of.is_empty()).then(|| (of.value_at_quantile(0.99), of.max()))
}

fn sender(load: &LoadPlan, tally: &Tally) -> SenderReport {
    let limit = load.behind_max.as_nanos() as u64;
    let (behind, pushed_back) = (worst(&tally.behind), worst(&tally.pushed_back));
    SenderReport {
        behind_p99_ns: behind.map(|(p99, _)| p99),
        behind_max_ns: behind.map(|(_, max)| max),
        behind_limit_ns: limit,
        fell_behind: behind.is_some_and(|(p99, _)| p99 > limit),
        pushed_back_p99_ns: pushed_back.map(|(p99, _)| p99),
        pushed_back_max_ns: pushed_back.map(|(_, max)| max),
    }
}

/// Whether the rack kept up with the load, by the simulator's rule: the bins of the measured time are
/// grouped into parts. Parts in which a fault may show are left out, since a fault is not an overload. If
/// the plan allows refusals, the rack has to keep up with the tasks that were not refused.
fn sustained(load: &LoadPlan, tally: &Tally, events: &[EventResult]) -> Sustained {
    let untold = |why: &str| Sustained { holds: true, why: why.to_owned() };
    if tally.measured().sent == 0 {
        return untold("no task was due in the measured time");
    }
    let (measured, bin) = (tally.measured_time(), tally.timeline.bin().0);
    let (first, last) = (measured.start.0.div_ceil(bin) as usize, (measured.end.0 / bin) as usize);
    let bins = tally.timeline.bins();
    let is_calm = |at: &usize| {
        let [from_s, until_s] = [*at, at + 1].map(|at| (at as u64 * bin) as f64 / 1e9);
        events.iter().all(|event| until_s <= event.at_s || from_s >= over_at_s(event))
    };
    let calm = (first..last).filter(is_calm).map(|at| bins.get(at).copied().unwrap_or_default());
    let calm: Vec<Bin> = calm.collect();
    let allows = load.refused_max > REFUSED_MAX;
    let due = |bin: &Bin| if allows { bin.due.saturating_sub(bin.refused) } else { bin.due };
    let parts = calm.chunks_exact((calm.len() / PARTS).max(1)).take(PARTS).map(|bins| RunPart {
        due: bins.iter().map(due).sum(),
        replies: bins.iter().map(|bin| bin.replied).sum(),
    });
    sustained_in_parts(&parts.collect::<Vec<_>>())
        .unwrap_or_else(|| untold("the run, without its faults, is too short to tell"))
}

/// When a fault can no longer show: a lease after its part is back, and after its last effect.
fn over_at_s(event: &EventResult) -> f64 {
    let felt_until_s = event.felt.map_or(0.0, |felt| event.at_s + felt.lasted_s);
    felt_until_s.max(event.returned_at_s.unwrap_or(event.at_s) + LEASE_S)
}

/// The conditions that every run must meet, including its warm-up.
fn gates(load: &LoadPlan, tally: &Tally, sender: &SenderReport, sustained: &Sustained) -> Vec<Gate> {
    let (all, measured) = (tally.everything(), tally.measured());
    let refused = all.refused() as f64 / all.sent.max(1) as f64;
    let failed = all.failed as f64 / all.replied.max(1) as f64;
    let limit = sender.behind_limit_ns as f64 / 1e6;
    let behind = sender.behind_p99_ns.map_or_else(
        || "no measured task was due".to_owned(),
        |behind| format!("the sender was {:.1} ms behind at its 99th percentile", behind as f64 / 1e6),
    );
    let answered = measured.replied - measured.failed;
    let kept_up = match (sustained.holds, sustained.why.as_str()) {
        (true, "") => "the load was kept up".to_owned(),
        (true, why) => format!("whether the load was kept up is unknown: {why}"),
        (false, why) => format!("the load was not kept up: {why}"),
    };
    let gate = |name, passed, says| Gate { name, passed, says, threshold: None };
    vec![
        gate("something_measured", answered > 0, {
            format!("{answered} of {} measured tasks answered (some must be)", measured.sent)
        }),
        gate("none_lost", all.lost() == 0, {
            format!("{} of {} tasks lost (none may be)", all.lost(), all.sent)
        }),
        gate("none_unknown", all.unknown() == 0, {
            format!("{} of {} tasks unknown (none may be)", all.unknown(), all.sent)
        }),
        gate("few_refused", refused < load.refused_max, {
            let (refused, most) = (refused * 100.0, load.refused_max * 100.0);
            format!("{refused:.2} % of the tasks refused (must be under {most} %)")
        }),
        gate("few_failed", failed <= load.failed_max, {
            let (failed, most) = (failed * 100.0, load.failed_max * 100.0);
            format!("{failed:.2} % of the replies failed (at most {most} % may)")
        }),
        gate("sender_kept_up", !sender.fell_behind, format!("{behind} (at most {limit} ms)")),
        gate("kept_up", sustained.holds, kept_up),
    ]
}

#[cfg(test)]
mod tests;
