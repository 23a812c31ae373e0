//! The protocol's promises under faults, over many seeds.

use std::process::Command;
use std::thread;

use sluice_sim::faults::{Broken, replay, run, run_many};

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

#[test]
fn a_broken_promise_is_told_with_its_number_and_its_name() {
    let broken = |what: &str| Broken { seed: 7, at_ns: 50_041_000, what: what.to_owned() }.to_string();
    assert_eq!(
        broken("promise 4: client 0 waits"),
        "seed 7 at 50041 us: promise 4 (nobody stuck): client 0 waits"
    );
    assert_eq!(broken("no promise 4: at all"), "seed 7 at 50041 us: no promise 4: at all");
    let page = include_str!("../../../docs/faults.md");
    for (number, name) in
        [(1, "one outcome"), (4, "nobody stuck"), (6, "bounded memory"), (7, "right worker")]
    {
        assert!(broken(&format!("promise {number}: x")).contains(&format!("promise {number} ({name}): x")));
        assert!(page.contains(&format!("| {number} | {name} |")), "docs/faults.md: {number} {name}");
    }
}
