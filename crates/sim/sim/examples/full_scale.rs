//! The whole datacenter of Horus' paper, pool after pool: `full_scale [THREADS [SHARE [WORKLOAD [LOSS]]]]`.
//!
//! 1,000 pools with about 685,000 workers (`tests/points/pools.rs`) run a workload at 80 % load under Horus
//! (`tests/points/whole.rs`). The defaults are Exp(100 µs) and no losses: 55 million tasks. Prints the time
//! that it took, in total and by the size of pools. With a share of 0.05 it runs every twentieth pool, in
//! the order of their sizes.

#[path = "../tests/points/pools.rs"]
mod pools;
#[path = "../benches/baseline/timing.rs"]
mod timing;
#[path = "../tests/points/whole.rs"]
mod whole;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use sluice_stats::Counts;
use sluice_workload::Workload;

use pools::{Pool, full_scale};
use whole::{Took, Whole};

/// A pool with fewer workers than this belongs to this group.
const GROUPS: [(u32, &str); 4] =
    [(100, "below 100"), (1_000, "below 1,000"), (10_000, "below 10,000"), (u32::MAX, "all others")];

struct Ask {
    threads: usize,
    share: f64,
    whole: Whole,
}

fn main() -> ExitCode {
    match asked() {
        Ok(ask) => {
            // A failed write is ignored.
            writeln!(io::stdout(), "{}", run(&ask)).ok();
            ExitCode::SUCCESS
        }
        Err(why) => {
            writeln!(io::stderr(), "{why}").ok();
            ExitCode::from(2)
        }
    }
}

fn asked() -> Result<Ask, String> {
    let number = |at: usize, default: &str, is_so: fn(f64) -> bool, what: &str| {
        let text = env::args().nth(at).unwrap_or_else(|| default.to_owned());
        let number = text.parse::<f64>().ok().filter(|number| is_so(*number));
        number.ok_or_else(|| format!("full_scale: `{text}` is no {what}; as in: 2 0.05 exp:100us 1e-5"))
    };
    let threads = number(1, "2", |n| n >= 1.0 && n.fract() == 0.0, "number of threads")? as usize;
    let share = number(2, "1", |n| n > 0.0 && n <= 1.0, "share of the pools")?;
    let loss = number(4, "0", |n| (0.0..1.0).contains(&n), "share of packets that are lost")?;
    let workload = env::args().nth(3).unwrap_or_else(|| "exp:100us".to_owned());
    let workload = Workload::parse(&workload).map_err(|why| format!("full_scale: {why}"))?;
    Ok(Ask { threads, share, whole: Whole { workload, loss } })
}

fn run(ask: &Ask) -> String {
    let Ask { threads, share, whole } = ask;
    let mut pools: Vec<(u32, Pool)> = (0..).zip(full_scale()).collect();
    // The largest pools come first, so that threads end at about the same time.
    pools.sort_by_key(|(_, pool)| u32::MAX - pool.workers());
    let every = (1.0 / share).round() as usize;
    let pools: Vec<(u32, Pool)> = pools.into_iter().skip(every / 2).step_by(every).collect();

    let mut groups = [Took::default(); GROUPS.len()];
    let begun = Instant::now();
    let came = whole.run(&pools, *threads, |pool, took| {
        let group = GROUPS.iter().position(|(below, _)| pool.workers() < *below).expect("the last has all");
        groups[group] = groups[group].and(took);
    });
    let wall = begun.elapsed();

    let leaves: BTreeSet<usize> = pools.iter().flat_map(|(_, pool)| &pool.leaves).copied().collect();
    let all = groups.iter().fold(Took::default(), |all, took| all.and(*took));
    let of_groups = GROUPS.iter().zip(groups);
    let lines = of_groups.map(|((_, name), took)| format!("\n{}", line(&took, name, all.ns)));
    let [p50, p99] = came.latencies.quantiles([0.5, 0.99]).map(|ns| ns as f64 / 1e3);
    let Counts { replied, retries, lost_packets, .. } = came.counts;
    format!(
        "{}{}\n{} leaves; {:.1} s on {threads} threads, at most {} of memory\n\
         latency: p50 {p50:.0} us, p99 {p99:.0} us\n\
         {replied} of {} tasks replied to; {lost_packets} packets lost, {retries} tries more",
        line(&all, "all", all.ns),
        lines.collect::<String>(),
        leaves.len(),
        wall.as_secs_f64(),
        memory_max(),
        all.tasks,
    )
}

/// The most memory that this process ever had, as the kernel tells it.
fn memory_max() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let told = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    told.map_or_else(|| "an unknown amount".to_owned(), |told| told.trim().to_owned())
}

fn line(took: &Took, name: &str, of_ns: f64) -> String {
    let Took { pools, workers, tasks, ns } = took;
    let per_s = *tasks as f64 * 1e9 / ns.max(1.0);
    let percent = 100.0 * ns / of_ns;
    format!(
        "{name:12} {pools:5} pools {workers:7} workers {tasks:9} tasks \
         {:7.1} core-seconds ({percent:3.0} %) {per_s:8.0} tasks/core-second",
        ns / 1e9
    )
}
