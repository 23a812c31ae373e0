//! Loads that can be kept up, loads that cannot, and the highest rate that keeps a limit.

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Ideal, Reference};
use sluice_stats::{
    Measured, PARTS, Recorder, Recording, SloFound, SloSearch, Summary, Warmup, summarize, throughput_at_slo,
};
use sluice_wire::Nanos;
use sluice_workload::{Requests, Workload};

use crate::formulas::{mg1_mean_response, mmk_response};

const SEED: u64 = 4;
const MEAN_NS: f64 = 10_000.0;

#[test]
fn a_load_below_one_is_sustained_and_one_above_is_not() {
    for replications in [1, 5] {
        for load in [0.5, 0.9, 0.97] {
            let sustained = summary(16, load, 400_000, replications).sustained;
            assert!(sustained.holds, "{load}, {replications} replications: {}", sustained.why);
        }
        for load in [1.02, 1.2] {
            let sustained = summary(16, load, 400_000, replications).sustained;
            assert!(!sustained.holds, "{load}, {replications} replications");
        }
    }
}

#[test]
fn the_gauges_are_what_theory_says() {
    let summary = summary(1, 0.8, 1_000_000, 5);
    let queue = 0.8 * (mg1_mean_response(0.8, 1.0) - 1.0);
    let found = summary.gauges.switch_queue_mean.expect("there is such a queue");
    assert!((found / queue - 1.0).abs() < 0.03, "{found} and not {queue}");
    let idle = summary.gauges.idle_share.expect("workers idle");
    assert!((idle - 0.2).abs() < 0.003, "{idle}");
}

#[test]
fn the_rate_that_a_limit_allows_is_found() {
    let workers = 16;
    let p99 = |load: f64| mmk_response(workers, load).quantile(0.99) * MEAN_NS;
    let capacity_per_s = f64::from(workers) * 1e9 / MEAN_NS;
    let search = SloSearch {
        low_per_s: 0.5 * capacity_per_s,
        high_per_s: 1.1 * capacity_per_s,
        limit: p99(0.9),
        tolerance: 0.005,
    };
    let found = throughput_at_slo(
        &search,
        |summary| summary.overall.latency_ns.p99,
        |rate_per_s| {
            Ok::<_, std::convert::Infallible>(summary(workers, rate_per_s / capacity_per_s, 200_000, 5))
        },
    );
    let Ok(SloFound::Rate(rate)) = found else { panic!("there is one: {found:?}") };
    let load = rate.value / capacity_per_s;
    assert!((load - 0.9).abs() < 0.01, "{load}");
    assert!(rate.low <= 0.9 * capacity_per_s && 0.9 * capacity_per_s <= rate.high * 1.005, "{rate:?}");
}

#[test]
fn a_detected_warm_up_leaves_no_trace_in_the_mean() {
    let right_ns = mg1_mean_response(0.9, 1.0) * MEAN_NS;
    let measured: Vec<Measured> = (0..10).map(|replication| run(1, 0.9, 300_000, replication)).collect();
    assert!(measured.iter().all(|one| one.settled && one.warmup_ns > 0));
    let mean = summarize(&measured).overall.latency_ns.mean;
    assert!(mean.low < right_ns && right_ns < mean.high, "{mean:?} and not {right_ns}");
}

fn summary(workers: u32, load: f64, tasks: u64, replications: u32) -> Summary {
    let measured: Vec<Measured> =
        (0..replications).map(|replication| run(workers, load, tasks, replication)).collect();
    summarize(&measured)
}

fn run(workers: u32, load: f64, tasks: u64, replication: u32) -> Measured {
    let workload = Workload::parse("exp:10us").expect("it is right");
    let rate_per_s = load * f64::from(workers) * 1e9 / MEAN_NS;
    let recording = Recording {
        mean_services_ns: vec![MEAN_NS],
        tasks,
        warmup: Warmup::Detect,
        parts: PARTS,
        way_home: Nanos(0),
        passed_over_at_random: None,
        within: Vec::new(),
    };
    let ideal = Ideal { reference: Reference::Central, workers: workers as usize, distance: Nanos(0) };
    let requests = Requests::new(&workload, rate_per_s, SEED, replication);
    let measured =
        ideal.run(requests, Recorder::new(recording), (SEED, replication), &AtomicBool::new(false));
    measured.expect("nobody stops it")
}
