//! The rack as a whole: what a task takes, what every policy owes, and what one seed repeats.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_sim::stats::{Measured, Warmup};
use sluice_sim::testbed::Testbed;
use sluice_sim::workload::Workload;

fn point(policy: &str, workload: &str, rate_per_s: f64) -> Point {
    Point {
        policy: Policy::parse(policy).unwrap(),
        testbed: Testbed::rain(),
        workload: Workload::parse(workload).unwrap(),
        rate_per_s,
        tasks: 50_000,
        warmup: Warmup::Tasks(5_000),
        seed: 1,
        transient: false,
        slices: None,
    }
}

fn run(point: &Point) -> Measured {
    point.replicate(0, &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_lonely_task_takes_its_service_and_five_microseconds() {
    for policy in ["rain:1", "rain:2"] {
        let measured = run(&Point { tasks: 2_000, ..point(policy, "const:10us;even", 1_000.0) });
        let latency = &measured.classes[0].latency;
        assert!((latency.mean() - 15_000.0).abs() < 1e-9, "{policy}: {}", latency.mean());
    }
}

#[test]
fn depth_one_gives_out_where_a_token_comes_back_too_late() {
    let point = Point { transient: true, ..point("rain:1", "exp:10us", 3_000_000.0) };
    let limit = point.limit_per_s();
    assert!((limit - 32e9 / 13_700.0).abs() < 1.0, "{limit}");
    let measured = run(&point);
    let span = measured.span_ns as f64 / 1e9;
    let throughput = measured.backlog.replies as f64 / span;
    assert!((throughput / limit - 1.0).abs() < 0.02, "{throughput} of {limit}");
}
