//! Runs seeds until one breaks a promise: `fault_runs FIRST COUNT`. Prints how many it took.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use sluice_sim::faults::run_many;

fn main() -> ExitCode {
    let mut numbers = env::args().skip(1).map(|number| number.parse::<u64>());
    let (Some(Ok(first)), Some(Ok(count))) = (numbers.next(), numbers.next()) else {
        let why = "fault_runs needs two numbers, the first seed and how many: fault_runs 0 10000";
        writeln!(io::stderr(), "{why}").ok();
        return ExitCode::from(2);
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let many = run_many(first..first.saturating_add(count), threads, |_| true);
    let found = if let Some(broken) = many.broken {
        Some(broken.to_string())
    } else if many.runs >= 1_000 && !many.tally.is_explained() {
        Some(format!("{} of {} tasks are unknown", many.tally.unknown, many.tally.submitted))
    } else {
        None
    };
    // Nobody has to read it: the exit code says the same.
    if let Some(found) = found {
        writeln!(io::stdout(), "found after {} runs: {found}", many.runs).ok();
        ExitCode::FAILURE
    } else {
        writeln!(io::stdout(), "nothing found in {} runs: {:?}", many.runs, many.tally).ok();
        ExitCode::SUCCESS
    }
}
