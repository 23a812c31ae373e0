//! `sluice reproduce`: runs the papers' figures, and compares the papers' numbers with ours, with a verdict
//! each.

mod measured;

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use sluice_experiment::figures::PLANS;
use sluice_experiment::{FigurePlan, ReadyStudy};
use sluice_outcome::study::{StudyOutcome, Verdict};
use sluice_report as report;
use sluice_report::table::Table;
use sluice_study::plan::Plan;
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::print;
use sluice_support::results::{files, studies};
use sluice_support::stop::Stop;
use sluice_support::view;

use crate::study::args::ReproduceArgs;
use crate::study::{FinishedStudy, StudyJob, run as run_study, show};

/// The names that stand for all of Rain's plans, and for all plans.
const RAIN: &str = "rain";
const ALL: &str = "all";

/// The smallest number of operations for a meaningful mean.
const SAMPLES_MIN: u64 = 20;

/// A plan, and where it was found.
struct FoundPlan {
    plan: Figure,
    text: FigurePlan,
}

/// A figure's plan.
enum Figure {
    Simulated(Box<Plan>),
    /// A figure that is measured on this machine.
    Measured(Box<measured::Plan>),
}

/// A figure that is ready to run.
enum ReadyFigure {
    Simulated(ReadyStudy),
    Measured(Box<measured::Plan>),
}

/// Runs the plans, one after the other.
pub(crate) fn run(args: &ReproduceArgs) -> Outcome<()> {
    if args.list {
        return list(args.how.output.json);
    }
    let names = names(&args.plans);
    let found = names.iter().map(|name| find(name)).collect::<Outcome<Vec<_>>>()?;
    if args.follow.live {
        return follow(args, &found);
    }
    let ready = found.iter().map(|found| ready(args, found)).collect::<Outcome<Vec<_>>>()?;
    let stop = Stop::on_signals_and_hangup()?;
    let several = found.len() > 1;
    let mut ran = Vec::new();
    for (found, ready) in found.iter().zip(&ready) {
        let out = folder(args, found.plan.name(), several);
        let one = run_one(args, found, ready, out.clone(), &stop)?;
        if !several {
            show(&one, &args.how, &out)?;
        }
        let stopped = one.stopped;
        ran.push(one);
        if stopped {
            break;
        }
    }
    if several {
        show_all(args, &ran)?;
    }
    let outcomes: Vec<StudyOutcome> = ran.into_iter().map(|ran| ran.outcome).collect();
    verdict(&outcomes)
}

/// The requested plans; `rain` stands for all of Rain's figures, `all` for all figures.
fn names(asked: &[String]) -> Vec<String> {
    let known = |begins: &str| {
        let fits = PLANS.iter().filter(|(name, _)| name.starts_with(begins));
        fits.map(|(name, _)| (*name).to_owned()).collect()
    };
    match asked {
        [one] if one == ALL => known(""),
        [one] if one == RAIN => known("rain-"),
        _ => asked.to_vec(),
    }
}

/// Runs plans live, and compares them with the simulator.
fn follow(args: &ReproduceArgs, found: &[FoundPlan]) -> Outcome<()> {
    let (quiet, json) = (args.how.output.quiet || args.how.output.json, args.how.output.json);
    let stop = Stop::on_signals_and_hangup()?;
    for one in found {
        let Figure::Simulated(plan) = &one.plan else {
            let name = &one.text.called;
            return Err(Failure::bad_input(format!("{name} is measured here already: leave --live out")));
        };
        let out = folder(args, one.plan.name(), found.len() > 1).join("live");
        sluice_live::follow::run(&args.follow, plan, (&one.text.folder, &out), quiet, json, &stop)?;
    }
    Ok(())
}

fn run_one(
    args: &ReproduceArgs,
    found: &FoundPlan,
    ready: &ReadyFigure,
    out: PathBuf,
    stop: &Stop,
) -> Outcome<FinishedStudy> {
    match ready {
        ReadyFigure::Simulated(ready) => {
            run_study(&StudyJob { ready, how: &args.how, out, own: false }, stop)
        }
        ReadyFigure::Measured(plan) => {
            files::make(&out)?;
            let quiet = args.how.output.quiet || args.how.output.json;
            let outcome = plan.run(quiet, stop, vec![format!("sluice reproduce {}", found.text.called)])?;
            studies::write(&out, &outcome)?;
            Ok(FinishedStudy { outcome, stopped: false })
        }
    }
}

fn list(json: bool) -> Outcome<()> {
    let plans = PLANS.iter().map(|(name, _)| find(name)).collect::<Outcome<Vec<_>>>()?;
    let rows: Vec<ListedFigure> = plans.iter().map(|found| found.plan.listed()).collect();
    if json {
        print::line(json!({ "schema": "sluice.plans.v1", "plans": rows }))?;
        return Ok(());
    }
    let mut table =
        Table::new(["plan", "points", "tasks a point", "statements", "what it is about", "source"]);
    for row in rows {
        table.row([
            row.name,
            row.points.to_string(),
            row.tasks.to_string(),
            row.claims.to_string(),
            row.title,
            row.source,
        ]);
    }
    print::text(table)?;
    Ok(())
}

/// A plan in the list.
#[derive(Serialize)]
struct ListedFigure {
    name: String,
    title: String,
    source: String,
    points: usize,
    tasks: u64,
    replications: u32,
    claims: usize,
}

