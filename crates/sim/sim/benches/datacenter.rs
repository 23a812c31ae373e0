//! Measures the cost of a task in a simulated datacenter, relative to a simulated rack.
//!
//! A datacenter is one pool of Horus' paper, under Horus: one of the median size, with 475 workers in racks
//! of 24 below one spine, and one of 4,080 workers below five spines. The rack has as many workers below
//! one switch under RackSched, at most 4,096. All run Exp(100 µs) at load 0.8 of their switches' and
//! workers' capacity, and the two of a size take turns in one run. Prints one line of JSON.

#[path = "baseline/median.rs"]
mod median;
#[path = "baseline/timing.rs"]
mod timing;

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_testbed::{RackLayout, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

use median::median;
use timing::timed;

const LOAD: f64 = 0.8;
const MEAN_NS: f64 = 100_000.0;
const TURNS: u32 = 7;

/// A datacenter and a rack of one size.
struct Pair {
    workers: u32,
    spines: u16,
    tasks: u64,
}

const MEDIAN: Pair = Pair { workers: 475, spines: 1, tasks: 500_000 };
const LARGE: Pair = Pair { workers: 4_080, spines: 5, tasks: 1_000_000 };

fn main() {
    let [median, large] = [MEDIAN, LARGE].map(|pair| pair.costs());
    let median = format!(r#""datacenter_per_s":{:.0},"ratio":{:.3}"#, median.0, median.1);
    let large = format!(r#""large_per_s":{:.0},"large_ratio":{:.3}"#, large.0, large.1);
    println!(r#"{{"bench":"datacenter",{median},{large}}}"#);
}

impl Pair {
    /// Tasks per core-second in the datacenter, and that number divided by the rack's.
    fn costs(&self) -> (f64, f64) {
        let racks = RackLayout { spines: self.spines, each: 24, hop: Nanos(5_000), ..RackLayout::default() };
        let points = [self.point("dc-horus", racks), self.point("racksched:2", RackLayout::default())];
        let turns: Vec<[f64; 2]> =
            (0..TURNS).map(|turn| points.each_ref().map(|point| spent(point, turn))).collect();
        let per_s = turns.iter().map(|[datacenter, _]| self.tasks as f64 * 1e9 / datacenter);
        (median(per_s.collect()), median(turns.iter().map(|[datacenter, rack]| rack / datacenter).collect()))
    }

    fn point(&self, policy: &str, racks: RackLayout) -> Point {
        let testbed = Testbed { workers: self.workers, clients: 4, racks, ..Testbed::rain() };
        let (policy, workload) =
            (Policy::parse(policy).expect("it is one"), Workload::parse("exp:100us").expect("it is one"));
        let rate_per_s = LOAD * f64::from(self.workers) * 1e9 / MEAN_NS;
        Point { tasks: self.tasks, ..Point::new(policy, testbed, workload, rate_per_s) }
    }
}

/// Nanoseconds on the processor for all tasks.
fn spent(point: &Point, replication: u32) -> f64 {
    let (spent, measured) = timed(|| point.replicate(replication, &AtomicBool::new(false)));
    assert_eq!(measured.expect("nobody stopped it").counts.replied, point.tasks);
    spent
}
