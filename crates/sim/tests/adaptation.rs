//! Depths and slices that follow the load, in the rack of the simulator.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_sim::stats::{Depths, Measured, Warmup};
use sluice_sim::study::bench::{Bench, Length, Overload, Terms};
use sluice_sim::study::plan::Plan;
use sluice_sim::testbed::Testbed;
use sluice_sim::workload::Workload;

fn run(policy: &str, workload: &str, rate_per_s: f64, slices: Option<Vec<(String, u32)>>) -> Measured {
    let point = Point {
        policy: Policy::parse(policy).expect("a policy"),
        testbed: Testbed::rain(),
        workload: Workload::parse(workload).expect("a workload"),
        rate_per_s,
        tasks: (rate_per_s * 0.08) as u64,
        warmup: Warmup::Tasks(0),
        seed: 1,
        transient: true,
        slices,
    };
    point.replicate(0, &AtomicBool::new(false)).unwrap_or_else(|why| panic!("{policy}: {why}"))
}

fn last(measured: &Measured) -> Depths {
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

#[test]
fn the_plans_about_adaptation_can_be_run() {
    for text in [
        include_str!("../../../experiments/rain-9.toml"),
        include_str!("../../../experiments/rain-10.toml"),
        include_str!("../../../experiments/rain-6a.toml"),
        include_str!("../../../experiments/rain-6b.toml"),
        include_str!("../../../experiments/rain-6c.toml"),
    ] {
        let plan = Plan::parse("plan", text).unwrap_or_else(|why| panic!("{why}"));
        let length = Length::Tasks(1_000, Warmup::Detect);
        let terms = Terms { length, overload: Overload::LeftOut, folder: PathBuf::new() };
        Bench::new(plan, terms).unwrap_or_else(|why| panic!("{why}"));
    }
}
