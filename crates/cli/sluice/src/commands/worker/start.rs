//! Starts a worker: one of our services in this process, or a program that replaces this process.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use sluice_net::program::{WorkerArgs, serve_on_cores};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::print;
use sluice_system::{Attempt, advice};

/// Replaces this process with a program of the user. Returns only on failure.
pub(super) fn become_program(program: &Path, args: &[OsString]) -> Outcome<()> {
    let why = Command::new(program).args(args).exec();
    let (program, helps) = (program.display(), advice(Attempt::Program, &why));
    Err(Failure::bad_input(format!("{program} cannot be run: {why}; {helps}")))
}

/// Runs one of our services that is not a program of its own.
pub(super) fn serve_ours(name: &str, args: &WorkerArgs) -> Outcome<()> {
    let make = sluice_services::opener(name).ok_or_else(|| {
        Failure::bad_input(sluice_units::unknown("service", name, &sluice_services::SERVICES))
    })?;
    args.start_log();
    let report = serve_on_cores(args, make)?;
    print::to_stderr(&report);
    if args.json {
        print::line(serde_json::to_string(&report).map_err(Failure::broken)?)?;
    }
    if report.drained {
        return Ok(());
    }
    let why = "the worker could not finish what it held; its clients try again elsewhere";
    Err(Failure::new(Kind::Aborted, why).with_result_shown())
}
