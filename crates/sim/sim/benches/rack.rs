//! Measures the cost of a task in a whole simulated rack, and on a simulated server of many cores, beside a
//! bare loop over the standard library's binary heap.
//!
//! The rack is testbed "rain" with 32 workers under Rain: the switch's program, the state machines of
//! clients and workers, every packet of a task on every link. The server is RingLeader's with 64 cores and
//! the costs of testbed "ringleader": its NIC's logic, and cores that yield every 5 µs. The loop is the one
//! that the reference `central` is compared with: 64 workers, one queue, one histogram. All run Exp(10 µs)
//! at load 0.8 and take turns in one run. Prints one line of JSON.

mod baseline;

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_testbed::Testbed;
use sluice_workload::{Requests, Workload};

use baseline::{median, serve, serve_lean, timed};

const LOAD: f64 = 0.8;
const LOOP_WORKERS: usize = 64;
const MEAN_NS: f64 = 10_000.0;
const TASKS: u64 = 500_000;
const TURNS: u32 = 9;
const SEED: u64 = 1;

fn main() {
    let (rack, server) = (rack(), server());
    let turns: Vec<Turn> = (0..TURNS).map(|replication| turn(&rack, &server, replication)).collect();
    let of = |number: fn(&Turn) -> f64| median(turns.iter().map(number).collect());
    let of_rack = format!(
        r#""rack_per_s":{:.0},"ratio":{:.3},"ratio_lean":{:.3}"#,
        of(|turn| TASKS as f64 * 1e9 / turn.rack),
        of(|turn| turn.bare / turn.rack),
        of(|turn| turn.lean / turn.rack),
    );
    let of_server = format!(
        r#""server_per_s":{:.0},"server_ratio":{:.3}"#,
        of(|turn| TASKS as f64 * 1e9 / turn.server),
        of(|turn| turn.bare / turn.server),
    );
    println!(r#"{{"bench":"rack",{of_rack},{of_server}}}"#);
}

/// The times of all three for the same number of tasks, in nanoseconds.
struct Turn {
    bare: f64,
    lean: f64,
    rack: f64,
    server: f64,
}

fn turn(rack: &Point, server: &Point, replication: u32) -> Turn {
    let (bare, _) = timed(|| serve(requests(replication), LOOP_WORKERS, TASKS));
    let simulated = |point: &Point| {
        let (spent, measured) = timed(|| point.replicate(replication, &AtomicBool::new(false)));
        (spent, measured.expect("nobody stopped it"))
    };
    let (spent, of_rack) = simulated(rack);
    let (spent_on_server, of_server) = simulated(server);
    let (lean, _) = timed(|| serve_lean(requests(replication), LOOP_WORKERS, TASKS));
    assert_eq!(of_rack.counts.replied, TASKS);
    assert_eq!(of_server.counts.replied, TASKS);
    Turn { bare, lean, rack: spent, server: spent_on_server }
}

fn rack() -> Point {
    point("rain:2", Testbed::rain())
}

fn server() -> Point {
    let testbed = include_str!("../../../../experiments/testbeds/ringleader.toml");
    let testbed = Testbed::parse(testbed).expect("it comes with the program");
    point("ringleader", Testbed { workers: LOOP_WORKERS as u32, ..testbed })
}

fn point(policy: &str, testbed: Testbed) -> Point {
    let rate_per_s = LOAD * f64::from(testbed.workers) * 1e9 / MEAN_NS;
    Point {
        tasks: TASKS,
        seed: SEED,
        ..Point::new(Policy::parse(policy).expect("it is one"), testbed, workload(), rate_per_s)
    }
}

fn requests(replication: u32) -> Requests {
    Requests::new(&workload(), LOAD * LOOP_WORKERS as f64 * 1e9 / MEAN_NS, SEED, replication)
}

fn workload() -> Workload {
    Workload::parse("exp:10us").expect("it is one")
}
