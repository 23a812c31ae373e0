//! Depths and slices that follow the load, in a simulated rack.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, SliceDepths, Warmup};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

fn run(policy: &str, workload: &str, rate_per_s: f64, slices: Option<Vec<(String, u32)>>) -> Measured {
    run_with(Testbed::rain(), policy, workload, rate_per_s, slices)
}

fn run_with(
    testbed: Testbed,
    policy: &str,
    workload: &str,
    rate_per_s: f64,
    slices: Option<Vec<(String, u32)>>,
) -> Measured {
    let point = Point {
        tasks: (rate_per_s * 0.08) as u64,
        transient: true,
        slices,
        ..Point::new(
            Policy::parse(policy).expect("a policy"),
            testbed,
            Workload::parse(workload).expect("a workload"),
            rate_per_s,
        )
    };
    point.replicate(0, &AtomicBool::new(false)).unwrap_or_else(|why| panic!("{policy}: {why}"))
}

fn last(measured: &Measured) -> SliceDepths {
    *measured.depths.last().expect("intervals ended")
}

#[test]
fn long_tasks_among_short_ones_make_depths_one() {
    let measured = run("rain:adaptive", "bimodal:10us:100us:0.9", 800e3, None);
    assert!(last(&measured).depth_mean < 1.1, "{:?}", last(&measured));
    assert_eq!(measured.counts.replied, measured.counts.sent);
}

#[test]
fn what_depth_one_cannot_carry_gets_deeper() {
    let measured = run("rain:1,adaptive", "const:10us", 2_700e3, None);
    assert!(last(&measured).depth_mean >= 2.0, "{:?}", last(&measured));
}

#[test]
fn an_adviser_changes_nothing() {
    let of = |policy| run(policy, "bimodal:10us:100us:0.9", 800e3, None);
    let (advised, fixed) = (of("rain:2,advise"), of("rain:2"));
    assert!(advised.depths.iter().all(|depths| depths.depth_min == 2 && depths.depth_max == 2));
    assert!(advised.depths.iter().any(|depths| depths.shallower > 0));
    assert_eq!(advised.classes, fixed.classes);
}

#[test]
fn an_overloaded_slice_borrows_from_an_idle_one_and_no_task_is_lost() {
    let slices = Some(vec![("busy".to_owned(), 16), ("idle".to_owned(), 16)]);
    let mix = "busy=1@bimodal:10us:100us:0.5+idle=0@const:10us";
    let measured = run("rain:adaptive", mix, 280e3, slices);
    let workers =
        |slice| measured.depths.iter().rev().find(|depths| depths.slice == slice).map(|d| d.workers);
    let (busy, idle) = (workers(0).expect("it has workers"), workers(1).expect("it keeps some"));
    assert!(busy > 16 && idle < 16 && busy + idle <= 32, "{busy} + {idle}");
    assert_eq!(measured.counts.replied, measured.counts.sent);
}

#[test]
fn nobody_loses_a_lease_in_a_run_that_outlasts_them() {
    let point = Point {
        tasks: 50_000,
        // Longer than a lease.
        warmup: Warmup::Tasks(120_000),
        transient: true,
        ..Point::new(
            Policy::parse("rain:1,adaptive").expect("a policy"),
            Testbed { workers: 2, ..Testbed::rain_rdma() },
            Workload::parse("exp:10us,large=1").expect("a workload"),
            100e3,
        )
    };
    let measured = point.replicate(0, &AtomicBool::new(false)).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(measured.counts.replied, measured.counts.sent);
    assert!(measured.counts.writes > 1_000, "servers keep their rings: {:?}", measured.counts);
}

#[test]
fn one_seed_gives_one_run() {
    let once = || run("rain:adaptive", "exp:10us", 2_000e3, None);
    assert_eq!(once(), once());
}

#[test]
fn our_rule_finds_depth_one_and_stays_there() {
    let measured = run("rain:adaptive,replay", "bimodal:10us:100us:0.9", 800e3, None);
    let settled = measured.depths.iter().skip(3);
    assert!(settled.clone().count() > 3 && settled.clone().all(|depths| depths.depth_max == 1));
}

#[test]
fn our_rule_finds_depth_two_where_one_cannot_carry_the_load() {
    let measured = run("rain:1,adaptive,replay", "exp:10us", 2_700e3, None);
    assert_eq!((last(&measured).depth_min, last(&measured).depth_max), (2, 2));
}

/// The rack with an agent for each half of its workers, or for each quarter.
fn with_agents(agents: u16, policy: &str, workload: &str, rate_per_s: f64) -> Measured {
    let mut testbed = Testbed::rain();
    testbed.servers.agents = Some(agents);
    run_with(testbed, policy, workload, rate_per_s, None)
}

#[test]
fn agents_of_several_servers_find_the_depth_that_one_agent_finds() {
    for (workload, rate_per_s) in [
        ("bimodal:10us:100us:0.9", 800e3),
        ("bimodal:10us:100us:0.5", 420e3),
        ("exp:10us", 2_000e3),
        ("exp:10us", 2_700e3),
        ("const:10us", 2_700e3),
    ] {
        let alone = last(&run("rain:adaptive,replay", workload, rate_per_s, None));
        for agents in [2, 4] {
            let found = last(&with_agents(agents, "rain:adaptive,replay", workload, rate_per_s));
            let depths = (alone.depth_min, alone.depth_max);
            assert_eq!((found.depth_min, found.depth_max), depths, "{agents}: {workload} at {rate_per_s}");
        }
    }
}

#[test]
fn the_papers_rule_does_the_same_with_any_number_of_agents() {
    let of = |agents| with_agents(agents, "rain:adaptive", "bimodal:10us:100us:0.5", 480e3);
    assert_eq!(of(1), of(2));
}
