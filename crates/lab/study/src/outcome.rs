//! The result of a study as a value, from the known points.

use sluice_outcome::study::{
    Cause, Class, ClassTimes, Comparison, Expectation, Measure, Metric, Panel, PaperCurve, PaperPoint, Part,
    Point, Schema, Search, Series, Settings, Source, StudyOutcome, Verdict,
};
use sluice_stats::{Summary, paired};

use super::checked_plan::CheckedPlan;
use super::evaluator::Evaluator;
use super::finding::{Finding, find, paper, shown, unit};
use super::known_points::{Evaluation, KnownPoints, PointId};
use super::plan::{
    CauseTest, Change, Claim, ClaimRates, Compare, PolicySetup, Quantity, Relation, SearchFor, Subject,
};
use super::policy_number::{PolicyNumber, is_less};
use super::rounds::{causes, needs_cause, wanted};
use super::verdict::Holds;

/// What the caller knows about the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The version of Sluice that runs it.
    pub sluice: String,
    /// The commit of this program.
    pub commit: String,
    /// The plan's file, if there is one.
    pub plan: Option<String>,
    /// Commands that run the study again; the first one runs all of it.
    pub commands: Vec<String>,
}

/// The study's result, as far as its points are done.
pub fn outcome(bench: &CheckedPlan, known: &KnownPoints, provenance: &Provenance) -> StudyOutcome {
    let plan = bench.plan();
    StudyOutcome {
        schema: Schema::V1,
        name: plan.name.clone(),
        title: plan.title.clone(),
        sluice: provenance.sluice.clone(),
        commit: provenance.commit.clone(),
        settings: settings(bench, provenance),
        commands: provenance.commands.clone(),
        complete: wanted(bench, known).is_empty(),
        panels: (0..plan.cases.len()).map(|case| panel(bench, known, case)).collect(),
        heats: Vec::new(),
        expectations: plan.claims.iter().map(|claim| expectation(bench, known, claim)).collect(),
        comparisons: plan.comparisons.iter().flat_map(|pair| comparisons(bench, known, pair)).collect(),
        searches: plan.searches.iter().filter_map(|search| searched(bench, known, search)).collect(),
    }
}

fn settings(bench: &CheckedPlan, provenance: &Provenance) -> Settings {
    let plan = bench.plan();
    let testbed = bench.testbed(0, None);
    let (tasks, tasks_most) = bench.tasks_range();
    let mut notes = plan.notes.clone();
    if !plan.source.is_empty() {
        notes.insert(0, plan.source.clone());
    }
    let left_out = |case: usize| bench.workload(case).trace().filter(|trace| trace.left_out() > 0);
    notes.extend((0..plan.cases.len()).filter_map(left_out).map(|trace| {
        format!(
            "{}: {} submissions are left out, which did not finish in it",
            trace.label(),
            trace.left_out()
        )
    }));
    Settings {
        plan: provenance.plan.clone(),
        testbed: testbed.name.clone(),
        testbed_toml: testbed.to_toml(),
        workers: testbed.workers,
        seed: plan.seed,
        replications: plan.replications,
        tasks,
        tasks_most,
        warm_up: bench.terms().length.text(),
        machine: None,
        dilation: None,
        notes,
    }
}

fn panel(bench: &CheckedPlan, known: &KnownPoints, case: usize) -> Panel {
    let (of, workload) = (&bench.plan().cases[case], bench.workload(case));
    let within = of.within.as_ref().and_then(|within| within.limits(&workload.classes).ok());
    let class = |(at, class): (usize, &sluice_workload::Class)| Class {
        within_ns: within.as_ref().map(|limits| limits[at].0),
        name: class.name.clone(),
        share: class.share,
        mean_service_ns: class.service.mean_ns(),
    };
    Panel {
        id: of.id.clone(),
        title: of.title.clone(),
        workload: workload.to_string(),
        classes: workload.classes.iter().enumerate().map(class).collect(),
        capacity_per_s: bench.capacity(case, None),
        series: of.runs.iter().map(|run| series(bench, known, case, run)).collect(),
        paper: bench.plan().claims.iter().filter(|claim| claim.case == case).filter_map(curve).collect(),
    }
}

fn series(bench: &CheckedPlan, known: &KnownPoints, case: usize, run: &PolicySetup) -> Series {
    let id = PointId { case, run: run.clone(), rate: 0, change: None };
    let points = known.series(&id).map(|(rate, summary)| point(bench, case, rate, summary));
    Series {
        policy: run.policy.clone(),
        label: run.label(),
        slices: run.slices_text(),
        slice_names: run.slices.iter().map(|(types, _)| types.clone()).collect(),
        source: Source::Simulator,
        points: points.collect(),
    }
}

