//! How a study is run, and where its result goes: what the commands that simulate have in common beside
//! [what is asked for](sluice_experiment::args).

use std::path::PathBuf;

use clap::Args;
use sluice_experiment::args::{CurvesArgs, FigureArgs, ThroughputArgs};
use sluice_live::args::FollowArgs;
use sluice_study::numbers;
use sluice_support::flags::{ExportArgs, Output};

/// How it is run, and where results go.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// How many threads to use [default: one for each core]; results do not depend on it.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Where results go: JSON, CSV, an HTML page, and what is needed to go on after Ctrl-C [default: a folder
    /// of the command's own below out/, which it names at its end].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Run all of it anew, instead of going on from what an earlier run left in the folder.
    #[arg(long)]
    pub(crate) fresh: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `sluice sim` and `compare`, and what `sweep` has in common with them.
#[derive(Debug, Args)]
pub(crate) struct CurvesCommand {
    #[command(flatten)]
    pub(crate) asked: CurvesArgs,
    #[command(flatten)]
    pub(crate) export: ExportArgs,
    #[command(flatten)]
    pub(crate) how: RunArgs,
}

/// `sluice throughput`.
#[derive(Debug, Args)]
pub(crate) struct ThroughputCommand {
    #[command(flatten)]
    pub(crate) asked: ThroughputArgs,
    #[command(flatten)]
    pub(crate) export: ExportArgs,
    #[command(flatten)]
    pub(crate) how: RunArgs,
}

/// `sluice table`.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// Policies of your own, which take their places among the table's.
    #[arg(value_name = "POLICY", required_if_eq("only", "true"))]
    pub(crate) policies: Vec<String>,
    /// Show only the policies that are named here.
    #[arg(long)]
    pub(crate) only: bool,
    /// Show only these of the workloads const, exp, bimodal, rare, mix and pareto.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) workloads: Vec<String>,
    /// How many tasks to measure at each point, all replications together.
    #[arg(long, value_name = "COUNT", value_parser = numbers::count)]
    pub(crate) tasks: Option<u64>,
    /// Independent runs of each point.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) replications: Option<u32>,
    #[command(flatten)]
    pub(crate) how: RunArgs,
}

/// `sluice reproduce`.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// Figures by name (--list shows them), files of your own, rain (all of Rain's, with one table of
    /// verdicts), or all.
    #[arg(value_name = "PLAN", required_unless_present = "list")]
    pub(crate) plans: Vec<String>,
    /// Show which figures there are.
    #[arg(long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) asked: FigureArgs,
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
    #[command(flatten)]
    pub(crate) how: RunArgs,
}
