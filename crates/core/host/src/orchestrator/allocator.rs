//! Which services run on which cores (RingLeader §4.4): three strategies, driven by load hints.
//!
//! - *Complete-share*: all services run on all cores. Hints change nothing.
//! - *Dedicated*: a core runs one service. On a hint for more cores, a service gets a free core, or a core
//!   of the least important service that is less important and above its floor. On a hint for fewer, the
//!   service gives a core up, to the batch service if there is one.
//! - *Hybrid*: a service has cores of its own, and all services run on the shared cores, so that a burst
//!   needs no move. On a hint for more cores, a shared core becomes the service's own as long as more than
//!   a stated number of cores are shared. On a hint for fewer, one of the service's own cores becomes
//!   shared. The paper says what both kinds of cores are for, but not how a hint moves the border: this is
//!   our reading.
//!
//! A core moves at most once in an interval (5 µs). If a hint comes too early or finds no core, the
//! allocator only re-arms the monitor: if the load stays, the next check brings the next hint.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use sluice_wire::Nanos;

use super::error::OrchestratorSetupError;
use super::ids::{CORES_MAX, CoreId, Priority, SERVICES_MAX, ServiceId, bits};
use super::monitor::{Hint, LoadHint};

/// How cores are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// Every core runs all services.
    CompleteShare,
    /// Every core runs one service.
    Dedicated,
    /// Some cores run one service each; at least this many run all services.
    Hybrid(usize),
}

impl FromStr for Assignment {
    type Err = OrchestratorSetupError;

    /// Reads `shared`, `dedicated` or `hybrid=4`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "shared" => return Ok(Self::CompleteShare),
            "dedicated" => return Ok(Self::Dedicated),
            _ => {}
        }
        let shared = text.strip_prefix("hybrid=").and_then(|shared| shared.parse().ok());
        let shared = shared.filter(|shared| (1..=CORES_MAX).contains(shared));
        shared.map(Self::Hybrid).ok_or(OrchestratorSetupError::NoAssignment)
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CompleteShare => f.write_str("shared"),
            Self::Dedicated => f.write_str("dedicated"),
            Self::Hybrid(shared) => write!(f, "hybrid={shared}"),
        }
    }
}

/// A service that the allocator assigns cores to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignedService {
    pub service: ServiceId,
    /// Decides which service may take cores from which.
    pub priority: Priority,
    /// Cores that the service always keeps, unless all cores are shared. At least one if no core is shared;
    /// the batch service may have none.
    pub floor: usize,
}

/// How an allocator is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatorSettings {
    /// How cores are assigned.
    pub assignment: Assignment,
    pub cores: usize,
    pub services: Vec<AssignedService>,
    /// With dedicated cores: the service that gets the cores that no other wants.
    pub batch: Option<ServiceId>,
    /// The shortest time between two moves of one core.
    pub moves_every: Nanos,
}

/// A call that the allocator makes to the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCall {
    /// [`enable_service`](super::Nic::enable_service).
    EnableService(ServiceId, CoreId),
    /// [`disable_service`](super::Nic::disable_service).
    DisableService(ServiceId, CoreId),
    /// [`rearm_load_monitor`](super::Nic::rearm_load_monitor).
    RearmLoadMonitor(ServiceId),
}

/// Which service has which core.
#[derive(Clone, Debug)]
pub struct CoreAllocator {
    settings: AllocatorSettings,
    owners: Vec<CoreUse>,
    /// When each core moved last.
    moved: Vec<Option<Nanos>>,
    /// All services, as a mask.
    all: u64,
    moves: u64,
}

/// The use of a core: one service's own, shared, or free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreUse {
    /// The core belongs to no service.
    Spare,
    /// The core belongs to this service alone.
    Own(ServiceId),
    Shared,
}

impl CoreAllocator {
    /// Makes the first assignment: every service gets its floor, starting with the first core; the strategy
    /// assigns the other cores. Passes the calls that set up the NIC to `calls`.
    pub fn new(
        settings: AllocatorSettings,
        mut calls: impl FnMut(HostCall),
    ) -> Result<Self, OrchestratorSetupError> {
        let cores = settings.cores;
        if cores == 0 || cores > CORES_MAX {
            return Err(OrchestratorSetupError::Cores(cores));
        }
        let rest = match settings.assignment {
            Assignment::CompleteShare | Assignment::Hybrid(_) => CoreUse::Shared,
            Assignment::Dedicated => settings.batch.map_or(CoreUse::Spare, CoreUse::Own),
        };
        let all = settings.services.iter().fold(0, |all, known| all | known.service.bit());
        let mut allocator =
            Self { owners: vec![CoreUse::Spare; cores], moved: vec![None; cores], all, moves: 0, settings };
        let floors = allocator.floors()?;
        for core in 0..cores {
            let owner = floors.get(core).map_or(rest, |service| CoreUse::Own(*service));
            allocator.give(core, owner, &mut calls);
        }
        Ok(allocator)
    }

