//! The runs of the example `full_scale`, with the smallest pools of the datacenter.

use sluice_stats::Counts;
use sluice_workload::Workload;

use crate::pools::{Pool, full_scale};
use crate::whole::{Came, Took, Whole};

const TRIMODAL: &str = "multimodal:50us@1/3:500us@1/3:5ms@1/3";

fn small() -> Vec<(u32, Pool)> {
    let mut pools: Vec<(u32, Pool)> = (0..).zip(full_scale()).collect();
    pools.sort_by_key(|(_, pool)| pool.workers());
    pools.truncate(5);
    pools
}

fn came(workload: &str, loss: f64, threads: usize) -> Came {
    let workload = Workload::parse(workload).expect("a workload");
    let (pools, mut all) = (small(), Took::default());
    let came = Whole { workload, loss }.run(&pools, threads, |pool, took| {
        assert_eq!((took.pools, took.workers), (1, pool.workers()));
        all = all.and(took);
    });
    let workers = pools.iter().map(|(_, pool)| pool.workers()).sum();
    assert_eq!((all.pools, all.workers, all.tasks), (5, workers, came.counts.replied));
    assert!(all.ns > 0.0, "it took a while");
    came
}

#[test]
fn any_number_of_threads_gives_the_same_bytes_under_every_workload_with_losses_and_without() {
    for workload in ["exp:100us", "bimodal:50us:500us:0.5", TRIMODAL] {
        for loss in [0.0, 0.001] {
            let [alone, three] = [1, 3].map(|threads| {
                let Came { latencies, counts } = came(workload, loss, threads);
                (serde_json::to_string(&latencies).expect("numbers"), counts)
            });
            assert!(alone == three, "{workload} {loss}: {:?} {:?}", alone.1, three.1);
        }
    }
}

#[test]
fn workloads_and_losses_change_what_comes_out_and_what_is_lost_is_sent_again() {
    let [exp, bimodal, trimodal] =
        ["exp:100us", "bimodal:50us:500us:0.5", TRIMODAL].map(|load| came(load, 0.0, 2));
    let p99 = |of: &Came| of.latencies.quantile(0.99);
    assert!(p99(&exp) < p99(&bimodal) && p99(&bimodal) < p99(&trimodal) && p99(&trimodal) > 5_000_000);
    let tasks = exp.counts.replied;
    for came in [&exp, &bimodal, &trimodal] {
        let Counts { replied, retries, lost_packets, .. } = came.counts;
        assert_eq!((replied, retries, lost_packets), (tasks, 0, 0), "as many of each, and none twice");
    }
    let lossy = came("exp:100us", 0.001, 2).counts;
    assert_eq!(lossy.replied, tasks, "{lossy:?}");
    assert!(lossy.retries > 0 && lossy.lost_packets > tasks / 1_000, "{lossy:?}");
}
