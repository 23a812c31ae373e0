//! One server whose orchestration costs nothing, compared with theory and with the references.

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Ideal, Reference};
use sluice_models::server::{OrchestratedServer, Orchestration};
use sluice_stats::{Estimate, Measured, PARTS, Recorder, Recording, Spread, Summary, Warmup, summarize};
use sluice_testbed::Testbed;
use sluice_workload::{Requests, Workload};

use crate::formulas::{erlang_c, mmk_response};

const MEAN_NS: f64 = 3_000.0;
const CORES: u32 = 8;
const REPLICATIONS: u32 = 20;
const SEED: u64 = 1;

/// One replication of a server's orchestration, or of a reference with that name, at a load.
fn replicate(policy: &str, load: f64, tasks: u64, replication: u32) -> Measured {
    let testbed = Testbed { workers: CORES, ..Testbed::ideal() };
    let workload = Workload::parse("exp:3us").unwrap();
    let rate_per_s = load * f64::from(CORES) * 1e9 / MEAN_NS;
    let recorder = Recorder::new(Recording {
        mean_services_ns: vec![MEAN_NS],
        tasks,
        warmup: Warmup::Tasks(tasks / 10),
        parts: PARTS,
        way_home: testbed.way_home(),
        passed_over_at_random: None,
        within: Vec::new(),
    });
    let requests = Requests::new(&workload, rate_per_s, SEED, replication);
    let (of, stop) = ((SEED, replication), AtomicBool::new(false));
    let measured = if let Some(orchestration) = Orchestration::parse(policy) {
        let orchestration = orchestration.unwrap();
        let server = OrchestratedServer { orchestration, testbed: &testbed, classes: &workload.classes };
        server.run(requests, recorder, of, &stop)
    } else {
        let reference = Reference::parse(policy).unwrap();
        let ideal = Ideal { reference, workers: CORES as usize, distance: testbed.zero_load() };
        ideal.run(requests, recorder, of, &stop)
    };
    measured.expect("nobody stops it")
}

fn measured(policy: &str, load: f64) -> Summary {
    let all: Vec<_> =
        (0..REPLICATIONS).map(|replication| replicate(policy, load, 100_000, replication)).collect();
    summarize(&all)
}

/// Checks that the true value is within twice the half width of the 95 % interval, which chance misses once
/// in 10,000 times; and that the interval is narrow enough to say something.
fn assert_is(name: &str, of: Estimate, right: f64) {
    let half = (of.high - of.low) / 2.0;
    assert!((of.value - right).abs() <= 2.0 * half && half < 0.03 * right, "{name}: {of:?}, theory {right}");
}

#[test]
fn a_server_without_costs_is_the_reference_that_it_approaches() {
    for load in [0.5, 0.9] {
        for (policy, reference) in [
            ("ringleader:1", "central"),
            ("ringleader:2", "jbsq:2"),
            ("ringleader:4", "jbsq:4"),
            ("ringleader:4,global", "jbsq:4"),
            ("ringleader:4,by-service,pifo", "jbsq:4"),
            ("shinjuku", "central"),
            ("shinjuku:nopre", "central"),
            ("d-ideal:1", "central"),
        ] {
            let [server, ideal] = [policy, reference].map(|of| replicate(of, load, 50_000, 0));
            assert_eq!(server.counts.replied, ideal.counts.replied);
            assert!(server.classes == ideal.classes, "{policy} is {reference} at {load}");
        }
    }
}

#[test]
fn a_queue_for_each_core_by_request_is_as_many_servers_of_one_core() {
    for (policy, load) in [("rss", 0.5), ("rss", 0.8), ("d-ideal:8", 0.8)] {
        let Spread { mean, p50, p99, .. } = measured(policy, load).overall.latency_ns;
        let one = mmk_response(1, load);
        assert_is(policy, mean, MEAN_NS / (1.0 - load));
        assert_is(policy, p50, MEAN_NS * one.quantile(0.5));
        assert_is(policy, p99, MEAN_NS * one.quantile(0.99));
    }
}

#[test]
fn groups_of_cores_are_as_many_smaller_servers() {
    let Spread { p50, p99, .. } = measured("d-ideal:2", 0.8).overall.latency_ns;
    let four = mmk_response(4, 0.8);
    assert_is("p50", p50, MEAN_NS * four.quantile(0.5));
    assert_is("p99", p99, MEAN_NS * four.quantile(0.99));
}

#[test]
fn no_core_idles_where_cores_steal_for_nothing() {
    for policy in ["stealing", "caladan"] {
        let load = 0.8;
        let wait = erlang_c(CORES, load) / (f64::from(CORES) * (1.0 - load));
        assert_is(policy, measured(policy, load).overall.latency_ns.mean, MEAN_NS * (1.0 + wait));
    }
}
