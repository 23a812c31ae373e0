//! The flags of commands that compare a live rack with the simulator or with today's load balancers. The
//! settings that result, with an earlier run's file underneath, are in `kept`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use sluice_experiment::policies::split;
use sluice_study::numbers;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::flags::{Io, Output};
use sluice_support::units;

/// The default distance between the loads of a range.
const STEP: &str = "0.3";

/// Which schedulers, and at which loads.
#[derive(Clone, Debug, Args)]
pub struct LiveArgs {
    /// The scheduler instead of the plan's, such as rain:1; with --sweep several, with commas between them or
    /// by the flag again [default with --sweep: rain:2,r2p2:2,racksched,draconis,pallas].
    #[arg(long, value_name = "POLICIES")]
    pub policy: Vec<String>,
    /// Compare schedulers live, with what the simulator predicts beside: run each at these shares of what all
    /// workers can serve, such as 0.3,0.6,0.8 or 0.3..0.9/0.1 [step: 0.3]; or again what the sweep.toml in a
    /// sweep's results says. Workers then only wait for as long as a task takes.
    #[arg(long, value_name = "LOADS", conflicts_with_all = ["plan", "rate", "faults"], allow_hyphen_values = true)]
    pub sweep: Option<String>,
    /// With --sweep, how long tasks take: exp:10us and the like, as for `sluice sim` [default: exp:10us].
    #[arg(long, value_name = "WORKLOAD", requires = "sweep")]
    pub workload: Option<String>,
    /// With --sweep, the rack that this machine stands for: rain, or a TOML file, as for `sluice sim`
    /// [default: rain].
    #[arg(long, value_name = "TESTBED", requires = "sweep")]
    pub testbed: Option<String>,
    /// With --sweep, independent runs of each point; each is as long as --length says [default: 5 of 4s].
    #[arg(long, value_name = "COUNT", requires = "sweep")]
    pub replications: Option<u32>,
    /// With --sweep, the number that fixes which tasks come when [default: 1].
    #[arg(long, requires = "sweep")]
    pub seed: Option<u64>,
    /// With --sweep, write what became of each task into a file for each run.
    #[arg(long, requires = "sweep")]
    pub each_task: bool,
}

/// The flags of `sluice reproduce` that run a plan's policies live whose load or workers change.
#[derive(Clone, Debug, Args)]
pub struct FollowArgs {
    /// Run the plan's adaptive policies with real packets, too, all times stretched, and compare how many
    /// tasks they let each worker hold with what the simulator does; where the plan has slow workers, compare
    /// the p99 latency, too.
    #[arg(long, conflicts_with_all = ["cause", "paper_length", "tasks", "replications", "list"])]
    pub live: bool,
    /// With --live, by how much all times are stretched.
    #[arg(long, value_name = "FACTOR", default_value_t = 1000, requires = "live",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub dilate: u32,
    /// With --live, how many live runs of each case.
    #[arg(long, value_name = "COUNT", default_value_t = 5, requires = "live",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// With --live, how many simulated runs of each case the live runs are compared with.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, requires = "live",
          value_parser = clap::value_parser!(u32).range(20..=10_000))]
    pub seeds: u32,
    /// With --live, how long each run is before it is stretched: 200ms takes 200 s at --dilate 1000 [default:
    /// 200ms; where the plan has slow workers, as long as it says].
    #[arg(long, value_name = "SPAN", requires = "live", value_parser = units::span)]
    pub span: Option<Duration>,
    /// With --live, only these cases of the plan: one, several with commas between them, or the flag again.
    #[arg(long, value_name = "CASES", requires = "live", value_delimiter = ',')]
    pub case: Vec<String>,
    /// With --live, only these of its policies, likewise.
    #[arg(long, value_name = "POLICIES", requires = "live")]
    pub policy: Vec<String>,
}

