//! `sluice up`: runs a rack on this machine; with `--sweep` several, one after the other, compared with the
//! simulator.

use sluice_experiment::policies;
use sluice_live::args::SweepArgs;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::plan::{Changes, Plan};
use sluice_support::print;
use sluice_support::results::kept::Keeper;
use sluice_support::stop::Stop;

use crate::args::UpArgs;

/// Runs what the flags ask for.
pub(crate) fn run(args: &UpArgs) -> Outcome<()> {
    args.log.start_if_asked("up", &args.output);
    if args.live.sweep.is_some() {
        if args.budget.is_some() {
            return Err(Failure::bad_input(
                "the tasks of a live sweep have no budgets: leave --budget or --sweep out",
            ));
        }
        return sluice_live::run(&sweep(args));
    }
    let stop = Stop::on_signals_and_hangup()?;
    let how = sluice_launcher::UpSettings {
        keeper: &keeper(args),
        output: &args.output,
        markdown: args.export.file(),
        traces: &args.traces,
        dashboard: args.dashboard,
    };
    let plan = plan(args)?;
    if args.beside_pool && args.export.file().is_some() {
        let why = "--beside-pool has two results: leave --export-markdown out, or run each alone";
        return Err(Failure::bad_input(why));
    }
    if args.beside_pool {
        return super::beside::run(&plan, &how, &stop);
    }
    sluice_launcher::up(&plan, &how, &stop).map(drop)
}

fn sweep(args: &UpArgs) -> SweepArgs<'_> {
    SweepArgs {
        live: &args.live,
        dilate: args.dilate,
        length: args.length,
        out: args.out.as_deref(),
        markdown: args.export.file(),
        output: &args.output,
        commit: env!("SLUICE_COMMIT"),
    }
}

/// The plan with the flags' changes.
fn plan(args: &UpArgs) -> Outcome<Plan> {
    let changes = Changes {
        policy: policies::at_most_one("up without --sweep", &args.live.policy)?,
        dilation: args.dilate,
        faults: args.faults.clone(),
        io: args.io,
        runtime: args.runtime,
        out: args.out.clone(),
        pcap: args.pcap.clone(),
        rate: args.rate,
        stages: args.stages.clone(),
        length: args.length,
        budget: args.budget,
        within: args.within.clone(),
        thresholds: args.thresholds.clone(),
        metrics: args.metrics,
        racks: args.racks,
        spines: args.spines,
        ..Changes::default()
    };
    let given = Plan::load(args.plan.as_deref())?;
    let events = given.events.len();
    let plan = given.with(&changes)?;
    if plan.workers.is_empty() && plan.load.is_some() {
        return Err(Failure::bad_input(
            "there are no workers for the plan's load; add a [[worker]] with a `count` of at least 1, or leave [load] out and \
             start workers and load beside the rack",
        ));
    }
    let out = events - plan.events.len();
    if out > 0 && !args.output.quiet {
        print::to_stderr(format_args!(
            "with these flags {out} of {events} events cannot happen and are left out"
        ));
    }
    Ok(plan)
}

fn keeper(args: &UpArgs) -> Keeper {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let command: Vec<String> = std::iter::once("sluice".to_owned()).chain(words).collect();
    let from =
        args.plan.as_ref().map_or_else(|| "the built-in demo".to_owned(), |path| path.display().to_string());
    Keeper { command: command.join(" "), from }
}
