//! The flags of the commands that send: `sluice load` and `sluice write`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use sluice_host::pacer::{Alpha, GapShare};
use sluice_net::program::TraceArgs;
use sluice_sim::Within;
use sluice_support::flags::{ExportArgs, LogArgs, Output};
use sluice_support::plan::{RateStages, Threshold};
use sluice_support::running::RackArgs;
use sluice_support::units;
use sluice_wire::Nanos;

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// A plan whose load this is; flags go before it.
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rack: RackArgs,
    /// Where tasks leave and replies come in: an address that the switch and the workers can reach.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// How long to look for the rack.
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = units::span)]
    pub(crate) patience: Duration,
    /// Tasks per second.
    #[arg(long, value_name = "TASKS/S", value_parser = units::rate, allow_negative_numbers = true)]
    pub(crate) rate: Option<f64>,
    /// A rate that changes with time, and how long to measure: 10k:5s,10k..50k:5s,50k:10s is 10,000 tasks per
    /// second, a ramp, and 50,000.
    #[arg(long, value_name = "RATE:SPAN,…", conflicts_with_all = ["rate", "length"])]
    pub(crate) stages: Option<RateStages>,
    /// At random moments, or at even distances [default: the plan's, or at random moments].
    #[arg(long, value_name = "HOW")]
    pub(crate) arrivals: Option<ArrivalsArg>,
    /// A file of MICROSECONDS,TYPE lines that says what to send when.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "stages"])]
    pub(crate) trace: Option<PathBuf>,
    /// Which types, with their shares, such as get=0.9,scan=0.1.
    #[arg(long, value_name = "SHARES")]
    pub(crate) mix: Option<String>,
    /// How long to send before anything is measured.
    #[arg(long, value_name = "SPAN", value_parser = units::span)]
    pub(crate) warm_up: Option<Duration>,
    /// How long to measure.
    #[arg(long, value_name = "SPAN", value_parser = units::span)]
    pub(crate) length: Option<Duration>,
    /// When a task's outcome is Unknown.
    #[arg(long, value_name = "SPAN", value_parser = units::span)]
    pub(crate) deadline: Option<Duration>,
    /// For how long a task is worth beginning, from when it is due: 200us. One that has nothing left of its
    /// budget is refused at its client, in the switch or at a worker [default: no limit, but for types that
    /// have one in the plan].
    #[arg(long, value_name = "SPAN", value_parser = sluice_workload::read_budget)]
    pub(crate) budget: Option<Nanos>,
    /// The latency within which an answer is in time: 200us, or one for each type: get=100us,scan=1ms. With
    /// it, answers in time a second (goodput) are counted [default: the plan's].
    #[arg(long, value_name = "LATENCY")]
    pub(crate) within: Option<Within>,
    /// A bound that the run must hold, else the exit code is 3: get.p99<5ms, refused<1%, rate>9k, or without
    /// a type of all tasks; give it again for more [default: the plan's].
    #[arg(long = "threshold", value_name = "NUMBER<BOUND")]
    pub(crate) thresholds: Vec<Threshold>,
    /// Whether tasks are tried again: `budget` (within a tenth of the sends) or `never`.
    #[arg(long, value_name = "WHEN", value_parser = units::retry)]
    pub(crate) retry: Option<bool>,
    /// Seeds the load and the injected faults.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Times of the network, multiplied: as the rack was started.
    #[arg(long, value_name = "FACTOR", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) dilate: Option<u32>,
    /// Faults in this client's socket, such as loss=0.01,dup=0.01,reorder=0.05.
    #[arg(long, value_name = "RATES")]
    pub(crate) faults: Option<String>,
    /// Keep the packet thread on this core.
    #[arg(long, value_name = "CORE")]
    pub(crate) pin: Option<usize>,
    /// Write JSON, CSV and .hgrm files into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) export: ExportArgs,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) traces: TraceArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// The largest number of flows of `sluice write`: the receiving end has this many pairs.
pub(crate) const FLOWS_MAX: u16 = 64;

#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// Who takes the writes [default: this command itself, over the loopback].
    #[arg(value_parser = units::address)]
    pub(crate) to: Option<SocketAddr>,
    /// Send nothing: take what others write to this address of this machine, until Ctrl-C.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address, conflicts_with = "to")]
    pub(crate) listen: Option<SocketAddr>,
    /// How many flows: queue pairs, each with a port of its own, by which switches tell flows apart.
    #[arg(long, value_name = "COUNT", default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(FLOWS_MAX)))]
    pub(crate) flows: u16,
    /// WRITEs per second, of all flows together.
    #[arg(long, value_name = "WRITES/S", value_parser = units::rate, default_value = "20k",
          allow_negative_numbers = true)]
    pub(crate) rate: f64,
    /// At random moments, or at even distances.
    #[arg(long, value_name = "HOW", default_value = "poisson")]
    pub(crate) arrivals: ArrivalsArg,
    /// How many bytes each brings.
    #[arg(long, value_name = "BYTES", default_value_t = 1024,
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) bytes: u16,
    /// For how long.
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = units::span)]
    pub(crate) length: Duration,
    /// The pause that makes a flowlet at the switch: a held frame leaves when its gap is as long.
    #[arg(long, value_name = "SPAN", default_value = "1ms", value_parser = units::span)]
    pub(crate) threshold: Duration,
    /// Which percentile of the host's gaps is T, from 97.5 to 99.
    #[arg(long, value_name = "PERCENT", default_value = "99", value_parser = percentile)]
    pub(crate) percentile: GapShare,
    /// After how many gaps T is known; none before is made longer.
    #[arg(long, value_name = "GAPS", default_value_t = 10_000)]
    pub(crate) training: u32,
    /// How T follows the flowlet's length: the bounds of short and long ones, or `none`.
    #[arg(long, value_name = "BOUNDS", default_value = "20/80", value_parser = alpha)]
    pub(crate) alpha: AlphaArg,
    /// Hold nothing.
    #[arg(long)]
    pub(crate) unpaced: bool,
    /// Where frames wait for their time.
    #[arg(long, value_name = "HOW", default_value = "spin")]
    pub(crate) wait: WaitArg,
    /// Look at the gaps on this network's links, too (takes root).
    #[arg(long)]
    pub(crate) on_link: bool,
    /// Keep the thread on this core.
    #[arg(long, value_name = "CORE")]
    pub(crate) pin: Option<usize>,
    /// Seeds the moments.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Where a sender's frames wait for their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WaitArg {
    /// In the outbox, whose thread looks at the clock without a pause.
    Spin,
    /// In the outbox, whose thread sleeps meanwhile.
    Sleep,
    /// In the kernel's fair queue (fq), with the times at which they leave.
    Kernel,
}

/// α's bounds; `None` if T does not depend on the flowlet's length.
pub(crate) type AlphaArg = Option<Alpha>;

/// Reads a percentile of gaps.
fn percentile(text: &str) -> Result<GapShare, String> {
    GapShare::read(text).ok_or_else(|| format!("`{text}` is no percentage: write 97.5 to 99"))
}

/// Reads α's bounds.
fn alpha(text: &str) -> Result<AlphaArg, String> {
    if text == "none" {
        return Ok(None);
    }
    Alpha::read(text).map(Some).ok_or_else(|| format!("`{text}` is no pair of bounds: write 20/80, or none"))
}

/// How a load's tasks are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ArrivalsArg {
    /// At random moments.
    Poisson,
    /// At even distances.
    Constant,
}
