//! The references compared with one another on the same tasks.

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Ideal, Reference};
use sluice_stats::{
    LoggedTask, Measure, Measured, Metric, PARTS, Part, Recorder, Recording, TaskLog, Warmup, paired,
};
use sluice_wire::Nanos;
use sluice_workload::{Requests, Workload};

const SEED: u64 = 4;
const WORKERS: usize = 16;
const P99: Metric = Metric { measure: Measure::LatencyNs, part: Part::P99 };

#[test]
fn a_bound_that_binds_nothing_is_no_bound() {
    for workload in ["exp:10us", "bimodal:10us:100us:0.9", "const:10us"] {
        assert_eq!(each_task("jbsq:inf", workload), each_task("jsq", workload), "{workload}");
    }
}

#[test]
fn one_task_a_worker_is_one_queue() {
    for workload in ["exp:10us", "bimodal:10us:100us:0.9", "const:10us"] {
        assert_eq!(each_task("jbsq:1", workload), each_task("central", workload), "{workload}");
    }
}

#[test]
fn the_tail_grows_from_one_queue_to_random_ones() {
    for workload in ["exp:10us", "bimodal:10us:100us:0.9"] {
        let order = ["central", "jbsq:1", "jbsq:2", "jbsq:4", "jsq", "po2", "random"];
        let measured = order.map(|policy| replications(policy, workload));
        let compare = |better: usize, worse: usize| {
            paired(&measured[better], &measured[worse], Some(P99), None).expect("there are pairs")
        };
        for at in 1..order.len() {
            let found = compare(at - 1, at);
            assert!(found.difference.value >= 0.0, "{workload}: {} is worse: {found:?}", order[at - 1]);
        }
        for (better, worse) in [(0, 2), (2, 4), (4, 5), (5, 6)] {
            let found = compare(better, worse);
            let is_better = found.is_real && found.difference.value > 0.0;
            assert!(is_better, "{workload}: {} is no better: {found:?}", order[better]);
        }
    }
}

#[test]
fn turns_are_better_than_chance_and_worse_than_knowledge() {
    let [jsq, turns, random] =
        ["jsq", "round-robin", "random"].map(|policy| replications(policy, "exp:10us"));
    for (better, worse) in [(&jsq, &turns), (&turns, &random)] {
        let found = paired(better, worse, Some(P99), None).expect("there are pairs");
        assert!(found.is_real && found.difference.value > 0.0, "{found:?}");
    }
}

#[test]
fn a_distance_is_added_to_every_latency_and_changes_nothing_else() {
    let far = Ideal { distance: Nanos(5_000), ..ideal("jbsq:2") };
    let (near, far) = (told(&ideal("jbsq:2"), "exp:10us"), told(&far, "exp:10us"));
    for (near, far) in near.iter().zip(&far) {
        assert_eq!((near.intended, near.replied_at + Nanos(5_000)), (far.intended, far.replied_at));
    }
}

fn ideal(policy: &str) -> Ideal {
    Ideal { reference: Reference::parse(policy).expect("it is one"), workers: WORKERS, distance: Nanos(0) }
}

/// 100,000 tasks at load 0.9, in the order of their due times.
fn each_task(policy: &str, workload: &str) -> Vec<LoggedTask> {
    let mut tasks = told(&ideal(policy), workload);
    tasks.sort_unstable();
    tasks
}

fn told(ideal: &Ideal, workload: &str) -> Vec<LoggedTask> {
    let mut diary = TaskLog::until(Nanos(u64::MAX));
    ideal.tell(requests(workload, 0).take(100_000), &mut diary, (SEED, 0), &AtomicBool::new(false));
    let told = diary.entries();
    assert_eq!(told.len(), 100_000);
    told
}

fn replications(policy: &str, workload: &str) -> Vec<Measured> {
    let mean_ns = Workload::parse(workload).expect("it is right").mean_service_ns();
    let recording = Recording {
        mean_services_ns: vec![mean_ns],
        tasks: 200_000,
        warmup: Warmup::Tasks(20_000),
        parts: PARTS,
        way_home: Nanos(0),
        passed_over_at_random: None,
        within: Vec::new(),
    };
    let replicate = |replication| {
        let recorder = Recorder::new(recording.clone());
        let requests = requests(workload, replication);
        ideal(policy).run(requests, recorder, (SEED, replication), &AtomicBool::new(false))
    };
    (0..5).map(|replication| replicate(replication).expect("nobody stops it")).collect()
}

fn requests(workload: &str, replication: u32) -> Requests {
    let workload = Workload::parse(workload).expect("it is right");
    let rate_per_s = 0.9 * WORKERS as f64 * 1e9 / workload.mean_service_ns();
    Requests::new(&workload, rate_per_s, SEED, replication)
}
