//! The results of a sweep as a study: a prediction and a measurement of each policy on the same traces.

use sluice_outcome::study::{
    Cause, Class, ClassTimes, Comparison, Measure, Metric, Panel, Part, Point, Schema, Series, Settings,
    Source, StudyOutcome, Verdict,
};
use sluice_report as report;
use sluice_stats::{Measured, Paired, Summary, paired, summarize};

use super::live_sweep::{LivePolicy, LiveSweep, WARM_UP_PART};
use super::record::LiveReplication;

const PANEL: &str = "live";

/// How far prediction and measurement may differ, as a share of the prediction.
const ALLOWED: [(Option<Metric>, f64); 3] = [
    (None, 0.01),
    (Some(Metric { measure: Measure::LatencyNs, part: Part::P50 }), 0.05),
    (Some(Metric { measure: Measure::LatencyNs, part: Part::P99 }), 0.10),
];

/// How much of a difference may remain for a cause to explain it, as a share of the difference, if the rest
/// still exceeds what is allowed.
const EXPLAINED_REST: f64 = 0.5;

/// One policy at one load.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// The index of the policy among those that were asked for.
    pub(crate) who: usize,
    pub(crate) load: usize,
    pub(crate) takes: Vec<LiveReplication>,
    /// The simulator's runs on the same traces; empty if a signal came before.
    pub(crate) predicted: Vec<Measured>,
    /// The simulator's runs with links that are longer by this machine's lateness.
    pub(crate) late: Option<Vec<Measured>>,
}

impl Cell {
    /// The numbers of the live replications.
    pub(crate) fn live(&self) -> Vec<Measured> {
        self.takes.iter().map(|take| take.measured.clone()).collect()
    }

    /// Whether any number surely differs from its prediction by more than is allowed.
    pub(crate) fn differs(&self) -> bool {
        let live = self.live();
        let of = |metric| paired(&self.predicted, &live, metric, None);
        ALLOWED.iter().any(|(metric, allowed)| {
            of(*metric).is_some_and(|found| verdict(&found, *allowed) == Verdict::Differs)
        })
    }
}

/// The study, with the cells that are known so far.
pub(crate) fn study(
    sweep: &LiveSweep,
    cells: &[Cell],
    notes: Vec<String>,
    command: String,
    commit: &str,
) -> StudyOutcome {
    let complete = cells.len() == sweep.policies.len() * sweep.loads.len();
    StudyOutcome {
        schema: Schema::V1,
        name: "live".into(),
        title: "a live rack beside the simulator, on the same traces".into(),
        sluice: env!("CARGO_PKG_VERSION").into(),
        commit: commit.into(),
        settings: settings(sweep, notes),
        commands: vec![command],
        complete,
        panels: vec![panel(sweep, cells)],
        heats: Vec::new(),
        expectations: Vec::new(),
        comparisons: cells.iter().flat_map(|cell| comparisons(sweep, cell)).collect(),
        searches: Vec::new(),
    }
}

/// The label of a policy's measurements.
fn live_label(who: &LivePolicy) -> String {
    format!("{} live", who.name)
}

/// The label of a policy's predictions.
fn predicted_label(who: &LivePolicy) -> String {
    format!("{} simulated", who.name)
}

fn settings(sweep: &LiveSweep, notes: Vec<String>) -> Settings {
    let tasks = || sweep.loads.iter().map(|load| sweep.tasks(*load));
    Settings {
        plan: None,
        testbed: sweep.testbed.name.clone(),
        testbed_toml: sweep.testbed.to_toml(),
        workers: sweep.testbed.workers,
        seed: sweep.seed,
        replications: sweep.replications,
        tasks: tasks().min().unwrap_or(0),
        tasks_most: tasks().max().unwrap_or(0),
        warm_up: format!("{:?} of real time", sweep.length / WARM_UP_PART),
        machine: Some(sluice_system::machine()),
        dilation: Some(sweep.dilation),
        notes,
    }
}

fn panel(sweep: &LiveSweep, cells: &[Cell]) -> Panel {
    let classes = sweep.workload.classes.iter().map(|class| Class {
        name: class.name.clone(),
        share: class.share,
        mean_service_ns: class.service.mean_ns(),
        within_ns: None,
    });
    Panel {
        id: PANEL.into(),
        title: format!(
            "{}, {} hold workers, dilated {} times",
            sweep.workload, sweep.testbed.workers, sweep.dilation
        ),
        workload: sweep.workload.to_string(),
        classes: classes.collect(),
        capacity_per_s: sweep.capacity_per_s(),
        series: (0..sweep.policies.len()).flat_map(|who| both(sweep, cells, who)).collect(),
        paper: Vec::new(),
    }
}

