//! Controls of overload under twice what a rack can serve, and goodput.

use std::sync::atomic::AtomicBool;

use sluice_sim::Within;
use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup};
use sluice_testbed::Testbed;
use sluice_wire::Nanos;
use sluice_workload::Workload;

const WITHIN: Nanos = Nanos::from_micros(200);

/// A policy under a load of exponential services, with so many clients.
fn run(policy: &str, load: f64, clients: u16) -> Measured {
    let testbed = Testbed { clients, ..Testbed::rain() };
    let workload = Workload::parse("exp:10us").expect("legal");
    let point = Point {
        tasks: 40_000,
        warmup: Warmup::Tasks(20_000),
        transient: true,
        within: Some(Within::All(WITHIN)),
        ..Point::new(Policy::parse(policy).expect("a policy"), testbed, workload, load * 3.2e6)
    };
    point.replicate(0, &AtomicBool::new(false)).unwrap_or_else(|why| panic!("{policy}: {why}"))
}

fn goodput_per_s(measured: &Measured) -> f64 {
    measured.gauges.goodput_per_s.expect("it was asked for")
}

#[test]
fn goodput_counts_answers_in_time_and_no_late_ones() {
    let steady = run("rain:2", 0.6, 1);
    assert!((goodput_per_s(&steady) / steady.offered_per_s() - 1.0).abs() < 1e-3);
    let lost = run("rain:2", 2.0, 1);
    assert!(goodput_per_s(&lost) < 1.0, "all answers are late: {:?}", lost.gauges);
    assert!(lost.throughput_per_s() > 2.8e6, "though as many come as can");
    let kept = run("rain:2,target=50us", 2.0, 1);
    assert!(goodput_per_s(&kept) > 2.8e6, "{:?}", kept.gauges);
    let wait = kept.gauges.switch_wait_p99.expect("it was asked for");
    assert!((40e3..55e3).contains(&wait), "{wait}");
}

#[test]
fn every_task_ends_once_whoever_refuses_it() {
    for policy in ["codel:50us", "breakwater:80us", "in-time:200us", "in-time:200us,shortest"] {
        for (load, clients) in [(0.5, 7), (2.0, 1), (3.0, 256)] {
            let counts = run(policy, load, clients).counts;
            let ended = counts.replied + counts.refused + counts.pushed_back;
            assert_eq!((counts.sent, counts.unknown), (ended, 0), "{policy}: {counts:?}");
            assert!(load > 1.0 || counts.replied * 1_000 > counts.sent * 995, "{policy}: {counts:?}");
        }
    }
}

#[test]
fn credits_keep_the_servers_queue_near_the_target() {
    for clients in [1, 16, 256] {
        let found = run("breakwater:80us", 2.0, clients);
        let wait = found.gauges.switch_wait_p99.expect("it was asked for");
        assert!((40e3..165e3).contains(&wait), "{clients} clients: {wait}");
        assert!(found.throughput_per_s() > 2.9e6, "{clients} clients: {}", found.throughput_per_s());
    }
}

/// The control law was made for senders that slow down. Requests that come all the same fill the queue
/// before its drops are many enough.
#[test]
fn codel_lets_the_queue_grow_if_clients_do_not_slow_down() {
    let found = run("codel:50us", 2.0, 1);
    assert!(found.classes[0].latency.quantile(0.5) > 1_000_000, "{}", found.classes[0].latency.quantile(0.5));
}

/// Of exponential services the shorter 81 % take half of the work: 1 − (1 + x)e⁻ˣ is a half at x = 1.678,
/// and e⁻ˣ is 0.187 there. Nobody can answer more of twice the capacity.
#[test]
fn who_knows_service_times_answers_all_in_time_and_comes_near_the_bound() {
    for policy in ["in-time:200us", "in-time:200us,shortest"] {
        let found = run(policy, 2.0, 1);
        assert!(found.classes[0].latency.max() <= WITHIN.0 + 200, "{policy}: in the histogram's cell");
        let share = goodput_per_s(&found) / found.offered_per_s();
        assert!((0.79..0.83).contains(&share), "{policy}: {share}");
    }
}
