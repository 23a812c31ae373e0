//! What is asked for: the flags of commands that simulate, as far as they decide the result.

use clap::Args;
use sluice_sim::Within;
use sluice_stats::Warmup;
use sluice_study::checked_plan::warmup;
use sluice_study::limit::Limit;
use sluice_study::numbers;
use sluice_wire::Nanos;
use sluice_workload::read_budget;

use crate::policies::PolicyArgs;

/// `sim`, `sweep` and `compare`.
#[derive(Clone, Debug, Args)]
pub struct CurvesArgs {
    #[command(flatten)]
    pub policies: PolicyArgs,
    #[command(flatten)]
    pub offered: OfferedArgs,
    #[command(flatten)]
    pub setting: SettingArgs,
}

/// `throughput`.
#[derive(Clone, Debug, Args)]
pub struct ThroughputArgs {
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// The limit that must be kept: p99<100us (latency), slowdown_p99<10 (latency over service time), or of
    /// one type of tasks get.p999<1ms.
    #[arg(long, value_name = "LIMIT", value_parser = Limit::parse)]
    pub slo: Limit,
    #[command(flatten)]
    pub setting: SettingArgs,
}

/// `reproduce`: what is changed about a plan.
#[derive(Clone, Debug, Default, Args)]
pub struct FigureArgs {
    /// Run each point as long as the paper did: 1 s of warm-up and 10 s measured, in five replications of a
    /// fifth each.
    #[arg(long, conflicts_with_all = ["tasks", "replications"])]
    pub paper_length: bool,
    /// Run only what shows this cause of a difference: the figures that it explains, with and without its
    /// change.
    #[arg(long, value_name = "CAUSE")]
    pub cause: Option<String>,
    /// How many tasks to measure at each point, instead of the plan's number.
    #[arg(long, value_name = "COUNT", value_parser = numbers::count)]
    pub tasks: Option<u64>,
    /// Independent runs of each point, instead of the plan's number.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub replications: Option<u32>,
    /// The number that fixes all that is random, instead of the plan's.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// How much is offered: at one point, or at several.
#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
pub struct OfferedArgs {
    /// How many tasks come in a second: 2000k, several (1M,2M), or a range and its step (200k..2800k/200k).
    #[arg(long, value_name = "RATES", alias = "rates", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// The same as a share of what all workers together can serve: 0.8, several, or a range and its step
    /// (0.1..0.9/0.1).
    #[arg(long, value_name = "LOADS", alias = "loads", allow_hyphen_values = true)]
    pub load: Option<String>,
}

/// What is run, where, and for how long.
#[derive(Clone, Debug, Args)]
pub struct SettingArgs {
    /// How long tasks take: exp:10us (10 µs on average, spread exponentially), const:8us,
    /// bimodal:10us:100us:0.9 (nine in ten 10 µs, the others 100 µs), or types with their shares:
    /// get=0.9@const:8us+scan=0.1@const:107us.
    #[arg(long, value_name = "WORKLOAD", default_value = "exp:10us")]
    pub workload: String,
    /// The rack that is simulated: rain (as in the paper: what links, switch and workers take), rain-rdma
    /// (the same with memory that tasks which wait are written into), ringleader (one server, and what it
    /// takes to orchestrate its cores), ideal (nothing takes time but the tasks), or a TOML file.
    #[arg(long, value_name = "TESTBED", default_value = "rain")]
    pub testbed: String,
    /// How many workers, instead of the testbed's.
    #[arg(long, value_name = "COUNT")]
    pub workers: Option<u32>,
    /// How much each client sends, relative to the others: 4,1 for two clients of which one sends four times
    /// as much [default: the testbed's clients, which send the same].
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',', conflicts_with = "clients")]
    pub client_weights: Vec<u32>,
    /// How many clients, instead of the testbed's; they send the same.
    #[arg(long, value_name = "COUNT")]
    pub clients: Option<u16>,
    /// Share of the tasks, 0 to 1, that carry more than the 8 bytes which fit the switch's queue.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub large: f64,
    /// Types that have a queue (a slice) and workers of their own, and how many workers: get=14,scan=18
    /// [default: all types share all workers].
    #[arg(long, value_name = "SLICES")]
    pub slices: Option<String>,
    /// The latency within which an answer is in time: 200us, or one for each type: get=100us,scan=1ms.
    /// With it, answers in time a second (goodput) and refusals are counted.
    #[arg(long, value_name = "LATENCY")]
    pub within: Option<Within>,
    #[command(flatten)]
    pub length: LengthArgs,
    /// For how long each task is worth beginning, from when it is due: 200us. A task that has nothing left of
    /// its budget is refused at its client, in the switch or at a worker [default: no limit, but for types
    /// with `,budget=SPAN` in the workload].
    #[arg(long, value_name = "SPAN", value_parser = read_budget)]
    pub budget: Option<Nanos>,
    /// Any number: it fixes all that is random, so that the same command gives the same result.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Run a load, too, that no rack can keep up: its times then only say how long the run was.
    #[arg(long)]
    pub transient: bool,
}

/// How long a point is.
#[derive(Clone, Debug, Args)]
pub struct LengthArgs {
    /// How many tasks to measure at each point, all replications together: 50k, 1M.
    #[arg(long, value_name = "COUNT", default_value = "1M", value_parser = numbers::count)]
    pub tasks: u64,
    /// Independent runs of each point; the 95 % intervals come from how far they, and parts of them, differ.
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub replications: u32,
    /// What is left out at the beginning of each replication: a number of tasks (100k), a span (1s), or
    /// detect.
    #[arg(long, value_name = "HOW", default_value = "detect", alias = "warmup", value_parser = warmup)]
    pub warm_up: Warmup,
}
