//! Runs seeds until one breaks a promise: `fault_runs FIRST COUNT`. Prints how many it took.

use std::env;
use std::process::ExitCode;
use std::thread;

use sluice_sim::faults::run_many;

fn main() -> ExitCode {
    let mut numbers = env::args().skip(1).map(|number| number.parse::<u64>());
    let (Some(Ok(first)), Some(Ok(count))) = (numbers.next(), numbers.next()) else {
        eprintln!("fault_runs needs two numbers, the first seed and how many: fault_runs 0 10000");
        return ExitCode::from(2);
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let many = run_many(first..first.saturating_add(count), threads, |_| true);
    if let Some(broken) = many.broken {
        println!("found after {} runs: {broken}", many.runs);
        return ExitCode::FAILURE;
    }
    if many.runs >= 1_000 && !many.tally.is_explained() {
        println!(
            "found after {} runs: {} of {} tasks are unknown",
            many.runs, many.tally.unknown, many.tally.submitted
        );
        return ExitCode::FAILURE;
    }
    println!("nothing found in {} runs: {:?}", many.runs, many.tally);
    ExitCode::SUCCESS
}
