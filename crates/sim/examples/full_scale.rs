//! The whole datacenter of Horus' paper, pool after pool: `full_scale [THREADS [SHARE]]`.
//!
//! 1,000 pools with some 685,000 workers (`tests/points/pools.rs`) have Exp(100 µs) at 80 % load for 10 ms of
//! simulated time each, 55 million tasks, under Horus; hops are 5 µs, nothing is lost. A pool is a run of its
//! own, as pools that share switches do what each does alone. Prints what it took, in all and by the size of
//! pools. With a share of 0.05 it runs each twentieth pool, in the order of their sizes.

#[path = "../tests/points/pools.rs"]
mod pools;
#[path = "../benches/baseline/timing.rs"]
mod timing;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use std::{env, fs};

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_sim::run_jobs;
use sluice_sim::stats::Distribution;
use sluice_sim::testbed::Testbed;
use sluice_sim::workload::Workload;

use pools::{Pool, full_scale};
use timing::timed;

const LOAD: f64 = 0.8;
const MEAN_NS: f64 = 100_000.0;
const SPAN_NS: f64 = 10_000_000.0;
/// Below so many workers a pool is of this group.
const GROUPS: [(u32, &str); 4] =
    [(100, "below 100"), (1_000, "below 1,000"), (10_000, "below 10,000"), (u32::MAX, "all others")];

/// What pools took.
#[derive(Clone, Copy, Default)]
struct Took {
    pools: u32,
    workers: u32,
    tasks: u64,
    ns: f64,
}

fn main() -> ExitCode {
    let argument = |at| env::args().nth(at);
    let threads = argument(1).map_or(Some(2), |threads| threads.parse::<usize>().ok());
    let share = argument(2).map_or(Some(1.0), |share| share.parse().ok());
    let (Some(threads), Some(share)) = (threads, share.filter(|share| *share > 0.0 && *share <= 1.0)) else {
        let why = "full_scale needs how many threads, and which share of the pools: 2 0.05";
        writeln!(io::stderr(), "{why}").ok();
        return ExitCode::from(2);
    };
    // Nobody has to read it.
    writeln!(io::stdout(), "{}", run(threads, share)).ok();
    ExitCode::SUCCESS
}

fn run(threads: usize, share: f64) -> String {
    let mut pools: Vec<(u32, Pool)> = (0..).zip(full_scale()).collect();
    // The largest first, so that threads end together.
    pools.sort_by_key(|(_, pool)| u32::MAX - workers_of(pool));
    let every = (1.0 / share).round() as usize;
    let pools: Vec<(u32, Pool)> = pools.into_iter().skip(every / 2).step_by(every).collect();

    let latencies = Mutex::new(Distribution::new());
    let mut groups = [Took::default(); GROUPS.len()];
    let run_pool = |(replication, pool): &(u32, Pool)| {
        let (point, stop) = (point(pool), AtomicBool::new(false));
        let (ns, measured) = timed(|| point.replicate(*replication, &stop).expect("nobody stops it"));
        assert_eq!(measured.counts.replied, point.tasks, "no task is lost");
        latencies.lock().expect("nobody panics with it").merge(&measured.classes[0].latency);
        Took { pools: 1, workers: workers_of(pool), tasks: point.tasks, ns }
    };
    let begun = Instant::now();
    run_jobs(&pools, threads, &AtomicBool::new(false), run_pool, |_, took| {
        let group = GROUPS.iter().position(|(below, _)| took.workers < *below).expect("the last has all");
        groups[group] = groups[group].and(took);
    });
    let wall = begun.elapsed();

    let leaves: BTreeSet<usize> = pools.iter().flat_map(|(_, pool)| &pool.leaves).copied().collect();
    let all = groups.iter().fold(Took::default(), |all, took| all.and(*took));
    let of_groups = GROUPS.iter().zip(groups);
    let lines = of_groups.map(|((_, name), took)| format!("\n{}", took.line(name, all.ns)));
    let latencies = latencies.into_inner().expect("nobody panics with it");
    let [p50, p99] = latencies.quantiles([0.5, 0.99]).map(|ns| ns as f64 / 1e3);
    format!(
        "{}{}\n{} leaves; {:.1} s on {threads} threads, at most {} of memory\n\
         latency: p50 {p50:.0} us, p99 {p99:.0} us",
        all.line("all", all.ns),
        lines.collect::<String>(),
        leaves.len(),
        wall.as_secs_f64(),
        memory_max(),
    )
}

fn point(pool: &Pool) -> Point {
    let workers = workers_of(pool);
    let testbed = format!(
        "workers = {workers}\nclients = 4\nlinks = {{ client = \"5us\", worker = \"5us\" }}\n\
         racks = {{ spines = {}, workers = {:?}, hop = \"5us\" }}",
        pool.spines.len(),
        pool.racks,
    );
    let testbed = Testbed::parse(&testbed).expect("it is one");
    let policy = Policy::parse("dc-horus").expect("it is one");
    let workload = Workload::parse("exp:100us").expect("it is one");
    let busy = LOAD * f64::from(workers);
    let tasks = (busy * SPAN_NS / MEAN_NS) as u64;
    Point { tasks, ..Point::new(policy, testbed, workload, busy * 1e9 / MEAN_NS) }
}

fn workers_of(pool: &Pool) -> u32 {
    pool.racks.iter().sum()
}

/// The most that this process ever had in memory, as the kernel tells.
fn memory_max() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let told = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    told.map_or_else(|| "an unknown amount".to_owned(), |told| told.trim().to_owned())
}

impl Took {
    const fn and(self, more: Self) -> Self {
        Self {
            pools: self.pools + more.pools,
            workers: self.workers + more.workers,
            tasks: self.tasks + more.tasks,
            ns: self.ns + more.ns,
        }
    }

    fn line(&self, name: &str, of_ns: f64) -> String {
        let Self { pools, workers, tasks, ns } = self;
        let per_s = *tasks as f64 * 1e9 / ns.max(1.0);
        let percent = 100.0 * ns / of_ns;
        format!(
            "{name:12} {pools:5} pools {workers:7} workers {tasks:9} tasks \
             {:7.1} core-seconds ({percent:3.0} %) {per_s:8.0} tasks/core-second",
            ns / 1e9
        )
    }
}
