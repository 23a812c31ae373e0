//! The `sluice` command: runs racks and loads, and reports about both.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod study;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use sluice_support::fail::{Failure, Outcome};
use sluice_support::stop::ignore_size_signal;

use args::Command;

fn main() -> ExitCode {
    let (json, done) = match args::read() {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(sluice)) => (json_of(&sluice.command), run_whole(sluice.command)),
        Err(failure) => (args::json_was_asked(), Err(failure)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

/// A panic is a bug. It ends like every other failure: with an exit code, and with JSON if that was asked
/// for.
fn run_whole(command: Command) -> Outcome<()> {
    catch_unwind(AssertUnwindSafe(|| run(command)))
        .unwrap_or_else(|_| Err(Failure::broken("a bug in sluice ended it; please report what stands above")))
}

fn run(command: Command) -> Outcome<()> {
    ignore_size_signal()?;
    match command {
        Command::Up(args) => commands::up::run(&args),
        Command::Switch(args) => commands::switch::run(&args),
        Command::Controller(args) => commands::controller::run(&args),
        Command::Worker(args) => commands::worker::run(args),
        Command::Server(args) => commands::server::run(&args),
        Command::Load(args) => commands::load::run(&args),
        Command::Write(args) => commands::write::run(&args),
        Command::Status(args) => commands::status::run(&args),
        Command::Dashboard(args) => commands::dashboard::run(&args),
        Command::Gateway(args) => commands::gateway::run(&args),
        Command::Move(args) => commands::change::run_move(&args),
        Command::Map(args) => commands::change::run_map(&args),
        Command::Versus(args) => sluice_live::versus::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Policies(args) => commands::policies::run(&args),
        Command::Resources(args) => commands::resources::run(&args),
        Command::Profile(args) => commands::profile::run(&args),
        Command::Sim(args) => commands::sim::run(&args),
        Command::Sweep(args) => commands::sweep::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Throughput(args) => commands::throughput::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Table(args) => commands::table::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::ReplayFault(args) => commands::faults::replay(&args),
        Command::FaultRuns(args) => commands::faults::runs(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
    }
}

/// Whether a failure should also be printed as JSON. After a result that fails its gates, the printed
/// result already is the JSON.
fn json_of(command: &Command) -> bool {
    match command {
        Command::Up(args) => args.output.json,
        Command::Switch(args) => args.output.json,
        Command::Controller(args) => args.output.json,
        Command::Worker(args) => args.common.json,
        Command::Server(args) => args.output.json,
        Command::Load(args) => args.output.json,
        Command::Write(args) => args.output.json,
        Command::Status(args) => args.json,
        Command::Diff(args) => args.json,
        Command::Dashboard(args) => args.output.json,
        Command::Gateway(args) => args.output.json,
        Command::Doctor(args) => args.json,
        Command::Policies(args) => args.json,
        Command::Resources(args) => args.json,
        Command::Versus(args) => args.output.json,
        Command::Profile(args) => args.output.json,
        Command::FaultRuns(args) => args.json,
        Command::Sim(args) | Command::Compare(args) => args.how.output.json,
        Command::Sweep(args) => args.curves.how.output.json,
        Command::Throughput(args) => args.how.output.json,
        Command::Reproduce(args) => args.how.output.json,
        Command::Table(args) => args.how.output.json,
        Command::Move(_)
        | Command::Map(_)
        | Command::Report(_)
        | Command::ReplayFault(_)
        | Command::Completions(_)
        | Command::Man(_) => false,
    }
}
