//! Labels in a simulated rack: which worker gets which task, how that changes latencies, and what is
//! refused.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup, summarize};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

const MIX: &str = "get=0.8@exp:10us+scan=0.2@exp:10us";
const NEEDS: &str = "[labels]\nneeds = [\"scan=gpu\"]\n";
const WORKERS: &str = "[[labels.worker]]\ncount = 24\n[[labels.worker]]\ncount = 8\nlabels = [\"gpu\"]\n";

fn point(policy: &str, keys: &str, load: f64) -> Point {
    let testbed = Testbed::rain().changed(&keys.parse().unwrap()).unwrap();
    let mut point = Point {
        tasks: 40_000,
        warmup: Warmup::Tasks(4_000),
        transient: true,
        ..Point::new(Policy::parse(policy).unwrap(), testbed, Workload::parse(MIX).unwrap(), 1.0)
    };
    point.rate_per_s = load * 3.2e6;
    point
}

fn run(point: &Point) -> Measured {
    point.check().unwrap();
    point.replicate(0, &AtomicBool::new(false)).unwrap()
}

fn needed() -> String {
    format!("{NEEDS}{WORKERS}")
}

fn wished() -> String {
    format!("{NEEDS}wished = true\n{WORKERS}")
}

/// The p99 of GETs and of SCANs.
fn p99_us(measured: Measured) -> [f64; 2] {
    let classes = summarize(&[measured]).classes;
    [0, 1].map(|class| classes[class].times.latency_ns.p99.value / 1e3)
}

#[test]
fn whoever_lacks_a_label_is_never_given_what_needs_it() {
    for load in [0.3, 0.9] {
        for policy in ["rain:1,labels", "rain:2,labels", "rain:2,labels,early"] {
            let measured = run(&point(policy, &needed(), load));
            assert_eq!(measured.gauges.labels_met, Some(1.0), "{policy} at {load}");
            assert_eq!(measured.counts.replied, measured.counts.sent);
        }
    }
    assert_eq!(run(&point("rain:2", "", 0.5)).gauges.labels_met, None, "nobody has labels");
}

#[test]
fn under_faults_too() {
    let lossy = "[faults.dispatch]\nloss = 0.01\n[faults.token]\nloss = 0.01\nreorder = 0.05\n";
    let measured = run(&point("rain:2,labels", &format!("{}{lossy}", needed()), 0.6));
    assert_eq!(measured.gauges.labels_met, Some(1.0));
    assert_eq!(measured.counts.replied, measured.counts.sent);
}

#[test]
fn tasks_that_need_nothing_leave_special_workers_alone_and_take_them_where_others_are_busy() {
    let split = Point {
        slices: Some(vec![("get".to_owned(), 24), ("scan".to_owned(), 8)]),
        ..point("rain:1", "", 0.8)
    };
    let [get, scan] = p99_us(run(&point("rain:1,labels", &needed(), 0.3)));
    assert!(scan < 60.0 && get < 60.0, "{get} and {scan} us where all find somebody");
    let [of_labels, of_split] =
        [point("rain:2,labels", &needed(), 0.8), split].map(|one| p99_us(run(&one))[0]);
    assert!(of_labels * 1.15 < of_split, "{of_labels} us where GETs may take all workers, {of_split} in 24");
}

#[test]
fn wishes_are_met_while_there_is_a_choice_and_bind_nobody() {
    let met = |policy, load| run(&point(policy, &wished(), load)).gauges.labels_met.unwrap();
    let (looked_for, by_chance) = (met("rain:2,labels", 0.5), met("rain:2", 0.5));
    assert!(looked_for > 0.9, "{looked_for}");
    assert!((by_chance - 0.25).abs() < 0.05, "{by_chance} where nobody looks, of 8 in 32 workers");
    let all = "[labels]\nneeds = [\"scan=gpu\"]\nwished = true\n[[labels.worker]]\nlabels = [\"gpu\"]\n";
    let measured = run(&point("rain:2,labels", all, 0.9));
    assert_eq!(measured.counts.replied, measured.counts.sent, "one worker could not do it");
}

