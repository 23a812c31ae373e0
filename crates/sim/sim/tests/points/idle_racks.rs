//! Racks below a spine that are idle most of the time, with short tasks over long links. Latencies lie
//! between two bounds that need no program, and there are no spells in which tasks wait while workers are
//! idle.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Warmup, summarize};
use sluice_testbed::{LinkTimes, RackLayout, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

const SERVICE_NS: f64 = 20_000.0;

fn point(policy: &str, racks: &[u32], load: f64) -> Point {
    let hop = Nanos(5_000);
    let testbed = Testbed {
        workers: racks.iter().sum(),
        racks: RackLayout { spines: 1, workers: racks.to_vec(), hop, ..RackLayout::default() },
        links: LinkTimes { client: hop, worker: hop },
        ..Testbed::rain()
    };
    let workload = Workload::parse("exp:20us").expect("a workload");
    let policy = Policy::parse(policy).expect("a policy");
    let (tasks, warmup) = (100_000, Warmup::Tasks(5_000));
    let mut point = Point { tasks, warmup, seed: 5, ..Point::new(policy, testbed, workload, 1.0) };
    point.rate_per_s = load * point.capacity_per_s();
    point
}

/// The latencies within which a share of tasks is done, in µs. Lower bound: each task finds an idle worker
/// (no scheduler does better). Upper bound: a third more than with workers drawn at random (M/M/1), because
/// the newest idle rack gets all tasks until its word that it is busy has arrived, which takes longer here
/// than a task.
fn bounds(load: f64, share: f64) -> (f64, f64) {
    let alone = -SERVICE_NS / 1e3 * (1.0 - share).ln();
    (alone, alone / (1.0 - load) * 4.0 / 3.0)
}

#[test]
fn racks_of_unequal_sizes_do_hardly_worse_than_workers_drawn_at_random_and_pass_nobody_over() {
    let (two, four, skewed): (&[u32], &[u32], &[u32]) = (&[2, 6], &[3, 5, 10, 22], &[4, 4, 8, 32]);
    for (policy, racks, load) in [
        ("dc-horus", two, 0.3),
        ("dc-horus:idle-rack=random", two, 0.3),
        ("dc-rain:2", two, 0.3),
        ("dc-horus", four, 0.4),
        ("dc-horus", skewed, 0.55),
        ("dc-rain:2", four, 0.55),
    ] {
        let point = point(policy, racks, load);
        let way = point.testbed.zero_load().0 as f64 / 1e3;
        let measured = point.replicate(0, &AtomicBool::new(false)).expect("nobody stopped it");
        let rounds = measured.counts.spine_rounds as f64 / measured.counts.sent as f64;
        let summary = summarize(&[measured]);
        let latency = summary.overall.latency_ns;
        for (share, took) in [(0.5, latency.p50.value / 1e3), (0.99, latency.p99.value / 1e3)] {
            let ((least, most), took) = (bounds(load, share), took - way);
            println!(
                "{policy} {racks:?} at {load}: {share} took {took:.1} µs, between {least:.1} and {most:.1}"
            );
            assert!(
                (0.95 * least..most).contains(&took),
                "{policy} {racks:?} at {load}: {share} took {took} µs"
            );
        }
        assert!(summary.sustained.holds, "{policy} {racks:?} at {load}: {}", summary.sustained.why);
        assert!(rounds < 0.35, "{policy} {racks:?} at {load}: {rounds} rounds a task");
    }
}

/// If everything is idle, a spine chooses a rack without delay (Horus §3.3).
#[test]
fn where_everything_is_idle_no_task_goes_round_at_the_spine() {
    for policy in ["dc-horus", "dc-horus:idle-rack=random", "dc-rain:1"] {
        let point = Point { tasks: 5_000, ..point(policy, &[8, 8, 8, 8], 0.02) };
        let measured = point.replicate(0, &AtomicBool::new(false)).expect("nobody stopped it");
        assert_eq!(measured.counts.spine_rounds, 0, "{policy}");
    }
}

/// As printed, the spine's counts for tasks of idle racks are never subtracted; here that happens all the
/// time.
#[test]
fn where_the_text_is_read_as_printed_tasks_wait_beside_idle_racks_and_the_load_is_not_kept_up() {
    let point = point("dc-horus:as-published", &[2, 6], 0.3);
    let summary = summarize(&[point.replicate(0, &AtomicBool::new(false)).expect("nobody stopped it")]);
    let (p99, why) = (summary.overall.latency_ns.p99.value / 1e3, &summary.sustained.why);
    println!("p99 {p99:.0} µs: {why}");
    assert!(!summary.sustained.holds && p99 > 1_000.0, "p99 {p99} µs: {why}");
}