fn point(bench: &CheckedPlan, case: usize, rate: u64, summary: &Summary) -> Point {
    let classes = bench.workload(case).classes.iter().zip(&summary.classes).filter(|(_, of)| of.tasks > 0);
    let class = |(class, of): (&sluice_workload::Class, &sluice_stats::ClassSummary)| ClassTimes {
        name: class.name.clone(),
        tasks: of.tasks,
        times: of.times.clone(),
        goodput_per_s: of.goodput_per_s,
    };
    Point {
        offered_per_s: rate as f64,
        load: rate as f64 / bench.capacity(case, None),
        throughput_per_s: summary.throughput_per_s,
        sustained: summary.sustained.clone(),
        caveat: summary.caveat.clone(),
        overall: summary.overall.clone(),
        classes: classes.map(class).collect(),
        gauges: summary.gauges,
        counts: summary.counts,
        depths: summary.each.first().map_or_else(Vec::new, |first| first.depths.clone()),
    }
}

/// A claim's contribution to the picture: a value at a rate, or a limit at the highest rate that keeps it.
fn curve(claim: &Claim) -> Option<PaperCurve> {
    let Relation::Value { who, paper } = &claim.relation else { return None };
    let (wanted, points) = match &claim.quantity {
        Quantity::At { wanted, at: ClaimRates::Rates(rates) } => {
            (wanted, rates.iter().map(|rate| PaperPoint { offered_per_s: *rate, value: *paper }).collect())
        }
        Quantity::Keeps(limit) => {
            (&limit.wanted, vec![PaperPoint { offered_per_s: *paper, value: limit.below }])
        }
        _ => return None,
    };
    Some(PaperCurve {
        label: who.label.clone(),
        series: who.of.first().map(PolicySetup::label),
        metric: wanted.metric,
        class: wanted.class.clone(),
        place: claim.place.clone(),
        ours: claim.ours,
        points,
    })
}

fn expectation(bench: &CheckedPlan, known: &KnownPoints, claim: &Claim) -> Expectation {
    let plan = bench.plan();
    let case = &plan.cases[claim.case];
    let alone = plan.claims.iter().filter(|other| other.id == claim.id).count() == 1;
    let found = match find(plan, claim, Evaluator::new(bench, known, None)) {
        Evaluation::Known(found) => found,
        Evaluation::Wants(_) => Finding {
            measured: None,
            figure: None,
            verdict: Verdict::NotMeasured,
            why: "the run was stopped before its points were done".into(),
            off: f64::INFINITY,
        },
    };
    let (cause, others) =
        if needs_cause(&found) { cause(bench, known, claim, &found) } else { (None, String::new()) };
    let unknown = claim.unknown_set_up.as_ref().filter(|_| found.verdict == Verdict::SetUpNotKnown);
    let why = [Some(found.why), unknown.cloned(), Some(others)];
    let why: Vec<String> = why.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    Expectation {
        id: if alone { claim.id.clone() } else { format!("{}-{}", claim.id, case.id) },
        claim: claim.says.clone(),
        place: claim.place.clone(),
        ours: claim.ours,
        panel: Some(case.id.clone()),
        unit: unit(claim),
        paper: paper(claim),
        measured: found.measured,
        verdict: found.verdict,
        why: why.join("; "),
        cause,
    }
}

/// The change that brings the number closest to the paper's; and as text, the changes that do not.
fn cause(
    bench: &CheckedPlan,
    known: &KnownPoints,
    claim: &Claim,
    found: &Finding,
) -> (Option<Cause>, String) {
    let mut best: Option<(f64, Cause)> = None;
    let mut others = Vec::new();
    for (at, test) in causes(bench, claim) {
        let Evaluation::Known(with) = find(bench.plan(), claim, Evaluator::new(bench, known, Some(at)))
        else {
            continue;
        };
        let shows = shows(claim, test, found, &with);
        if !moves(found, &with) {
            others.push(format!("not because of {}: {shows}", test.id));
            continue;
        }
        let command = format!("sluice reproduce {} --cause {}", bench.plan().name, test.id);
        if best.as_ref().is_none_or(|(off, _)| with.off < *off) {
            best = Some((with.off, Cause { says: test.says.clone(), command, shows }));
        }
    }
    (best.map(|(_, cause)| cause), others.join("; "))
}

/// Whether a change brings the number closer to the paper's: by more than chance, or so that the verdict
/// becomes an agreement. Chance is smaller where both numbers are of the same tasks.
fn moves(found: &Finding, with: &Finding) -> bool {
    let apart = match (&found.figure, &with.figure) {
        (Some(one), Some(other)) => is_less(one, other) != Holds::Open,
        _ => true,
    };
    let mends = found.verdict == Verdict::Differs && with.verdict == Verdict::Agrees;
    (apart || mends) && with.off < found.off
}

fn shows(claim: &Claim, test: &CauseTest, found: &Finding, with: &Finding) -> String {
    let number = |finding: &Finding| {
        finding.measured.map_or("no number".to_owned(), |found| shown(found.value, unit(claim)))
    };
    match paper(claim) {
        Some(paper) => format!(
            "with {}: {} instead of {} (the paper: {}); {}",
            test.text(),
            number(with),
            number(found),
            shown(paper, unit(claim)),
            with.verdict
        ),
        None => format!("with {}: {}; {}", test.text(), with.why, with.verdict),
    }
}

