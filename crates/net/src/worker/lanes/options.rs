//! How a server of many cores is set up, and what it refuses.

use sluice_cores::CoresError;
use sluice_host::orchestrator::{Assignment, Balancing, NicSettings, Priority, SERVICES_MAX};
use sluice_wire::Nanos;

use crate::NetError;
use crate::served::{LANE_DEPTH, lanes_of_service};
use crate::worker::options::WorkerOptions;

/// A coroutine's stack, unless it is said otherwise: RocksDB's deepest call takes a sixth of it.
const STACK_BYTES: usize = 256 * 1_024;
/// How a server of many cores is set up.
#[derive(Clone, Debug)]
pub struct LaneServerOptions {
    /// What it has in common with a worker of one core. Its quota, slice and capacity are its services'.
    pub worker: WorkerOptions,
    /// How many cores.
    pub cores: usize,
    /// The threads that run them; 0: one each, or one for all if they are dilated.
    pub threads: usize,
    /// Requests of a priority that a core has room for.
    pub depth: u32,
    /// By what a core is chosen.
    pub balancing: Balancing,
    /// Which services run on which cores.
    pub assignment: Assignment,
    /// The services, each with a slice of its own.
    pub services: Vec<LaneService>,
    /// The size of a coroutine's stack.
    pub stack_bytes: usize,
    /// How long a coroutine may run without a yield before it is named in the log, undilated.
    pub overdue_after: Nanos,
}

/// A service of such a server: its tasks are those that its slice gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneService {
    /// The slice.
    pub slice: String,
    /// How important its tasks are: 0 to 7, a larger number goes first.
    pub priority: Priority,
}

impl LaneServerOptions {
    /// RingLeader's defaults (§6, §7.1): depth 4, JBSRQ with λ 1/5, all services on all cores.
    ///
    /// # Errors
    /// [`NetError::Cores`] if there cannot be so many.
    pub fn new(worker: WorkerOptions, cores: usize, services: Vec<LaneService>) -> Result<Self, NetError> {
        let balancing = NicSettings::paper(cores).map_err(CoresError::from)?.balancing;
        Ok(Self {
            worker,
            cores,
            threads: 0,
            depth: LANE_DEPTH,
            balancing,
            assignment: Assignment::CompleteShare,
            services,
            stack_bytes: STACK_BYTES,
            overdue_after: Nanos::from_millis(10),
        })
    }

    pub(super) fn check(&self) -> Result<(), NetError> {
        let why = "its tokens follow the room that its cores have";
        let worker = &self.worker;
        let refused = [
            ("adaptive depth", worker.agent.is_some()),
            ("early tokens", worker.early),
            ("patience", worker.patience > 0),
            ("costs of a testbed", worker.costs.is_some()),
        ];
        let found = refused.into_iter().find(|(_, is_wanted)| *is_wanted);
        let found = found.map(|(what, _)| NetError::NotForCores { what, why });
        let too_many = self.services.len() > SERVICES_MAX;
        let too_many = too_many.then_some(NetError::NotForCores {
            what: "more than 64 services",
            why: "its mask has as many bits",
        });
        found.or(too_many).map_or(Ok(()), Err)
    }

    pub(super) fn lanes(&self) -> usize {
        lanes_of_service(self.cores, self.depth)
    }

    pub(super) fn threads(&self) -> usize {
        match self.threads {
            0 if self.worker.dilation > 1 => 1,
            0 => self.cores,
            threads => threads,
        }
    }
}
