//! The settings of a server of many cores, and which of them are refused.

use std::num::NonZeroU32;

use sluice_cores::{CoresError, ServiceOfCores};
use sluice_host::orchestrator::{
    Assignment, Balancing, Branch, NicSettings, Priority, Ranking, SERVICES_MAX, ServiceId, Trigger,
};
use sluice_wire::Nanos;

use crate::NetError;
use crate::served::{LANE_DEPTH, lanes_of_service};
use crate::worker::options::WorkerOptions;

/// The default size of a coroutine's stack: RocksDB's deepest call takes a sixth of it.
const STACK_BYTES: usize = 256 * 1_024;
/// The settings of a server of many cores.
#[derive(Clone, Debug)]
pub struct LaneServerOptions {
    /// The settings that it shares with a worker of one core. Quota, slice and capacity are ignored, since
    /// each service has its own.
    pub worker: WorkerOptions,
    pub cores: usize,
    /// How many threads run the cores; 0 for one thread per core, or a single one if they are dilated.
    pub threads: usize,
    /// How many requests of a priority a core has room for.
    pub depth: u32,
    /// The rule that chooses a core.
    pub balancing: Balancing,
    /// Which services run on which cores.
    pub assignment: Assignment,
    /// The services, each with a slice of its own.
    pub services: Vec<LaneService>,
    /// The size of a coroutine's stack, in bytes.
    pub stack_bytes: usize,
    /// Makes the server a plain pool of threads, for comparison: its cores take tasks of all services from
    /// one queue, in order of arrival, and run each to its end.
    pub pool: bool,
    /// Whether idle cores run the service's batch work ([`Service::batch`](crate::service::Service)).
    pub batch: bool,
    /// How long a coroutine may run without yielding before the log names it, undilated.
    pub overdue_after: Nanos,
}

/// A service of such a server; its tasks come from its slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneService {
    pub slice: String,
    /// The priority of its tasks: 0 to 7; a larger number goes first.
    pub priority: Priority,
    /// The service's share, in tasks, among services of the same priority whose tasks wait for a core.
    pub weight: NonZeroU32,
}

impl LaneServerOptions {
    /// RingLeader's defaults (§6, §7.1): depth 4, JBSRQ with λ 1/5, all services on all cores.
    ///
    /// # Errors
    /// [`NetError::Cores`] if there cannot be so many cores.
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
            pool: false,
            batch: false,
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
        ];
        let found = refused.into_iter().find(|(_, is_wanted)| *is_wanted);
        let found = found.map(|(what, _)| NetError::NotForCores { what, why });
        let pooled = (self.pool && self.batch).then_some(NetError::NotForCores {
            what: "batch service in a pool",
            why: "a pool's threads run what they take to its end",
        });
        let moved = (self.pool && self.moves_cores()).then_some(NetError::NotForCores {
            what: "assignment of cores in a pool",
            why: "a pool's threads take tasks of all slices",
        });
        let too_many = self.services.len() > SERVICES_MAX;
        let too_many = too_many.then_some(NetError::NotForCores {
            what: "more than 64 services",
            why: "its mask has as many bits",
        });
        found.or(pooled).or(moved).or(too_many).map_or(Ok(()), Err)
    }

    /// The order in which services get free room: by priority; within a priority, by weight.
    pub(super) fn ranking(&self) -> Ranking {
        if self.services.iter().all(|of| of.weight == NonZeroU32::MIN) {
            return Ranking::ByPriority;
        }
        let mut priorities: Vec<Priority> = self.services.iter().map(|of| of.priority).collect();
        priorities.sort_unstable_by(|a, b| b.cmp(a));
        priorities.dedup();
        let share = |priority: &Priority| {
            let of = self.services.iter().enumerate().filter(|(_, of)| of.priority == *priority);
            let branch = |(number, of): (usize, &LaneService)| {
                let ranked = Ranking::Service(ServiceId::new(number)?);
                Some(Branch { weight: of.weight, ..Branch::new(ranked) })
            };
            Branch::new(Ranking::Weighted(of.filter_map(branch).collect()))
        };
        Ranking::Strict(priorities.iter().map(share).collect())
    }

    /// The dispatcher's services. A pool has one service for all tasks. If cores move, each service asks
    /// for more or fewer of them by its load.
    pub(super) fn behind(&self) -> Vec<ServiceOfCores> {
        let trigger = self.moves_cores().then(|| Trigger::congestion(self.moves_every()));
        let of = |(number, priority)| {
            Some(ServiceOfCores { service: ServiceId::new(number)?, priority, floor: 0, trigger })
        };
        let queues = if self.pool { 1 } else { self.services.len() };
        self.services.iter().map(|of| of.priority).enumerate().take(queues).filter_map(of).collect()
    }

    /// The NIC's settings. In a pool, a core takes the next task when it has finished one.
    pub(super) fn nic(&self) -> Result<NicSettings, NetError> {
        let paper = NicSettings::paper(self.cores).map_err(CoresError::from)?;
        if self.pool {
            return Ok(NicSettings { depth: 1, balancing: Balancing::GlobalJbsq, ..paper });
        }
        let (depth, balancing, ranking) = (self.depth, self.balancing, self.ranking());
        Ok(NicSettings { depth, balancing, ranking, ..paper })
    }

    /// Whether cores move between services.
    fn moves_cores(&self) -> bool {
        self.assignment != Assignment::CompleteShare
    }

    /// How often cores may move, at most (RingLeader §4.4), dilated.
    pub(super) fn moves_every(&self) -> Nanos {
        Nanos::from_micros(5).times(self.worker.dilation.max(1).into())
    }

    /// How many tasks of a service may wait here beyond the room of its cores. If cores move, as many as
    /// one more core would take, since waiting tasks are what asks for more cores.
    pub(super) fn beyond_room(&self) -> u32 {
        if self.moves_cores() { self.depth } else { 0 }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_one_priority_share_by_weight_and_priorities_go_before() {
        let of = |slice: &str, priority: u8, weight: u32| LaneService {
            slice: slice.to_owned(),
            priority: Priority::new(priority).expect("legal"),
            weight: NonZeroU32::new(weight).expect("not zero"),
        };
        let options = |services| {
            let worker = WorkerOptions::new("127.0.0.1:1").expect("a legal address");
            LaneServerOptions::new(worker, 2, services).expect("a few cores")
        };
        let even = options(vec![of("a", 0, 1), of("b", 1, 1)]);
        assert_eq!(even.ranking(), Ranking::ByPriority);
        let weighed = options(vec![of("a", 0, 1), of("b", 1, 2), of("c", 0, 3)]);
        let leaf = |number: usize, weight| Branch {
            weight: NonZeroU32::new(weight).expect("not zero"),
            ..Branch::new(Ranking::Service(ServiceId::new(number).expect("few")))
        };
        let shared = |branches| Branch::new(Ranking::Weighted(branches));
        let expected = vec![shared(vec![leaf(1, 2)]), shared(vec![leaf(0, 1), leaf(2, 3)])];
        assert_eq!(weighed.ranking(), Ranking::Strict(expected));
    }
}
