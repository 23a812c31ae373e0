//! The protocol's promises under faults, over many seeds.

use std::process::Command;
use std::thread;

use sluice_sim::faults::{replay, run, run_many};

#[test]
fn ten_thousand_seeds_keep_every_promise() {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let many = run_many(0..10_000, threads, |_| true);
    if let Some(broken) = many.broken {
        panic!("{broken}\n  commit {}; to see its packets: sluice replay-fault {}", commit(), broken.seed);
    }
    println!("{} runs: {:?}", many.runs, many.tally);
    assert!(many.tally.is_explained(), "{:?}", many.tally);
    assert!(many.tally.replied * 10 >= many.tally.submitted * 8, "{:?}", many.tally);
    assert!(many.tally.run_again > 0, "no seed made a task run twice: the faults are too kind");
}

#[test]
fn one_seed_replays_one_run_to_the_letter() {
    let record = |seed| {
        let mut lines = Vec::new();
        let outcome = replay(seed, &mut |line| lines.push(line.to_owned()));
        (outcome, lines)
    };
    let (outcome, lines) = record(7);
    assert_eq!(record(7), (outcome.clone(), lines.clone()));
    assert_eq!(run(7), outcome, "watching a run changes nothing");
    assert!(lines.iter().any(|line| line.what.starts_with("DISPATCH task")));
}

fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