impl Figure {
    fn parse(found: &FigurePlan) -> Outcome<Self> {
        // Text that is not TOML goes to the parser of simulated plans, which reports the error.
        if found.is_measured() {
            return Ok(Self::Measured(Box::new(measured::Plan::parse(&found.file, &found.text)?)));
        }
        Ok(Self::Simulated(Box::new(Plan::parse(&found.file, &found.text)?)))
    }

    fn name(&self) -> &str {
        match self {
            Self::Simulated(plan) => &plan.name,
            Self::Measured(plan) => &plan.name,
        }
    }

    fn listed(&self) -> ListedFigure {
        match self {
            Self::Simulated(plan) => ListedFigure {
                name: plan.name.clone(),
                title: plan.title.clone(),
                source: plan.source.clone(),
                points: plan.cases.iter().map(|case| case.rates.len() * case.runs.len()).sum(),
                tasks: plan.tasks,
                replications: plan.replications,
                claims: plan.claims.len(),
            },
            Self::Measured(plan) => ListedFigure {
                name: plan.name.clone(),
                title: plan.title.clone(),
                source: plan.source.clone(),
                points: plan.points(),
                tasks: plan.samples * u64::from(plan.replications),
                replications: plan.replications,
                claims: plan.claims(),
            },
        }
    }
}

/// Finds a plan by its name, or reads a file.
fn find(name: &str) -> Outcome<FoundPlan> {
    let text = FigurePlan::find(name)?;
    Ok(FoundPlan { plan: Figure::parse(&text)?, text })
}

/// The plan with the flags' changes.
fn ready(args: &ReproduceArgs, found: &FoundPlan) -> Outcome<ReadyFigure> {
    match &found.plan {
        Figure::Simulated(plan) => Ok(ReadyFigure::Simulated(args.asked.ready_from(plan, &found.text)?)),
        Figure::Measured(_) if args.asked.cause.is_some() || args.asked.paper_length => {
            let name = &found.text.called;
            Err(Failure::bad_input(format!(
                "{name} is measured, not simulated: leave --cause and --paper-length out, or name another plan"
            )))
        }
        Figure::Measured(plan) => {
            let mut plan = plan.clone();
            plan.samples = samples(args, found)?.unwrap_or(plan.samples);
            plan.seed = args.asked.seed.unwrap_or(plan.seed);
            plan.replications = args.asked.replications.unwrap_or(plan.replications);
            Ok(ReadyFigure::Measured(plan))
        }
    }
}

/// How many operations to measure, if the flags say so.
fn samples(args: &ReproduceArgs, found: &FoundPlan) -> Outcome<Option<u64>> {
    match args.asked.tasks {
        Some(tasks) if tasks < SAMPLES_MIN => Err(Failure::bad_input(format!(
            "--tasks {tasks} is too few for {}, which is measured: give at least {SAMPLES_MIN}",
            found.text.called
        ))),
        tasks => Ok(tasks),
    }
}

/// The folder of a plan's results; with several plans, a folder for each below the given one.
fn folder(args: &ReproduceArgs, name: &str, several: bool) -> PathBuf {
    let mut own = name.to_owned();
    if args.asked.paper_length {
        own += "-paper-length";
    }
    if let Some(cause) = &args.asked.cause {
        own += "-";
        own += cause;
    }
    match (&args.how.out, several) {
        (Some(out), false) => out.clone(),
        (Some(out), true) => out.join(own),
        (None, _) => Path::new("out").join(own),
    }
}

fn show_all(args: &ReproduceArgs, ran: &[FinishedStudy]) -> Outcome<()> {
    if args.how.output.json {
        let studies: Vec<_> = ran.iter().map(|ran| json!(ran.outcome)).collect();
        print::line(json!({ "schema": "sluice.studies.v1", "studies": studies }))?;
    } else {
        let is_rain = args.plans.len() == 1 && args.plans[0] == RAIN;
        for ran in ran.iter().filter(|_| !is_rain) {
            print::line(report::summary(&ran.outcome, view::columns()))?;
        }
        print::line(report::verdicts(ran.iter().map(|ran| &ran.outcome)))?;
    }
    if ran.iter().any(|ran| ran.stopped) {
        let why = "stopped; what was done is kept, and the same command goes on from there";
        return Err(Failure::new(Kind::Aborted, why).with_result_shown());
    }
    Ok(())
}

/// A number that differs needs a cause that can be reproduced, and an undecided one needs a longer run.
fn verdict(outcomes: &[StudyOutcome]) -> Outcome<()> {
    let of = |verdict| {
        let all = outcomes.iter().flat_map(|outcome| &outcome.expectations);
        let ids = all.filter(|row| row.verdict == verdict && row.cause.is_none()).map(|row| row.id.as_str());
        ids.collect::<Vec<_>>()
    };
    let (unexplained, undecided) = (of(Verdict::Differs), of(Verdict::Undecided));
    let differ = (!unexplained.is_empty()).then(|| {
        format!(
            "{} differ from the paper, and no cause was shown: {}; add a [[cause]] to the plan and run it \
             again",
            unexplained.len(),
            unexplained.join(", ")
        )
    });
    let open = (!undecided.is_empty()).then(|| {
        format!(
            "{} are undecided, because their intervals hold both answers: {}; more --tasks narrow them",
            undecided.len(),
            undecided.join(", ")
        )
    });
    let kind = if differ.is_some() { Kind::GateFailed } else { Kind::Undecided };
    let whys: Vec<String> = [differ, open].into_iter().flatten().collect();
    if whys.is_empty() { Ok(()) } else { Err(Failure::new(kind, whys.join("; ")).with_result_shown()) }
}
