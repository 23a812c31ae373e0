//! How a testbed's servers of many cores look to the switch: as lanes, eight tasks each, of every service.

use std::ops::Range;

use sluice_host::orchestrator::{
    CoreId, Nic, NicSettings, OrchestratorError, PRIORITIES, Priority, ServiceId,
};
use sluice_wire::Nanos;
use sluice_wire::sizes::QUOTA_MAX;
use sluice_workload::Class;

use crate::{CoreTimes, Testbed};

/// Workers that fit a switch's memory.
const LANES_MAX: u32 = 4_096;

/// How a testbed's servers of many cores are laid out.
#[derive(Clone, Debug)]
pub struct CoresLayout {
    /// Servers of the rack.
    pub servers: u32,
    /// Cores of each server.
    pub cores_each: u32,
    /// Tasks of a priority that a core has room for.
    pub depth: u32,
    /// Lanes of each service of a server.
    pub lanes_each: u32,
    /// The services' priorities, and their classes' names.
    pub services: Vec<(Priority, String)>,
    /// What a core's work takes.
    pub times: CoreTimes,
    /// What a packet received and a reply sent cost a core.
    pub packets: Nanos,
}

impl CoresLayout {
    /// None where workers are no cores of servers.
    pub fn of(testbed: &Testbed, classes: &[Class]) -> Option<Self> {
        let Testbed { servers, workers, cores, worker, .. } = *testbed;
        let depth = servers.depth?;
        let (servers, cores_each) = (servers.count.into(), workers / u32::from(servers.count).max(1));
        let lanes_each = (cores_each * depth).div_ceil(QUOTA_MAX.into());
        let (times, packets) = (cores, worker.receive + worker.send);
        Some(Self { servers, cores_each, depth, lanes_each, services: services(classes), times, packets })
    }

    /// Why there cannot be such servers, in a line.
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

    /// Lanes of all servers, workers to the switch.
    pub fn lanes(&self) -> u32 {
        self.servers * self.lanes_each * self.services.len() as u32
    }

    /// A worker's server, and its service.
    pub fn place_of(&self, worker: usize) -> (usize, usize) {
        let (each, servers) = (self.lanes_each as usize, self.servers as usize);
        (worker / each % servers, worker / each / servers)
    }

    /// A server's workers that serve one of its services.
    pub fn workers_of(&self, server: usize, service: usize) -> Range<usize> {
        let each = self.lanes_each as usize;
        let first = (service * self.servers as usize + server) * each;
        first..first + each
    }

    /// A NIC all of whose services run on all of its cores.
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

    /// What a core may hold at most.
    pub fn held_max(&self) -> u32 {
        self.nic_settings().map_or(0, |of| of.balancing.held_max(of.depth))
    }

    fn nic_settings(&self) -> Result<NicSettings, String> {
        let paper = NicSettings::paper(self.cores_each as usize).map_err(|why| why.to_string())?;
        Ok(NicSettings { depth: self.depth, ..paper })
    }
}

/// A service of a server by its place.
pub fn id(service: usize) -> ServiceId {
    ServiceId::new(service).expect("there are as many services as priorities at most")
}

/// Classes of one priority are a service: the most important first.
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

/// The classes' priorities, a larger number first: a workload's 0 is its most urgent, and a class without one
/// is as urgent as can be.
pub fn priorities(classes: &[Class]) -> impl Iterator<Item = u8> {
    classes.iter().map(|class| PRIORITIES as u8 - 1 - class.priority.unwrap_or(0).min(PRIORITIES as u8 - 1))
}