fn comparisons(bench: &CheckedPlan, known: &KnownPoints, pair: &Compare) -> Vec<Comparison> {
    let case = &bench.plan().cases[pair.case];
    let classes = bench.workload(pair.case).classes.iter().enumerate();
    let classes: Vec<_> = classes.map(|(at, class)| Some((at, class.name.clone()))).collect();
    let several = if classes.len() > 1 { classes } else { Vec::new() };
    let mut all = Vec::new();
    for rate in &case.rates {
        for class in [None].iter().chain(&several) {
            let metrics = Measure::ALL.iter().flat_map(|measure| {
                Part::ALL.iter().map(move |part| Some(Metric { measure: *measure, part: *part }))
            });
            let throughput = class.is_none().then_some(None);
            let compared = throughput.into_iter().chain(metrics);
            all.extend(
                compared.filter_map(|metric| comparison(bench, known, pair, *rate, class.as_ref(), metric)),
            );
        }
    }
    all
}

fn comparison(
    bench: &CheckedPlan,
    known: &KnownPoints,
    pair: &Compare,
    rate: f64,
    class: Option<&(usize, String)>,
    metric: Option<Metric>,
) -> Option<Comparison> {
    let id =
        |run: &PolicySetup| PointId { case: pair.case, run: run.clone(), rate: rate as u64, change: None };
    let (a, b) = (known.replications(&id(&pair.a))?, known.replications(&id(&pair.b))?);
    let found = paired(a, b, metric, class.map(|(at, _)| *at))?;
    Some(Comparison {
        panel: bench.plan().cases[pair.case].id.clone(),
        a: pair.a.label(),
        b: pair.b.label(),
        offered_per_s: rate,
        metric,
        class: class.map(|(_, name)| name.clone()),
        of_a: found.of_a,
        of_b: found.of_b,
        difference: found.difference,
        real: found.is_real,
        allowed: None,
        verdict: None,
        cause: None,
    })
}

fn searched(bench: &CheckedPlan, known: &KnownPoints, search: &SearchFor) -> Option<Search> {
    let evaluator = Evaluator::new(bench, known, None);
    let PolicyNumber { estimate, note, .. } =
        evaluator.rate_within_limit(search.case, &Subject::one(&search.run), &search.limit).known()?;
    Some(Search {
        panel: bench.plan().cases[search.case].id.clone(),
        policy: search.run.label(),
        metric: search.limit.wanted.metric,
        class: search.limit.wanted.class.clone(),
        limit: search.limit.below,
        rate_per_s: (estimate.value > 0.0).then_some(estimate),
        note,
    })
}

impl CauseTest {
    /// The changes as text.
    pub fn text(&self) -> String {
        let all: Vec<String> = self.changes.iter().map(Change::text).collect();
        all.join(" and ")
    }
}

impl Change {
    /// The change as people read it.
    fn text(&self) -> String {
        match self {
            Self::Policy { from, to } => format!("{to} for {from}"),
            Self::Testbed(keys) => keys.to_string().trim().replace('\n', " "),
            Self::Workload(text) => {
                // A table has many lines; the parsed workload prints as one.
                let short = sluice_workload::Workload::parse(text).map(|workload| workload.to_string());
                format!("the workload {}", short.as_ref().unwrap_or(text))
            }
            Self::Large(share) => format!("{} % of tasks over 8 bytes", share * 100.0),
            Self::Slowdown(measure) => format!("{} for the slowdown", measure.name()),
            Self::Slices(slices) if slices.is_empty() => "all workers shared".into(),
            Self::Slices(slices) => {
                let slices: Vec<String> =
                    slices.iter().map(|(class, workers)| format!("{class}={workers}")).collect();
                format!("slices {}", slices.join(","))
            }
            Self::Workers(workers) => format!("{workers} workers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sluice_stats::{Method, NumberInParts, estimate};

    use super::super::policy_number::Basis;
    use super::*;

    /// A mean of four replications over some tasks, which differs from a paper's 10.
    fn finding(samples: [f64; 4], tasks: usize) -> Finding {
        let found = estimate(samples.iter().sum::<f64>() / 4.0, &samples, Method::Replications);
        let number = Arc::new(NumberInParts::of_replications(found, &samples));
        let basis = Some(Basis { tasks, number });
        let figure =
            PolicyNumber { estimate: found, by: "rain:1".into(), rate: Some(1), note: String::new(), basis };
        let off = found.value / 10.0 - 1.0;
        let verdict = Verdict::Differs;
        Finding { measured: Some(found), figure: Some(figure), verdict, why: String::new(), off }
    }

    #[test]
    fn a_change_is_a_cause_if_pairs_of_the_same_tasks_show_that_it_brings_the_number_closer() {
        let found = finding([20.0, 30.0, 40.0, 50.0], 0);
        let closer = [19.0, 28.4, 38.1, 47.4];
        assert!(moves(&found, &finding(closer, 0)));
        assert!(!moves(&found, &finding(closer, 1)), "other tasks' luck is as large");
        assert!(!moves(&finding(closer, 0), &found), "it brings the number farther");
        assert!(!moves(&found, &finding([20.1, 29.8, 40.1, 49.9], 0)), "it may be chance");
    }
}
