//! A testbed's servers of many cores as the switch sees them: as lanes of every service, with eight tasks
//! each.

use std::ops::Range;

use sluice_host::orchestrator::{
    CoreId, Nic, NicSettings, OrchestratorError, PRIORITIES, Priority, ServiceId,
};
use sluice_wire::Nanos;
use sluice_wire::sizes::QUOTA_MAX;
use sluice_workload::Class;

use crate::{CoreTimes, Testbed};

/// The most workers that fit a switch's memory.
const LANES_MAX: u32 = 4_096;

/// The layout of a testbed's servers of many cores.
#[derive(Clone, Debug)]
pub struct CoresLayout {
    /// Servers of the rack.
    pub servers: u32,
    /// Cores of each server.
    pub cores_each: u32,
    /// How many tasks of one priority a core has room for.
    pub depth: u32,
    /// Lanes of each service of a server.
    pub lanes_each: u32,
    /// The priority of each service, and the names of its classes.
    pub services: Vec<(Priority, String)>,
    /// The costs of a core's work.
    pub times: CoreTimes,
    /// The time of a core to receive a packet and send a reply.
    pub packets: Nanos,
}

impl CoresLayout {
    /// The layout of a testbed; `None` if its workers are not cores of servers.
    pub fn of(testbed: &Testbed, classes: &[Class]) -> Option<Self> {
        let Testbed { servers, workers, cores, worker, .. } = *testbed;
        let depth = servers.depth?;
        let (servers, cores_each) = (servers.count.into(), workers / u32::from(servers.count).max(1));
        let lanes_each = (cores_each * depth).div_ceil(QUOTA_MAX.into());
        let (times, packets) = (cores, worker.receive + worker.send);
        Some(Self { servers, cores_each, depth, lanes_each, services: services(classes), times, packets })
    }

    /// Why such servers are impossible, in one line; `None` if they are possible.
    pub fn complaint(&self) -> Option<String> {
        let lanes = self.lanes();
        let too_many = lanes > LANES_MAX;
        let too_many = too_many.then(|| {
            format!("servers.depth makes {lanes} lanes of 8 tasks, and a switch has {LANES_MAX}: lower it")
        });
        too_many.or_else(|| self.idle_nic().err())
    }

    /// Cores of all servers.
    pub const fn cores(&self) -> u32 {
        self.servers * self.cores_each
    }

    /// Lanes of all servers, which are workers to the switch.
    pub fn lanes(&self) -> u32 {
        self.servers * self.lanes_each * self.services.len() as u32
    }

    /// The server of a worker, and its service.
    pub fn place_of(&self, worker: usize) -> (usize, usize) {
        let (each, servers) = (self.lanes_each as usize, self.servers as usize);
        (worker / each % servers, worker / each / servers)
    }

    /// The workers of a server that serve this service.
    pub fn workers_of(&self, server: usize, service: usize) -> Range<usize> {
        let each = self.lanes_each as usize;
        let first = (service * self.servers as usize + server) * each;
        first..first + each
    }

    /// A NIC on all of whose cores all services run.
    pub fn idle_nic(&self) -> Result<Nic, String> {
        let why = |why: OrchestratorError| why.to_string();
        let mut nic = Nic::new(&self.nic_settings()?).map_err(|why| why.to_string())?;
        for (service, (priority, _)) in self.services.iter().enumerate() {
            nic.register_service_without_address(id(service), *priority).map_err(why)?;
            for core in 0..self.cores_each {
                nic.enable_service(id(service), CoreId(core as u16)).map_err(why)?;
            }
        }
        Ok(nic)
    }

    /// The most tasks that a core may hold.
    pub fn held_max(&self) -> u32 {
        self.nic_settings().map_or(0, |of| of.balancing.held_max(of.depth))
    }

    fn nic_settings(&self) -> Result<NicSettings, String> {
        let paper = NicSettings::paper(self.cores_each as usize).map_err(|why| why.to_string())?;
        Ok(NicSettings { depth: self.depth, ..paper })
    }
}

/// The id of a server's service with this index.
pub fn id(service: usize) -> ServiceId {
    ServiceId::new(service).expect("there are as many services as priorities at most")
}

/// The services: the classes of one priority are one service. The most important comes first.
fn services(classes: &[Class]) -> Vec<(Priority, String)> {
    let mut services: Vec<(Priority, String)> = Vec::new();
    for (class, priority) in classes.iter().zip(priorities(classes)) {
        let Ok(priority) = Priority::new(priority) else { continue };
        match services.iter_mut().find(|(known, _)| *known == priority) {
            Some((_, names)) => *names = format!("{names}+{}", class.name),
            None => services.push((priority, class.name.clone())),
        }
    }
    services.sort_by(|(a, _), (b, _)| b.cmp(a));
    services
}

/// The classes' priorities, where a larger number goes first. A workload's 0 is its most urgent priority,
/// and a class without one is as urgent.
pub fn priorities(classes: &[Class]) -> impl Iterator<Item = u8> {
    classes.iter().map(|class| PRIORITIES as u8 - 1 - class.priority.unwrap_or(0).min(PRIORITIES as u8 - 1))
}
