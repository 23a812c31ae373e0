//! One server behind its clients: how its requests get to its cores (RingLeader §2, §7).
//!
//! `ringleader` is the NIC and the cores of `sluice_host::orchestrator`. The others are what the paper
//! compares it with: a software dispatcher (Shinjuku), random queues (RSS), also with stealing and with a
//! core allocator (Caladan-like), and ideal decentralized orchestrators. A testbed's workers are the
//! server's cores; the own core of a dispatcher or allocator is an additional one, as in the paper. The
//! costs are the testbed's `[cores]`. Left out: transports, caches, memory, and the network except for a
//! fixed distance.

mod batch;
mod caladan;
mod dispatcher;
mod orchestration;
mod ringleader;
mod run;
mod spread;

use core::sync::atomic::{AtomicBool, Ordering};

use caladan::Caladan;
use dispatcher::Dispatcher;
pub use orchestration::{Orchestration, OrchestrationError, Preempts};
use ringleader::RingLeader;
use run::{Orchestrates, ServerRun};
use sluice_events::dice::Dice;
use sluice_host::orchestrator::{
    Assignment, Balancing, CORES_MAX, NicSettings, OrchestratorSetupError, PRIORITIES, SERVICES_MAX,
    SchedulingOrder,
};
use sluice_stats::{Counts, Measured, Recorder};
use sluice_testbed::Testbed;
use sluice_wire::Nanos;
use sluice_workload::{Class, Request};
use spread::SpreadQueues;

/// A server and the tasks that it serves.
#[derive(Clone, Copy, Debug)]
pub struct OrchestratedServer<'p> {
    /// How the server's requests get to its cores.
    pub orchestration: Orchestration,
    /// The server's cores, the costs, and the distance of its clients.
    pub testbed: &'p Testbed,
    pub classes: &'p [Class],
}

impl OrchestratedServer<'_> {
    /// Why it cannot be simulated, in one line; `None` if it can.
    pub fn complaint(&self) -> Option<String> {
        let cores = self.testbed.workers as usize;
        if self.testbed.cores.batch
            && let Some(why) = self.no_batch()
        {
            return Some(why);
        }
        match self.orchestration {
            Orchestration::RingLeader { .. } if cores > CORES_MAX => {
                Some(format!("a NIC has {CORES_MAX} cores at most: lower `workers` in the testbed to that"))
            }
            Orchestration::RingLeader { balancing, .. } => {
                let most = if balancing == Balancing::PerServiceJbsq { PRIORITIES } else { SERVICES_MAX };
                let services = self.classes.len();
                let too_many = || format!("{services} classes are too many services: this NIC has {most}");
                (services > most)
                    .then(too_many)
                    .or_else(|| self.ringleader().err().map(|why| why.to_string()))
            }
            Orchestration::DIdeal { orchestrators } => {
                let (orchestrators, fits) =
                    (orchestrators as usize, cores.is_multiple_of(orchestrators as usize));
                (!fits).then(|| {
                    format!("d-ideal:{orchestrators}: {cores} workers do not go into as many equal groups")
                })
            }
            _ => None,
        }
    }

    /// Runs one replication; `None` if it was stopped.
    pub fn run(
        &self,
        requests: impl IntoIterator<Item = Request>,
        recorder: Recorder,
        (seed, replication): (u64, u32),
        stop: &AtomicBool,
    ) -> Option<Measured> {
        let dice = Dice::named(seed, "policy", replication);
        let (testbed, cores) = (self.testbed, self.testbed.workers as usize);
        match self.orchestration {
            Orchestration::RingLeader { .. } => self.drive(self.ringleader().ok()?, requests, recorder, stop),
            Orchestration::Shinjuku { preempts } => {
                self.drive(Dispatcher::new(testbed, self.classes, preempts), requests, recorder, stop)
            }
            Orchestration::Rss { flows } => {
                self.drive(SpreadQueues::new(cores, 1, flows, dice), requests, recorder, stop)
            }
            Orchestration::Stealing => {
                let spread = SpreadQueues::new(cores, 1, None, dice).stealing(testbed.cores.steal);
                self.drive(spread, requests, recorder, stop)
            }
            Orchestration::DIdeal { orchestrators } => {
                let groups = orchestrators as usize;
                self.drive(SpreadQueues::new(groups, cores / groups, None, dice), requests, recorder, stop)
            }
            Orchestration::Caladan => self.drive(Caladan::new(testbed, dice), requests, recorder, stop),
        }
    }

    fn drive(
        &self,
        mut policy: impl Orchestrates,
        requests: impl IntoIterator<Item = Request>,
        mut recorder: Recorder,
        stop: &AtomicBool,
    ) -> Option<Measured> {
        let (cores, distance) = (self.testbed.workers as usize, self.testbed.zero_load());
        let mut run = ServerRun::new(&mut recorder, cores, distance, self.testbed.cores.batch);
        let gauges = run.drive(&mut policy, requests, stop);
        let counts = Counts::default();
        (!stop.load(Ordering::Relaxed)).then(|| recorder.finish(counts, gauges))
    }

    /// Why no batch service can run beside the others, in one line; `None` if one can.
    fn no_batch(&self) -> Option<String> {
        let times = &self.testbed.cores;
        match self.orchestration {
            Orchestration::RingLeader { .. } if times.yields == Nanos(0) => {
                Some("a batch service that never yields keeps its cores: write cores.yields, too".to_owned())
            }
            Orchestration::RingLeader { .. } if self.classes.len() >= SERVICES_MAX => {
                Some(format!("a batch service is the NIC's {SERVICES_MAX}th at most: leave a class out"))
            }
            Orchestration::Caladan if times.reallocate == Nanos(0) => {
                Some("caladan moves no cores for a batch service: write cores.reallocate, too".to_owned())
            }
            Orchestration::RingLeader { .. } | Orchestration::Caladan => None,
            other => Some(format!("{other} runs no batch service: leave cores.batch out")),
        }
    }

    /// RingLeader's NIC and cores, with the settings of this server.
    fn ringleader(&self) -> Result<RingLeader, OrchestratorSetupError> {
        let mut settings = NicSettings::paper(self.testbed.workers as usize)?;
        let (mut shares, mut times) = (Assignment::CompleteShare, self.testbed.cores);
        if let Orchestration::RingLeader { depth, balancing, passes_over, assignment, yields } =
            self.orchestration
        {
            (shares, times.yields) = (assignment, yields.unwrap_or(times.yields));
            (settings.depth, settings.balancing) = (depth, balancing);
            if !passes_over {
                settings.order = SchedulingOrder::PushInFirstOut;
            }
        }
        RingLeader::new(times, self.classes, &settings, shares)
    }
}
