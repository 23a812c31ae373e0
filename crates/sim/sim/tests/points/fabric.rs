//! A fabric as a testbed: flows are its tasks, schemes its policies, and switches' counts its gauges.

use std::sync::atomic::AtomicBool;
use std::thread;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

/// A millisecond of storage flows at 40 % of the hosts' links.
fn point(policy: &str) -> Point {
    let workload = Workload::parse("flows:storage").expect("they are known");
    let mut point = Point::new(Policy::parse(policy).expect("it is one"), Testbed::hf2t(), workload, 1.0);
    point.rate_per_s = 0.4 * point.capacity_per_s();
    point.tasks = 2_000;
    point.warmup = Warmup::TimeNs(200_000);
    point
}

fn run(point: &Point, replication: u32) -> Measured {
    point.replicate(replication, &AtomicBool::new(false)).expect("it can be run")
}

#[test]
fn every_scheme_ends_its_flows_none_of_them_sooner_than_an_idle_fabric_does() {
    for about in Policy::all() {
        if !Policy::parse(about.example).is_ok_and(|policy| policy.is_for_flows()) {
            continue;
        }
        let measured = run(&point(about.example), 0);
        assert_eq!(measured.counts.replied, measured.counts.sent, "{}", about.name);
        // The first flow that is due after the span runs among the others and is none of them.
        assert_eq!(measured.counts.sent, 2_000, "{}", about.name);
        let least = measured.classes.iter().map(|class| class.slowdown_own.quantile(0.001)).min();
        assert!(least >= Some(990), "{}: {least:?} thousandths of the time in an idle fabric", about.name);
        assert!(measured.gauges.gaps.is_some_and(|gaps| gaps > 1_000.0), "{}", about.name);
    }
}

#[test]
fn one_seed_gives_the_same_on_any_thread_and_another_replication_something_else() {
    let of = point("letflow:paced");
    let here = run(&of, 0);
    let there = thread::scope(|scope| {
        let threads = [scope.spawn(|| run(&of, 0)), scope.spawn(|| run(&of, 1))];
        threads.map(|thread| thread.join().expect("it does not panic"))
    });
    assert_eq!(there[0], here);
    assert_ne!(there[1], here);
}

#[test]
fn flowlets_are_first_frames_and_pauses_and_only_switches_that_look_for_them_count_any() {
    let counted = |policy| run(&point(policy), 0).gauges;
    let letflow = counted("letflow");
    let [all, firsts, expiries] = [letflow.flowlets, letflow.flowlet_firsts, letflow.flowlet_expiries]
        .map(|count| count.expect("a fabric counts them"));
    assert!(firsts > 0.0 && (all - firsts - expiries).abs() < 0.5, "{all} of {firsts} and {expiries}");
    assert_eq!(counted("ecmp").flowlets, Some(0.0));
}

#[test]
fn what_does_not_go_together_is_refused_in_one_line() {
    let flows = point("ecmp");
    let rack = |testbed| Point { testbed, ..flows.clone() };
    let tasks = Workload::parse("exp:10us").expect("they are tasks");
    let narrow = "[fabric]\ntopology = \"leaf-spine:2:1:8\"".parse().expect("it is TOML");
    let narrow = Testbed::hf2t().changed(&narrow).expect("it has 16 hosts");
    let shorter = "[fabric]\nthreshold = \"80ns\"".parse().expect("it is TOML");
    let shorter = Testbed::hf2t().changed(&shorter).expect("who looks at pauses is up to the policy");
    for (point, says) in [
        (rack(Testbed::rain()), "testbed `rain` has none: take hf2t"),
        (
            Point { workload: tasks, transient: true, ..flows.clone() },
            "write a workload such as flows:web-search",
        ),
        (
            Point { policy: Policy::parse("rain:2").expect("it is one"), ..flows.clone() },
            "take a policy such as letflow",
        ),
        (rack(narrow), "of a link between switches: give at most"),
        (Point { testbed: shorter, ..point("letflow") }, "the flowlet threshold is 80 ns"),
    ] {
        let error = point.check().expect_err(says).to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
}
