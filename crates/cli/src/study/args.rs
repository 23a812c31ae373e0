//! What the commands that simulate have in common on the command line.

use std::path::PathBuf;

use clap::Args;
use sluice_sim::stats::Warmup;
use sluice_sim::study::bench;
use sluice_sim::study::limit::Limit;
use sluice_sim::study::numbers;

use crate::args::Output;
use crate::live::args::FollowArgs;
use crate::policies::PolicyArgs;

/// What is run, where, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct Setting {
    /// Service times, such as exp:10us, or classes with theirs: get=0.9@const:8us+scan=0.1@const:107us.
    #[arg(long, value_name = "WORKLOAD", default_value = "exp:10us")]
    pub(crate) workload: String,
    /// The testbed: rain, rain-rdma (with servers' links and memory), ideal, or a TOML file.
    #[arg(long, value_name = "TESTBED", default_value = "rain")]
    pub(crate) testbed: String,
    /// Workers, instead of the testbed's.
    #[arg(long, value_name = "COUNT")]
    pub(crate) workers: Option<u32>,
    /// Share of tasks over 8 bytes, in each class.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) large: f64,
    /// Classes with workers of their own, such as get=14,scan=18.
    #[arg(long, value_name = "SLICES")]
    pub(crate) slices: Option<String>,
    #[command(flatten)]
    pub(crate) length: LengthArgs,
    /// Seeds all streams: one seed gives one result.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Allow a load that nobody can sustain.
    #[arg(long)]
    pub(crate) transient: bool,
}

/// How long a point is.
#[derive(Clone, Debug, Args)]
pub(crate) struct LengthArgs {
    /// Measured tasks a point, all replications together.
    #[arg(long, value_name = "COUNT", default_value = "1M", value_parser = numbers::count)]
    pub(crate) tasks: u64,
    /// Independent runs a point; intervals come from them.
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) replications: u32,
    /// What comes before in each replication: detect, so many tasks (100k), or a span (1s).
    #[arg(long, value_name = "HOW", default_value = "detect", alias = "warmup", value_parser = bench::warmup)]
    pub(crate) warm_up: Warmup,
}

/// How it is run, and where results go.
#[derive(Clone, Debug, Args)]
pub(crate) struct How {
    /// Threads [default: all cores]; results do not depend on them.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Where results go: JSON, CSV, an HTML page, and what is needed to go on after Ctrl-C [default: a folder of the
    /// command's own below out/, which it names at its end].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Forget what an earlier run left in the folder.
    #[arg(long)]
    pub(crate) fresh: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `sluice sim`.
#[derive(Debug, Args)]
pub(crate) struct Sim {
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) offered: Offered,
    #[command(flatten)]
    pub(crate) setting: Setting,
    #[command(flatten)]
    pub(crate) how: How,
}

/// How much is offered: at one point, or at several.
#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Offered {
    /// Tasks per second: 2000k, several (1M,2M), or a range with its step (200k..2800k/200k).
    #[arg(long, value_name = "RATES", alias = "rates", allow_hyphen_values = true)]
    pub(crate) rate: Option<String>,
    /// The same as shares of what all workers can serve: 0.8, or 0.1..0.9/0.1.
    #[arg(long, value_name = "LOADS", alias = "loads", allow_hyphen_values = true)]
    pub(crate) load: Option<String>,
}

/// `sluice sweep`.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) offered: Offered,
    #[command(flatten)]
    pub(crate) setting: Setting,
    #[command(flatten)]
    pub(crate) how: How,
}

/// `sluice compare`.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) offered: Offered,
    #[command(flatten)]
    pub(crate) setting: Setting,
    #[command(flatten)]
    pub(crate) how: How,
}

/// `sluice throughput`.
#[derive(Debug, Args)]
pub(crate) struct Throughput {
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// What must be kept, such as p99<100us, slowdown_p99<10 or get.p999<1ms.
    #[arg(long, value_name = "LIMIT", value_parser = Limit::parse)]
    pub(crate) slo: Limit,
    #[command(flatten)]
    pub(crate) setting: Setting,
    #[command(flatten)]
    pub(crate) how: How,
}

/// `sluice reproduce`.
#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// Plans by name, plan files, rain (all of its plans, one table of verdicts), or all.
    #[arg(value_name = "PLAN", required_unless_present = "list")]
    pub(crate) plans: Vec<String>,
    /// Show what there is.
    #[arg(long)]
    pub(crate) list: bool,
    /// 1 s of warm-up and 10 s measured a point, in five replications of a fifth each, as long as the paper's.
    #[arg(long, conflicts_with_all = ["tasks", "replications"])]
    pub(crate) paper_length: bool,
    /// Show one cause alone: its statements with and without its change.
    #[arg(long, value_name = "CAUSE")]
    pub(crate) cause: Option<String>,
    /// Measured tasks a point, instead of the plan's.
    #[arg(long, value_name = "COUNT", value_parser = numbers::count)]
    pub(crate) tasks: Option<u64>,
    /// Independent runs a point, instead of the plan's.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) replications: Option<u32>,
    /// Seeds all streams, instead of the plan's.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
    #[command(flatten)]
    pub(crate) how: How,
}