/// A sweep, as the command line describes it.
pub struct SweepArgs<'s> {
    /// Schedulers and loads.
    pub live: &'s LiveArgs,
    /// The factor by which all times are stretched.
    pub dilate: Option<u32>,
    /// How long each run is measured.
    pub length: Option<Duration>,
    /// Where everything goes.
    pub out: Option<&'s Path>,
    /// The file for the result's tables in Markdown.
    pub markdown: Option<&'s Path>,
    /// How results are printed.
    pub output: &'s Output,
    /// The commit of this program.
    pub commit: &'s str,
}

/// The flags of `sluice versus`.
#[derive(Debug, Args)]
pub struct VersusArgs {
    /// Run again what the versus.toml in an earlier run's results says; flags say what is different.
    pub plan: Option<PathBuf>,
    /// The schedulers to compare, such as rain:1; --within and --better look at each [default:
    /// rain:2,patient,early].
    #[arg(long, value_name = "POLICIES")]
    pub policy: Vec<String>,
    /// What to compare them with: nginx's UDP proxy, or sockets that share an address [default:
    /// nginx,reuseport].
    #[arg(long, value_name = "WAYS", value_delimiter = ',')]
    pub today: Vec<LoadBalancer>,
    /// How long tasks take: exp:10us and the like, as for `sluice sim` [default: bimodal:10us:100us:0.9].
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// How much load: a share of what all workers together can serve [default: 0.8].
    #[arg(long)]
    pub load: Option<f64>,
    /// How many workers; each only waits for as long as a task takes [default: 32].
    #[arg(long, value_name = "COUNT")]
    pub workers: Option<u32>,
    /// How many tasks to measure [default: 100k].
    #[arg(long, value_name = "COUNT", value_parser = numbers::count)]
    pub tasks: Option<u64>,
    /// Stretch all times by this factor: this machine's own delays then weigh less [default: 1000].
    #[arg(long, value_name = "FACTOR")]
    pub dilate: Option<u32>,
    /// From how many ports the client sends to nginx and to shared addresses, which spread tasks by port
    /// [default: 1024].
    #[arg(long, value_name = "COUNT")]
    pub ports: Option<u32>,
    /// What carries the packets of Rain's rack [default: udp].
    #[arg(long, value_name = "HOW")]
    pub io: Option<Io>,
    /// The number that fixes which tasks come when [default: 1].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Fail (exit code 3) if a policy's p99 slowdown is more than this many times that of one central queue.
    #[arg(long, value_name = "RATIO")]
    pub within: Option<f64>,
    /// Fail (exit code 3) unless each is at least this many times below the best of what stands there today.
    #[arg(long, value_name = "RATIO")]
    pub better: Option<f64>,
    /// Trace, results and nginx's files go into this folder [default: out/versus].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// How results are told.
    #[command(flatten)]
    pub output: Output,
}

/// What spreads datagrams over workers today.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadBalancer {
    /// nginx's UDP proxy, to the worker with the fewest sessions.
    Nginx,
    /// Sockets that share an address: the kernel chooses by a hash of the sender's.
    Reuseport,
}

impl LoadBalancer {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Reuseport => "reuseport",
        }
    }
}

impl FollowArgs {
    /// The policies that the flags name, one by one.
    pub(crate) fn policies(&self) -> Vec<String> {
        self.policy.iter().flat_map(|listed| split(listed)).collect()
    }
}

/// Reads loads from a list or a range; a range without a step gets the default one.
pub(super) fn loads(text: &str) -> Outcome<Vec<f64>> {
    let with_step = |part: &str| {
        let lacks = part.contains("..") && !part.contains('/');
        if lacks { format!("{part}/{STEP}") } else { part.to_owned() }
    };
    let parts: Vec<String> = text.split(',').map(with_step).collect();
    numbers::several(&parts.join(","), numbers::load).map_err(Failure::bad_input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_loads_needs_no_step() {
        assert_eq!(loads("0.3..0.5/0.1").expect("legal"), [0.3, 0.4, 0.5]);
        assert_eq!(loads("0.3..0.9").expect("legal"), [0.3, 0.6, 0.9]);
        assert_eq!(loads("0.3,0.6,0.8").expect("legal"), [0.3, 0.6, 0.8]);
        assert!(loads("0.9..0.3").is_err() && loads("fast").is_err());
    }
}
