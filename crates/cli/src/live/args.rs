//! The flags of `sluice up` that hold a live rack against the simulator.

use std::time::Duration;

use clap::Args;
use sluice_sim::study::numbers;

use crate::fail::{Failure, Outcome};
use crate::policies::split;
use crate::units;

/// How far apart the loads of a range are that does not say.
const STEP: &str = "0.3";

/// Which schedulers, and at which loads.
#[derive(Clone, Debug, Args)]
pub(crate) struct LiveArgs {
    /// The scheduler instead of the plan's, such as rain:1; with --sweep several, with commas between them or by the
    /// flag again [default with --sweep: rain:2,r2p2:2,racksched,draconis,pallas].
    #[arg(long, value_name = "POLICIES")]
    pub(crate) policy: Vec<String>,
    /// Compare schedulers live, with what the simulator predicts beside: run each at these shares of what all workers
    /// can serve, such as 0.3,0.6,0.8 or 0.3..0.9/0.1 [step: 0.3]. Workers then only wait for as long as a task takes.
    #[arg(long, value_name = "LOADS", conflicts_with_all = ["plan", "rate", "faults"], allow_hyphen_values = true)]
    pub(crate) sweep: Option<String>,
    /// With --sweep, how long tasks take: exp:10us and the like, as for `sluice sim`.
    #[arg(long, value_name = "WORKLOAD", default_value = "exp:10us", requires = "sweep")]
    pub(crate) workload: String,
    /// With --sweep, the rack that this machine stands for: rain, or a TOML file, as for `sluice sim`.
    #[arg(long, value_name = "TESTBED", default_value = "rain", requires = "sweep")]
    pub(crate) testbed: String,
    /// With --sweep, independent runs of each point; each is as long as --length says [default: 4s].
    #[arg(long, value_name = "COUNT", default_value_t = 5, requires = "sweep",
          value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) replications: u32,
    /// With --sweep, the number that fixes which tasks come when.
    #[arg(long, default_value_t = 1, requires = "sweep")]
    pub(crate) seed: u64,
    /// With --sweep, write what became of each task into a file for each run.
    #[arg(long, requires = "sweep")]
    pub(crate) each_task: bool,
}

/// The flags of `sluice reproduce` that run a plan's policies live whose load or workers change.
#[derive(Clone, Debug, Args)]
pub(crate) struct FollowArgs {
    /// Run the plan's adaptive policies with real packets, too, all times stretched, and compare how many tasks they let
    /// each worker hold with what the simulator does; where the plan has slow workers, compare the p99 latency, too.
    #[arg(long, conflicts_with_all = ["cause", "paper_length", "tasks", "replications", "list"])]
    pub(crate) live: bool,
    /// With --live, by how much all times are stretched.
    #[arg(long, value_name = "FACTOR", default_value_t = 1000, requires = "live",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) dilate: u32,
    /// With --live, how many live runs of each case.
    #[arg(long, value_name = "COUNT", default_value_t = 5, requires = "live",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// With --live, how many simulated runs of each case they are compared with.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, requires = "live",
          value_parser = clap::value_parser!(u32).range(20..=10_000))]
    pub(crate) seeds: u32,
    /// With --live, how long each run is before it is stretched: 200ms takes 200 s at --dilate 1000 [default: 200ms; where
    /// the plan has slow workers, as long as it says].
    #[arg(long, value_name = "SPAN", requires = "live", value_parser = units::span)]
    pub(crate) span: Option<Duration>,
    /// With --live, only these cases of the plan: one, several with commas between them, or the flag again.
    #[arg(long, value_name = "CASES", requires = "live", value_delimiter = ',')]
    pub(crate) case: Vec<String>,
    /// With --live, only these of its policies, likewise.
    #[arg(long, value_name = "POLICIES", requires = "live")]
    pub(crate) policy: Vec<String>,
}

impl FollowArgs {
    /// The policies that were asked for, one by one.
    pub(super) fn policies(&self) -> Vec<String> {
        self.policy.iter().flat_map(|listed| split(listed)).collect()
    }
}

/// Loads one by one, from a list or a range; a range without a step gets one.
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
