//! Servers in a simulated rack: waiting tasks are written ahead, over links with delays, and copied.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

fn point(policy: &str, workload: &str, rate_per_s: f64) -> Point {
    Point {
        tasks: 20_000,
        warmup: Warmup::Tasks(2_000),
        transient: true,
        ..Point::new(
            Policy::parse(policy).expect("a policy"),
            Testbed::rain_rdma(),
            Workload::parse(workload).expect("a workload"),
            rate_per_s,
        )
    }
}

fn run(point: &Point) -> Measured {
    point.replicate(0, &AtomicBool::new(false)).expect("it can be run")
}

fn with(point: &Point, keys: &str) -> Point {
    let testbed = point.testbed.changed(&keys.parse().expect("TOML")).expect("a testbed");
    Point { testbed, ..point.clone() }
}

#[test]
fn each_task_that_waits_is_written_once_to_each_server_of_its_slice() {
    let shared = run(&point("rain:1", "exp:10us,large=1", 2_200_000.0)).counts;
    assert!(shared.queued > 1_000, "{shared:?}");
    // For some tasks only the wait or only the reply is in the measured span.
    let copies = shared.writes as f64 / shared.queued as f64;
    assert!((copies - 2.0).abs() < 0.02, "{shared:?}");
    // GETs have 14 of the first server's workers; SCANs have its other two and those of the second server.
    let slices = Some(vec![("get".to_owned(), 14), ("scan".to_owned(), 18)]);
    let mix = "get=0.9@const:8us,large=1+scan=0.1@const:107us,large=1,bytes=1024";
    let counts = run(&Point { slices, ..point("rain:1", mix, 1_300_000.0) }).counts;
    assert!(counts.writes > counts.queued && counts.writes < 2 * counts.queued, "{counts:?}");
}

#[test]
fn tasks_that_ride_in_the_entry_or_meet_a_token_are_not_written() {
    assert_eq!(run(&point("rain:1", "exp:10us", 2_200_000.0)).counts.writes, 0);
    assert_eq!(run(&point("rain:1", "const:10us,large=1;even", 1_000.0)).counts.writes, 0);
    assert_eq!(run(&point("r2p2:2", "exp:10us,large=1", 2_200_000.0)).counts.writes, 0);
}

#[test]
fn a_copy_costs_its_worker_time_and_a_narrow_link_costs_everybody() {
    let busy = point("rain:1", "exp:10us,large=1", 2_200_000.0);
    let mean = |point: &Point| run(point).classes[0].latency.mean();
    let plain = mean(&with(&busy, "servers.count = 0"));
    let free = mean(&with(&busy, "servers = { gbps = 1e6, copy_gbps = 1e6 }"));
    let usual = mean(&busy);
    let slow_copy = mean(&with(&busy, "servers.copy_gbps = 8.0"));
    let narrow = mean(&with(&busy, "servers.gbps = 20.0"));
    assert!((free / plain - 1.0).abs() < 0.001, "{free} {plain}");
    assert!(free < usual && usual < slow_copy && usual < narrow, "{free} {usual} {slow_copy} {narrow}");
}

#[test]
fn a_worker_that_was_lent_fetches_what_was_written_before_it_came() {
    let busy = "busy=1@exp:10us,large=1+idle=0@const:10us";
    let slices = Some(vec![("busy".to_owned(), 16), ("idle".to_owned(), 16)]);
    let lent = Point {
        slices,
        tasks: 100_000,
        warmup: Warmup::Tasks(0),
        ..point("rain:adaptive", busy, 1_250_000.0)
    };
    let measured = run(&lent);
    assert!(measured.depths.iter().any(|depths| depths.moves > 0), "nobody moved");
    assert_eq!(measured.counts.replied, measured.counts.sent);
    // After the first worker came, the second server has a ring too.
    assert!(measured.counts.writes > measured.counts.queued, "{:?}", measured.counts);
}
