//! Runs seeds until one breaks a promise: `fault_runs FIRST COUNT [POLICY [cores] [budgets] [standbys]
//! [store]]`.
//! Prints how many runs it took.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use sluice_faults::{RackKind, run_many};
use sluice_switch::registry::Choice;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|number| number.parse::<u64>().ok());
    let policy = arguments.get(2).map_or("rain", String::as_str);
    let has = |word: &str| arguments.iter().skip(3).any(|argument| argument == word);
    let kind = Choice::parse(policy).ok().and_then(|program| kind(program, has("cores")));
    let kind = kind.map(|kind| if has("budgets") { kind.with_budgets() } else { kind });
    let kind = kind.map(|kind| if has("standbys") { kind.with_standbys() } else { kind });
    let kind = kind.map(|kind| if has("store") { kind.with_store() } else { kind });
    let (Some(first), Some(count), Some(kind)) = (number(0), number(1), kind) else {
        let why = "fault_runs needs the first seed, how many, and perhaps a policy, `cores` if its \
                   workers are servers of many, `budgets` if tasks have some, `standbys` if it has two \
                   controllers, and `store` if one of them needs a store's lease: \
                   fault_runs 0 10000 rain:1 cores budgets standbys";
        writeln!(io::stderr(), "{why}").ok();
        return ExitCode::from(2);
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let many = run_many(&kind, first..first.saturating_add(count), threads, |_| true);
    let found = if let Some(broken) = many.broken {
        Some(broken.to_string())
    } else if many.runs >= 1_000 && !many.tally.is_explained(&kind) {
        Some(format!("{} of {} tasks are unknown", many.tally.unknown, many.tally.submitted))
    } else if many.runs >= 100 && !many.tally.has_room() {
        let of = many.tally;
        Some(format!("{} of {} tasks are refused for room that repeats took", of.crowded_out, of.submitted))
    } else {
        None
    };
    // A failed write is ignored: the exit code says the same.
    if let Some(found) = found {
        writeln!(io::stdout(), "found after {} runs: {found}", many.runs).ok();
        ExitCode::FAILURE
    } else {
        writeln!(io::stdout(), "nothing found in {} runs: {:?}", many.runs, many.tally).ok();
        ExitCode::SUCCESS
    }
}

fn kind(program: Choice, has_cores: bool) -> Option<RackKind> {
    if has_cores { RackKind::of_servers(program).ok() } else { Some(RackKind::of(program)) }
}
