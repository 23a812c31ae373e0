//! What a task costs in a simulated datacenter, against one in a simulated rack.
//!
//! The datacenter is the pool of the median size of Horus' paper: 475 workers in racks of 24 below one spine,
//! under Horus. The rack has as many workers below one switch under RackSched. Both have Exp(100 µs) at load
//! 0.8, in what their switches and workers take, and take turns in one run. Prints one line of JSON.

#[path = "baseline/median.rs"]
mod median;
#[path = "baseline/timing.rs"]
mod timing;

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_sim::testbed::{RackLayout, Testbed};
use sluice_sim::workload::Workload;
use sluice_wire::Nanos;

use median::median;
use timing::timed;

const LOAD: f64 = 0.8;
const WORKERS: u32 = 475;
const MEAN_NS: f64 = 100_000.0;
const TASKS: u64 = 500_000;
const TURNS: u32 = 7;

fn main() {
    let racks = RackLayout { spines: 1, each: 24, hop: Nanos(5_000), ..RackLayout::default() };
    let (datacenter, rack) = (point("dc-horus", racks), point("racksched:2", RackLayout::default()));
    let turns: Vec<[f64; 2]> =
        (0..TURNS).map(|turn| [&datacenter, &rack].map(|point| spent(point, turn))).collect();
    println!(
        r#"{{"bench":"datacenter","datacenter_per_s":{:.0},"ratio":{:.3}}}"#,
        median(turns.iter().map(|[datacenter, _]| TASKS as f64 * 1e9 / datacenter).collect()),
        median(turns.iter().map(|[datacenter, rack]| rack / datacenter).collect()),
    );
}

/// Nanoseconds for all tasks.
fn spent(point: &Point, replication: u32) -> f64 {
    let (spent, measured) = timed(|| point.replicate(replication, &AtomicBool::new(false)));
    assert_eq!(measured.expect("nobody stopped it").counts.replied, TASKS);
    spent
}

fn point(policy: &str, racks: RackLayout) -> Point {
    let testbed = Testbed { workers: WORKERS, clients: 4, racks, ..Testbed::rain() };
    let (policy, workload) =
        (Policy::parse(policy).expect("it is one"), Workload::parse("exp:100us").expect("it is one"));
    let rate_per_s = LOAD * f64::from(WORKERS) * 1e9 / MEAN_NS;
    Point { tasks: TASKS, ..Point::new(policy, testbed, workload, rate_per_s) }
}
