//! The options of Draconis, and of a server, in a rack: each test fails if the option has no effect.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

const MIX: &str = "get=0.8@exp:50us+scan=0.2@exp:50us";
/// 90 % of the rate that 32 workers can serve.
const BUSY: f64 = 576_000.0;
/// Of 32 workers, eight are the node and in its rack, and eight more are in the rack.
const WORKERS: &str = "[[labels.worker]]\ncount = 16\n[[labels.worker]]\ncount = 8\nlabels = [\"rack\"]\n\
                       [[labels.worker]]\ncount = 8\nlabels = [\"node\", \"rack\"]\n";

fn point(policy: &str, keys: &str, workload: &str, rate_per_s: f64) -> Point {
    Point {
        tasks: 20_000,
        warmup: Warmup::Tasks(2_000),
        ..Point::new(
            Policy::parse(policy).unwrap(),
            Testbed::rain().changed(&keys.parse().unwrap()).unwrap(),
            Workload::parse(workload).unwrap(),
            rate_per_s,
        )
    }
}

fn run(point: &Point) -> Measured {
    point.check().unwrap();
    point.replicate(0, &AtomicBool::new(false)).unwrap()
}

fn needed() -> String {
    format!("[labels]\nneeds = [\"scan=node\"]\n{WORKERS}")
}

fn wished() -> String {
    format!("[labels]\nneeds = [\"scan=node+rack\"]\nwished = true\n{WORKERS}")
}

#[test]
fn classes_let_the_first_priority_wait_less_and_the_last_longer() {
    let mix = "first=0.5@exp:50us,priority=0+last=0.5@exp:50us,priority=1";
    let waits = |policy: &str| {
        let measured = run(&point(policy, "", mix, BUSY));
        [0, 1].map(|class: usize| measured.classes[class].scheduling_delay.quantile(0.99) as f64 / 1e3)
    };
    let ([first, last], [plain, plain_last]) = (waits("draconis:classes=2"), waits("draconis"));
    assert!(
        2.0 * first < plain && last > 1.2 * plain_last,
        "{first} and {last}, {plain} and {plain_last} us"
    );
}

#[test]
fn swapping_gives_each_task_a_worker_that_has_what_it_needs_in_as_many_rounds_as_it_may() {
    let rounds = ["draconis:labels", "draconis:labels,swaps=1"].map(|policy| {
        let measured = run(&point(policy, &needed(), MIX, BUSY));
        assert_eq!(measured.gauges.labels_met, Some(1.0), "{policy}");
        assert_eq!(measured.counts.replied, measured.counts.sent, "{policy}");
        measured.counts.recirculations as f64 / measured.counts.replied as f64
    });
    assert!(1.2 * rounds[1] < rounds[0], "{rounds:?} rounds a task");
    let why = point("draconis", &needed(), MIX, BUSY).check().unwrap_err().to_string();
    assert!(why.contains("`draconis` gives any task to any worker"), "{why}");
}

#[test]
fn longer_waits_meet_more_wishes_under_draconis_and_under_rain() {
    let met = |policy: &str| {
        let measured = run(&point(policy, &wished(), MIX, BUSY));
        assert_eq!(measured.counts.replied, measured.counts.sent, "{policy}: wishes bind nobody");
        measured.gauges.labels_met.unwrap()
    };
    let draconis = ["draconis", "draconis:labels", "draconis:labels,node=100us,rack=100us"].map(met);
    assert!(draconis[0] < 0.3 && 0.4 < draconis[1] && draconis[1] + 0.3 < draconis[2], "{draconis:?}");
    let rain = ["rain:1,labels", "rain:1,labels,wait=32"].map(met);
    assert!(rain[0] + 0.05 < rain[1], "{rain:?}");
}

#[test]
fn a_servers_worker_has_as_many_tasks_as_the_server_was_asked_for() {
    let most = |policy: &str| {
        let beyond = Point { transient: true, ..point(policy, "", "const:10us", 3_000_000.0) };
        (beyond.limit_per_s(), run(&beyond).throughput_per_s())
    };
    let [one, two] = ["server:1,bypass,decision=1ns", "server:2,bypass,decision=1ns"].map(most);
    // With a limit of one task a worker waits for the way to the server and back; with two it does not
    // wait.
    for (limit, found) in [one, two] {
        assert!((found / limit - 1.0).abs() < 0.03, "{found} of {limit}");
    }
    assert!(two.1 > 1.3 * one.1, "{two:?} and {one:?}");
}