/// The two series of a policy.
fn both(sweep: &LiveSweep, cells: &[Cell], who: usize) -> [Series; 2] {
    let of = &sweep.policies[who];
    let mine = || cells.iter().filter(move |cell| cell.who == who && !cell.takes.is_empty());
    let series = |source, label, points| Series {
        policy: of.name.clone(),
        label,
        slices: None,
        slice_names: Vec::new(),
        source,
        points,
    };
    let has_prediction = |cell: &&Cell| !cell.predicted.is_empty();
    let predicted =
        mine().filter(has_prediction).map(|cell| point(sweep, cell.load, &summarize(&cell.predicted)));
    let live = mine().map(|cell| point(sweep, cell.load, &summarize(&cell.live())));
    [
        series(Source::Simulator, predicted_label(of), predicted.collect()),
        series(Source::Live, live_label(of), live.collect()),
    ]
}

fn point(sweep: &LiveSweep, load: usize, summary: &Summary) -> Point {
    let classes = sweep.workload.classes.iter().zip(&summary.classes).filter(|(_, of)| of.tasks > 0);
    let classes = classes.map(|(class, of)| ClassTimes {
        name: class.name.clone(),
        tasks: of.tasks,
        times: of.times.clone(),
        goodput_per_s: of.goodput_per_s,
    });
    let offered_per_s = sweep.rate_per_s(sweep.loads[load]);
    Point {
        offered_per_s,
        load: offered_per_s / sweep.capacity_per_s(),
        throughput_per_s: summary.throughput_per_s,
        sustained: summary.sustained.clone(),
        caveat: summary.caveat.clone(),
        overall: summary.overall.clone(),
        classes: classes.collect(),
        gauges: summary.gauges,
        counts: summary.counts,
        depths: Vec::new(),
    }
}

/// Comparisons of the numbers that must agree. A number that surely differs has a cause if one was found.
fn comparisons(sweep: &LiveSweep, cell: &Cell) -> Vec<Comparison> {
    let (who, live) = (&sweep.policies[cell.who], cell.live());
    let of = |(metric, allowed): &(Option<Metric>, f64)| {
        let found = paired(&cell.predicted, &live, *metric, None)?;
        let verdict = verdict(&found, *allowed);
        let real = verdict == Verdict::Differs;
        let cause = if real { cause(sweep, cell, *metric, *allowed) } else { None };
        Some(Comparison {
            panel: PANEL.into(),
            a: predicted_label(who),
            b: live_label(who),
            offered_per_s: sweep.rate_per_s(sweep.loads[cell.load]),
            metric: *metric,
            class: None,
            of_a: found.of_a,
            of_b: found.of_b,
            difference: found.difference,
            real,
            allowed: Some(*allowed),
            verdict: Some(verdict),
            cause,
        })
    };
    ALLOWED.iter().filter_map(of).collect()
}

/// The verdict: whether the whole interval of the difference lies within the allowed share of the
/// prediction, none of it, or a part.
fn verdict(found: &Paired, allowed: f64) -> Verdict {
    found.difference.verdict_within(allowed * found.of_a.value.abs())
}

/// This machine's lateness as the cause, if longer links bring the prediction to the measurement.
fn cause(sweep: &LiveSweep, cell: &Cell, metric: Option<Metric>, allowed: f64) -> Option<Cause> {
    let late = cell.late.as_ref()?;
    let (live, who) = (cell.live(), &sweep.policies[cell.who]);
    let (plain, with) = (paired(&cell.predicted, &live, metric, None)?, paired(late, &live, metric, None)?);
    let rest = with.difference.value.abs();
    let is_allowed = rest <= allowed * with.of_a.value.abs();
    if rest >= plain.difference.value.abs() || verdict(&with, allowed) == Verdict::Differs {
        return None;
    }
    // A slightly closer prediction whose interval hides the rest explains nothing.
    if !is_allowed && rest > EXPLAINED_REST * plain.difference.value.abs() {
        return None;
    }
    let off = |found: &Paired| report::share(found.difference.value / found.of_a.value);
    Some(Cause {
        says: format!("this machine was late: {}", lateness(cell)),
        command: format!(
            "sluice sim --policy {} --load {} --workload '{}' --testbed {}",
            who.name,
            sweep.loads[cell.load],
            sweep.workload,
            sweep.out.join(late_testbed_name(who, sweep.loads[cell.load])).display()
        ),
        shows: format!(
            "with links longer by that the prediction is off by {} instead of {}",
            off(&with),
            off(&plain)
        ),
    })
}

/// How late a cell's packets were, as text.
pub(crate) fn lateness(cell: &Cell) -> String {
    let mean = |of: fn(&LiveReplication) -> f64| {
        cell.takes.iter().map(of).sum::<f64>() / cell.takes.len().max(1) as f64
    };
    format!(
        "packets left {:.2} us late from the switch, {:.2} us from workers, {:.2} us from the client on average, \
         in the times of the rack that is stood for",
        mean(|take| take.switch_late_ns) / 1e3,
        mean(|take| take.hosts_late_ns) / 1e3,
        mean(|take| take.behind_mean_ns) / 1e3
    )
}

/// The file name of the testbed with a cell's longer links.
pub(crate) fn late_testbed_name(who: &LivePolicy, load: f64) -> String {
    format!("late-{}-{load}.toml", who.name.replace([':', ','], "-"))
}
