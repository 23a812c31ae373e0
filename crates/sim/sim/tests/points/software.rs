//! Software schedulers: the cost of their decisions, and the effect of each part of Sparrow.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

fn point(policy: &str, workload: &str, rate_per_s: f64, tasks: u64) -> Point {
    let (policy, workload) = (Policy::parse(policy).unwrap(), Workload::parse(workload).unwrap());
    Point {
        tasks,
        warmup: Warmup::Tasks(tasks / 10),
        ..Point::new(policy, Testbed::rain(), workload, rate_per_s)
    }
}

fn run(point: &Point) -> Measured {
    point.replicate(0, &AtomicBool::new(false)).unwrap()
}

fn delay_us(measured: &Measured, quantile: f64) -> f64 {
    measured.classes[0].scheduling_delay.quantile(quantile) as f64 / 1e3
}

#[test]
fn a_lonely_task_waits_for_the_ways_and_for_the_cores_that_decide() {
    for (policy, us) in [
        ("rain:1", 2.5),
        // Two ways of 1.8 µs between switch and server, and half a decision.
        ("server:1", 2.5 + 3.6 + 3.0),
        ("server:1,bypass", 2.5 + 3.6 + 0.1),
        ("server:1,decision=20us", 2.5 + 3.6 + 10.0),
        // Four messages: to the scheduler (2.3 µs), the reservation, the question and the task (3.1 µs
        // each). Two of them pass the scheduler's core, the worker receives two and sends one.
        ("sparrow:1", 2.3 + 3.0 * 3.1 + 2.0 * 3.0 + 3.0 * 0.2),
        ("sparrow:1,message=1us", 2.3 + 3.0 * 3.1 + 2.0 * 1.0 + 3.0 * 0.2),
    ] {
        let measured = run(&point(policy, "const:50us;even", 100.0, 50));
        let found = delay_us(&measured, 0.5);
        assert!((found - us).abs() < 0.05, "{policy}: {found} and not {us}");
    }
}

#[test]
fn a_servers_one_core_bounds_the_rate() {
    for (policy, most) in [("server:2,decision=20us", 50_000.0), ("sparrow:1,message=10us", 50_000.0)] {
        let at = |rate_per_s: f64| {
            let point = Point { transient: true, ..point(policy, "const:100us", rate_per_s, 30_000) };
            assert!((point.limit_per_s() / most - 1.0).abs() < 0.001, "{policy}: {}", point.limit_per_s());
            run(&point).throughput_per_s()
        };
        let below = at(0.96 * most);
        assert!((below / (0.96 * most) - 1.0).abs() < 0.02, "{policy}: {below}");
        // Requests beyond the limit take time too, so a server ends fewer tasks then.
        let above = at(3.0 * most);
        assert!(above < 1.01 * most, "{policy}: {above}");
    }
}

#[test]
fn two_places_a_task_wait_less_than_one() {
    let [one, two] = ["sparrow:1,message=100ns", "sparrow:2,message=100ns"]
        .map(|policy| delay_us(&run(&point(policy, "exp:100us", 224_000.0, 40_000)), 0.9));
    assert!(two < 0.8 * one, "{two} and {one}");
}

#[test]
fn reservations_that_are_taken_back_need_no_question() {
    let [takes_back, keeps] = ["sparrow:4,message=100ns", "sparrow:4,message=100ns,keeps"]
        .map(|policy| run(&point(policy, "exp:100us", 224_000.0, 20_000)));
    let nothing = |measured: &Measured| measured.counts.empty_polls as f64 / measured.counts.replied as f64;
    assert!(nothing(&takes_back) < 0.5 * nothing(&keeps), "{} and {}", nothing(&takes_back), nothing(&keeps));
    let [takes_back, keeps] = [takes_back, keeps].map(|measured| delay_us(&measured, 0.9));
    assert!(takes_back < keeps, "{takes_back} and {keeps}");
}

/// Jobs of eight tasks, with `apart` microseconds from one task to the next.
fn trace_of_jobs(folder: &Path, apart: u32) -> String {
    let line = |job: u32| (0..8).map(move |task| (job * 400 + task * apart, job, task));
    let service = |job: u32, task: u32| 400 + (job * 7 + task * 13) % 800;
    let lines: Vec<String> =
        (0..4_000).flat_map(line).map(|(at, job, task)| format!("{at},a,{}", service(job, task))).collect();
    let path = folder.join(format!("{apart}.csv"));
    fs::write(&path, lines.join("\n")).unwrap();
    format!("scaled-trace:{}", path.display())
}

#[test]
fn tasks_that_are_due_at_once_share_their_places() {
    // Jobs of eight tasks: batch sampling gives them the most idle of sixteen workers, rather than each the
    // better of two.
    let folder = tempfile::tempdir().unwrap();
    let at =
        |workload: &str| delay_us(&run(&point("sparrow:2,message=0ns", workload, 20_000.0, 20_000)), 0.9);
    let [together, apart] = [0, 1].map(|apart| at(&trace_of_jobs(folder.path(), apart)));
    assert!(together < apart, "{together} and {apart}");
}

#[test]
fn tasks_that_are_due_at_once_are_one_submission_where_draconis_takes_that() {
    let folder = tempfile::tempdir().unwrap();
    let at = |policy: &str, apart: u32| {
        run(&point(policy, &trace_of_jobs(folder.path(), apart), 20_000.0, 8_000)).counts
    };
    let rounds = |apart: u32| {
        let [alone, together] =
            ["draconis:poll=20us", "draconis:poll=20us,jobs=5"].map(|policy| at(policy, apart));
        assert_eq!((alone.replied, together.replied), (alone.sent, together.sent));
        (together.recirculations as f64 - alone.recirculations as f64) / together.replied as f64
    };
    // Of eight tasks, five go in one packet and three in another; every task but the first of each packet
    // recirculates.
    let together = rounds(0);
    assert!((together - 0.75).abs() < 0.05, "{together} rounds a task more");
    assert!(rounds(1).abs() < 1e-9, "tasks that are due one after the other go alone");
}

#[test]
fn four_schedulers_bear_four_times_what_one_does_and_get_jobs_in_turn() {
    let at = |policy: &str| {
        let asked = point(policy, "const:100us", 160_000.0, 20_000);
        let point = Point { transient: true, ..asked };
        (point.limit_per_s(), run(&point).throughput_per_s())
    };
    let [one, four] = ["sparrow:1,message=10us", "sparrow:1,message=10us,schedulers=4"].map(at);
    assert!((four.0 / one.0 - 4.0).abs() < 1e-9, "{} and {}", four.0, one.0);
    assert!(four.1 > 2.5 * one.1, "{} and {}", four.1, one.1);
}

#[test]
fn a_worker_whose_poll_was_in_vain_waits_as_long_as_was_said_before_the_next() {
    let idle = |policy: &str| run(&point(policy, "const:50us;even", 1_000.0, 200));
    let [at_once, later] = ["draconis", "draconis:poll=50us"].map(idle);
    let polls =
        |measured: &Measured| measured.counts.empty_polls as f64 / (32.0 * measured.span_ns as f64 / 1e9);
    // A poll takes its way and back; in the second case 50 µs more.
    let between_us = [&at_once, &later].map(|measured| 1e6 / polls(measured));
    assert!((between_us[1] - between_us[0] - 50.0).abs() < 2.0, "{between_us:?}");
}