    /// Handles a load hint. Passes the calls for the NIC to `calls`.
    pub fn hint(&mut self, hint: LoadHint, now: Nanos, mut calls: impl FnMut(HostCall)) {
        let LoadHint { service, hint } = hint;
        let change = match hint {
            Hint::ScaleUp => self.core_for(service, now).map(|core| (core, CoreUse::Own(service))),
            Hint::ScaleDown => self.core_of(service, now).map(|core| (core, self.given_back())),
        };
        if let Some((core, owner)) = change.filter(|(core, owner)| self.owners[*core] != *owner) {
            self.give(core, owner, &mut calls);
            self.moved[core] = Some(now);
            self.moves += 1;
        }
        calls(HostCall::RearmLoadMonitor(service));
    }

    /// The use of a core; none if there is no such core.
    pub fn owner(&self, core: CoreId) -> Option<CoreUse> {
        self.owners.get(core.index()).copied()
    }

    /// How many cores a service has to itself.
    pub fn own_cores(&self, service: ServiceId) -> usize {
        self.owners.iter().filter(|owner| **owner == CoreUse::Own(service)).count()
    }

    /// How many times a core changed its use.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// For each core that a floor reserves, in order, the service that keeps it.
    fn floors(&self) -> Result<Vec<ServiceId>, OrchestratorSetupError> {
        let settings = &self.settings;
        let shared = match settings.assignment {
            Assignment::CompleteShare => return Ok(Vec::new()),
            Assignment::Dedicated => 0,
            Assignment::Hybrid(shared) => shared.max(1),
        };
        let each = settings.services.iter().map(|known| (known.service, self.floor(known)));
        let floors: Vec<ServiceId> =
            each.flat_map(|(service, floor)| core::iter::repeat_n(service, floor)).collect();
        let (cores, floor) = (settings.cores, floors.len() + shared);
        if floor > cores { Err(OrchestratorSetupError::Assignment { cores, floor }) } else { Ok(floors) }
    }

    /// A core that a service may have.
    fn core_for(&self, service: ServiceId, now: Nanos) -> Option<usize> {
        match self.settings.assignment {
            Assignment::CompleteShare => None,
            Assignment::Dedicated => {
                self.movable(CoreUse::Spare, now).or_else(|| self.core_of_less_important(service, now))
            }
            Assignment::Hybrid(least) => {
                let shared = self.owners.iter().filter(|owner| **owner == CoreUse::Shared).count();
                (shared > least.max(1)).then(|| self.movable(CoreUse::Shared, now)).flatten()
            }
        }
    }

    /// A core that the service can give up.
    fn core_of(&self, service: ServiceId, now: Nanos) -> Option<usize> {
        let least = self.known(service).map_or(0, |known| self.floor(known));
        (self.own_cores(service) > least).then(|| self.movable(CoreUse::Own(service), now)).flatten()
    }

    fn core_of_less_important(&self, service: ServiceId, now: Nanos) -> Option<usize> {
        let priority = self.known(service)?.priority;
        let mut below = self.settings.services.iter().filter(|known| known.priority < priority);
        let least_important = |from: Option<(Priority, usize)>, known: &AssignedService| {
            let core = self.core_of(known.service, now).map(|core| (known.priority, core));
            [from, core].into_iter().flatten().min()
        };
        below.by_ref().fold(None, least_important).map(|(_, core)| core)
    }

    fn given_back(&self) -> CoreUse {
        match self.settings.assignment {
            Assignment::Dedicated => self.settings.batch.map_or(CoreUse::Spare, CoreUse::Own),
            Assignment::CompleteShare | Assignment::Hybrid(_) => CoreUse::Shared,
        }
    }

    /// The last core with this use that has not moved for an interval.
    fn movable(&self, owner: CoreUse, now: Nanos) -> Option<usize> {
        let rests =
            |core: &usize| self.moved[*core].is_none_or(|at| now.since(at) >= self.settings.moves_every);
        (0..self.owners.len()).rev().filter(|core| self.owners[*core] == owner).find(rests)
    }

    /// Changes a core's use: first disables what no longer runs there, then enables what now does.
    fn give(&mut self, core: usize, owner: CoreUse, calls: &mut impl FnMut(HostCall)) {
        let (before, after) = (self.mask(self.owners[core]), self.mask(owner));
        self.owners[core] = owner;
        let core = CoreId(core as u16);
        let ids = |mask: u64| bits(mask).filter_map(ServiceId::new);
        ids(before & !after).for_each(|service| calls(HostCall::DisableService(service, core)));
        ids(after & !before).for_each(|service| calls(HostCall::EnableService(service, core)));
    }

    fn mask(&self, owner: CoreUse) -> u64 {
        match owner {
            CoreUse::Spare => 0,
            CoreUse::Own(service) => service.bit(),
            CoreUse::Shared => self.all,
        }
    }

    /// How many cores a service keeps.
    fn floor(&self, known: &AssignedService) -> usize {
        let keeps_one =
            self.settings.assignment == Assignment::Dedicated && self.settings.batch != Some(known.service);
        known.floor.max(keeps_one.into())
    }

    fn known(&self, service: ServiceId) -> Option<&AssignedService> {
        self.settings.services.iter().take(SERVICES_MAX).find(|known| known.service == service)
    }
}
