//! Tasks with budgets at more load than workers can serve.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Counts, Measured, Warmup, summarize};
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

/// The limit follows how many tasks leave, late ones included. With a target above the budgets nobody is
/// refused as busy, and the budgets are spent in the queue.
#[test]
fn a_target_below_the_budgets_serves_more_than_one_above_them() {
    let [above, below] = ["rain:2,target=50us", "rain:2,target=20us"]
        .map(|policy| run(policy, "exp:10us,budget=30us", 2.0).counts);
    assert!(below.replied * 10 > above.replied * 12, "{below:?} and {above:?}");
    assert!(above.late_at_worker > above.sent / 3, "{above:?}");
    assert!(below.late_at_worker < below.sent / 5, "{below:?}");
    let late = |counts: Counts| counts.late_in_switch + counts.late_at_worker + counts.late_at_client;
    assert!(
        late(above) * 100 > above.refused * 95 && late(below) * 3 < below.refused,
        "{above:?}, {below:?}"
    );
}

/// Half of the tasks have budgets below the target, and are late. The others wait for a target at most.
#[test]
fn late_tasks_make_no_other_task_wait_for_longer_than_the_target() {
    let found = run("rain:2,target=50us", "late=0.5@exp:10us,budget=30us+other=0.5@exp:10us", 2.0);
    assert!(found.counts.late_in_switch + found.counts.late_at_worker > 0, "{:?}", found.counts);
    let other = &found.classes[1];
    let p99_us = other.latency.quantile(0.99) as f64 / 1e3;
    // Its service takes 46 us at the 99th percentile, the way 5, and a task before it at its worker 10.
    assert!(p99_us < 50.0 + 46.0 + 5.0 + 10.0, "{p99_us} us");
}

#[test]
fn a_budget_that_nobody_uses_up_changes_no_latency() {
    let [without, with] = ["exp:10us", "exp:10us,budget=60ms"].map(|workload| run("rain:2", workload, 0.8));
    assert_eq!(with.counts, without.counts);
    let [without, with] = [without, with].map(|run| summarize(&[run]).overall.latency_ns.p99.value.to_bits());
    assert_eq!(with, without);
}
