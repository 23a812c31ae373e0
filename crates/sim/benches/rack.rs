//! What a task costs in a whole simulated rack, against a bare loop over the standard library's binary heap.
//!
//! The rack is testbed "rain" with 32 workers under Rain: the switch's program, the clients' and workers'
//! state machines, every packet of a task on every link. The loop is the one that the reference `central` is
//! weighed against: 64 workers, one queue, one histogram. Both have Exp(10 µs) at load 0.8 and take turns in
//! one run. Prints one line of JSON.

mod baseline;

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_sim::testbed::Testbed;
use sluice_sim::workload::{Requests, Workload};

use baseline::{median, serve, serve_lean, timed};

const LOAD: f64 = 0.8;
const LOOP_WORKERS: usize = 64;
const MEAN_NS: f64 = 10_000.0;
const TASKS: u64 = 500_000;
const TURNS: u32 = 9;
const SEED: u64 = 1;

fn main() {
    let rack = rack();
    let turns: Vec<Turn> = (0..TURNS).map(|replication| turn(&rack, replication)).collect();
    let of = |number: fn(&Turn) -> f64| median(turns.iter().map(number).collect());
    println!(
        r#"{{"bench":"rack","rack_per_s":{:.0},"ratio":{:.3},"ratio_lean":{:.3}}}"#,
        of(|turn| TASKS as f64 * 1e9 / turn.rack),
        of(|turn| turn.bare / turn.rack),
        of(|turn| turn.lean / turn.rack),
    );
}

/// Nanoseconds for as many tasks.
struct Turn {
    bare: f64,
    lean: f64,
    rack: f64,
}

fn turn(rack: &Point, replication: u32) -> Turn {
    let (bare, _) = timed(|| serve(requests(replication), LOOP_WORKERS, TASKS));
    let (spent, measured) = timed(|| rack.replicate(replication, &AtomicBool::new(false)));
    let (lean, _) = timed(|| serve_lean(requests(replication), LOOP_WORKERS, TASKS));
    assert_eq!(measured.expect("nobody stopped it").counts.replied, TASKS);
    Turn { bare, lean, rack: spent }
}

fn rack() -> Point {
    let testbed = Testbed::rain();
    let rate_per_s = LOAD * f64::from(testbed.workers) * 1e9 / MEAN_NS;
    Point {
        tasks: TASKS,
        seed: SEED,
        ..Point::new(Policy::parse("rain:2").expect("it is one"), testbed, workload(), rate_per_s)
    }
}

fn requests(replication: u32) -> Requests {
    Requests::new(&workload(), LOAD * LOOP_WORKERS as f64 * 1e9 / MEAN_NS, SEED, replication)
}

fn workload() -> Workload {
    Workload::parse("exp:10us").expect("it is one")
}
