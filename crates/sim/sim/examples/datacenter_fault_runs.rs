//! Runs seeds of a datacenter until one breaks a promise: `datacenter_fault_runs FIRST COUNT SYSTEM`.
//! Prints how many runs it took.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use sluice_sim::policy::Policy;
use sluice_sim::racks::run_many_faults;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|number| number.parse::<u64>().ok());
    let policy = arguments.get(2).map_or("dc-horus", String::as_str);
    let (Some(first), Some(count), Ok(Policy::Datacenter(system))) =
        (number(0), number(1), Policy::parse(policy))
    else {
        let why = "datacenter_fault_runs needs the first seed, how many, and a system: 0 10000 dc-horus";
        writeln!(io::stderr(), "{why}").ok();
        return ExitCode::from(2);
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let many = run_many_faults(system, first..first.saturating_add(count), threads);
    // A failed write is ignored: the exit code says the same.
    if let Some(broken) = many.broken {
        writeln!(io::stdout(), "found after {} runs: {broken}", many.runs).ok();
        ExitCode::FAILURE
    } else {
        writeln!(io::stdout(), "nothing found in {} runs: {:?}", many.runs, many.tally).ok();
        ExitCode::SUCCESS
    }
}
