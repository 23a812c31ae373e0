//! Tasks with budgets at more load than workers can serve.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup, summarize};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

fn run(policy: &str, workload: &str, load: f64) -> Measured {
    let mut point = Point {
        tasks: 40_000,
        warmup: Warmup::Tasks(10_000),
        transient: true,
        ..Point::new(Policy::parse(policy).unwrap(), Testbed::rain(), Workload::parse(workload).unwrap(), 1.0)
    };
    point.rate_per_s = load * point.capacity_per_s();
    point.replicate(0, &AtomicBool::new(false)).unwrap()
}

#[test]
fn in_overload_only_tasks_that_begin_in_time_are_served() {
    let counts = run("rain:2", "const:10us,budget=60us", 2.0).counts;
    assert_eq!(counts.refused, counts.late_in_switch + counts.late_at_worker + counts.late_at_client);
    // A task that leaves the switch just in time may wait behind another one at its worker.
    assert!(counts.late_in_switch > 0 && counts.late_at_worker > 0, "{counts:?}");
    assert!(counts.replied * 3 > counts.sent, "half could be served: {counts:?}");
    let p99_us = |workload| summarize(&[run("rain:2", workload, 2.0)]).overall.latency_ns.p99.value / 1e3;
    let within = p99_us("const:10us,budget=60us");
    assert!(within < 60.0 + 10.0 + 8.0, "{within} us: a budget, a service and a round trip");
}

#[test]
fn where_no_program_looks_at_budgets_workers_refuse_what_comes_too_late() {
    let counts = run("racksched:2", "const:10us,budget=60us", 1.5).counts;
    assert_eq!((counts.late_in_switch, counts.refused), (0, counts.late_at_worker + counts.late_at_client));
    assert!(counts.late_at_worker > counts.sent / 5, "{counts:?}");
}

#[test]
fn a_budget_that_nobody_uses_up_changes_no_latency() {
    let [without, with] = ["exp:10us", "exp:10us,budget=60ms"].map(|workload| run("rain:2", workload, 0.8));
    assert_eq!(with.counts, without.counts);
    let [without, with] = [without, with].map(|run| summarize(&[run]).overall.latency_ns.p99.value.to_bits());
    assert_eq!(with, without);
}
