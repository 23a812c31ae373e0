//! Where the processes of a rack report their metrics, and the names that they have there.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use sluice_net::metrics::ReportedProcesses;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::plan::{Plan, Target};
use sluice_system::{Attempt, advice};

/// The folder below the rack's state that has a socket for each process.
const FOLDER: &str = "metrics";

/// The sockets of all processes that a plan has.
pub(super) struct MetricReports(Vec<(String, PathBuf)>);

impl MetricReports {
    /// Makes a folder that only this user can enter. Sockets of an earlier run are replaced as processes
    /// start, and nobody answers at them until then.
    pub(super) fn of(plan: &Plan) -> Outcome<Self> {
        let folder = plan.state.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|why| {
            let (folder, helps) = (folder.display(), advice(Attempt::Write, &why));
            Failure::bad_input(format!("{folder} (in `state`) cannot be made: {why}; {helps}"))
        })?;
        let names = processes(plan).into_iter().map(|process| process.to_string());
        Ok(Self(
            (1..)
                .zip(names)
                .map(|(number, name): (u32, _)| (name, folder.join(number.to_string())))
                .collect(),
        ))
    }

    /// What the process of this name is told.
    pub(super) fn args(&self, process: &str) -> Vec<String> {
        let known = self.0.iter().find(|(name, _)| name == process);
        known.map_or_else(Vec::new, |(_, path)| {
            vec!["--report-metrics".to_owned(), path.display().to_string()]
        })
    }

    /// What gives the values of all of them.
    pub(super) fn source(&self) -> ReportedProcesses {
        ReportedProcesses::new(self.0.clone())
    }
}

/// The processes of a plan's rack, by the names that plans use to kill them.
fn processes(plan: &Plan) -> Vec<Target> {
    let apart = plan.switch.controller_apart.then_some(Target::Controller);
    let spines = (2..=plan.spines()).map(Target::Spine);
    let leaves = (1..=plan.racks.map_or(0, |racks| racks.count)).map(Target::Leaf);
    let servers = plan.servers().into_iter().map(Target::Server);
    let workers = plan.workers.iter().map(|worker| Target::Worker(worker.name.clone()));
    let first = [Target::Switch].into_iter().chain(apart);
    first.chain(spines).chain(leaves).chain(servers).chain(workers).collect()
}