#[test]
fn where_nobody_needs_anything_labels_change_nothing() {
    // All measurements are equal but the count of tasks that wait beside idle workers, which is not taken
    // with labels.
    let run = |policy, keys: &str| {
        let mut measured = run(&point(policy, keys, 0.7));
        measured.backlog.passed_over = Default::default();
        measured
    };
    assert_eq!(run("rain:2", WORKERS), run("rain:2", ""));
    assert_eq!(run("central", &wished()), run("central", ""));
}

#[test]
fn a_load_is_a_share_of_what_those_can_serve_who_may() {
    let capacity = |keys: &str| point("rain:2,labels", keys, 0.5).capacity_per_s();
    let all = 3.2e6;
    assert!((capacity(&needed()) / all - 1.0).abs() < 1e-9, "8 workers have time for a fifth of the tasks");
    let few = needed().replace("count = 24", "count = 28").replace("count = 8", "count = 4");
    assert!((capacity(&few) / (4.0 / 0.2 * 1e5) - 1.0).abs() < 1e-9, "4 workers fill up first");
    assert!((capacity(&few.replace("needs", "wished = true\nneeds")) / all - 1.0).abs() < 1e-9);
    let steady = Point { transient: false, ..point("rain:2,labels", &few, 0.7) };
    assert!(steady.check().is_err_and(|why| why.to_string().contains("no steady state")));
}

#[test]
fn each_slice_has_labels_of_its_own() {
    let mut point = point("rain:2,labels", &needed(), 0.4);
    point.slices = Some(vec![("get".to_owned(), 16), ("scan".to_owned(), 16)]);
    let why = point.check().unwrap_err().to_string();
    assert!(
        why.contains("65536 places for 2 slices of 4 classes") && why.contains("to 8160 at most"),
        "{why}"
    );
    point.testbed.queue = 8_160;
    let measured = run(&point);
    assert_eq!(measured.gauges.labels_met, Some(1.0));
    point.slices = Some(vec![("scan".to_owned(), 16), ("get".to_owned(), 16)]);
    let why = point.check().unwrap_err().to_string();
    assert!(
        why.contains("slice `scan` has tasks that need gpu") && why.contains("[[labels.worker]]"),
        "{why}"
    );
}

#[test]
fn depths_that_are_found_at_run_time_go_with_labels() {
    let adaptive = Point { tasks: 200_000, ..point("rain:adaptive,labels", &needed(), 0.6) };
    let measured = run(&adaptive);
    assert_eq!(measured.gauges.labels_met, Some(1.0));
    let slices = Some(vec![("get".to_owned(), 16), ("scan".to_owned(), 16)]);
    let testbed = Testbed { queue: 4_096, ..adaptive.testbed.clone() };
    let measured = run(&Point { slices, testbed, ..adaptive });
    assert_eq!(measured.gauges.labels_met, Some(1.0), "also where workers are lent");
}

#[test]
fn what_cannot_be_is_refused_in_one_line_that_helps() {
    for (policy, keys, key) in [
        ("rain:2,labels", needed().replace("scan=gpu", "scam=gpu"), "did you mean `scan`"),
        (
            "rain:2,labels",
            needed()
                .replace("scan=gpu", "scan=gpu+ssd")
                .replace("count = 24", "count = 24\nlabels = [\"ssd\"]"),
            "the rack has tasks that need gpu+ssd, and no kind of workers that has it",
        ),
        ("rain:2", needed(), "`rain:2` gives any task to any worker: take `rain:2,labels`"),
        ("pallas", needed(), "`pallas` gives any task to any worker"),
        ("central", needed(), "`central` gives any task to any worker"),
    ] {
        let why = point(policy, &keys, 0.5).check().unwrap_err().to_string();
        assert!(why.contains(key) && !why.contains('\n'), "{policy} {keys}: {why}");
    }
    let typed = Workload::parse("get=0.8@exp:10us,type=3+scan=0.2@exp:10us,type=3").unwrap();
    let why = Point { workload: typed, ..point("rain:2,labels", &needed(), 0.5) }.check().unwrap_err();
    assert!(why.to_string().contains("`get` and `scan` are of one type and need different labels"), "{why}");
}
