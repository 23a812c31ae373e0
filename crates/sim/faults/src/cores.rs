//! The cores behind a server's lanes in fault runs: the real logic of a NIC (`host::orchestrator`), and
//! cores that serve one task after the other, the most important first.
//!
//! Left out: slices of time and coroutines, which change when a task ends but nothing of what lanes
//! promise; and the rings between dispatcher and cores, which have tests of their own.

use std::collections::VecDeque;
use std::mem;

use sluice_events::dice::Dice;
use sluice_host::orchestrator::{CoreId, Nic, NicSettings, Priority, RequestHandle, ServiceId};
use sluice_host::worker::{Lanes, QUOTA_MAX};
use sluice_nodes::TaskRun;
use sluice_wire::Nanos;

/// Bytes that a descriptor takes of the NIC's buffer.
const DESCRIPTOR_BYTES: u32 = 64;

/// A seed's settings for servers of many cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoresScenario {
    pub(super) servers: usize,
    /// Cores of each server.
    pub(super) cores: usize,
    /// How many tasks of one priority a core has room for.
    depth: u32,
    /// Lanes of a server for each slice, which is one service.
    pub(super) lanes: usize,
}

impl CoresScenario {
    /// Drawn from a stream of its own, like all settings that a plain rack does not have.
    pub(super) fn of(seed: u64) -> Self {
        let dice = &mut Dice::named(seed, "servers of many cores", 0);
        Self {
            servers: dice.pick(&[1, 2, 2]) as usize,
            cores: dice.between(1, 4) as usize,
            depth: dice.between(1, 4) as u32,
            lanes: dice.pick(&[1, 2, 2, 3]) as usize,
        }
    }

    /// These settings with one server.
    pub(super) const fn alone(self) -> Self {
        Self { servers: 1, ..self }
    }

    /// Lanes of a server that serves so many slices.
    pub(super) const fn lanes_of_server(&self, slices: usize) -> usize {
        self.lanes * slices
    }

    /// Lanes of all servers.
    pub(super) const fn lanes_of_all(&self, slices: usize) -> usize {
        self.servers * self.lanes_of_server(slices)
    }

    /// The most tasks of one service that a server has room for.
    pub(super) fn room_max(&self) -> u32 {
        (self.cores as u32 * self.depth).min(self.lanes as u32 * u32::from(QUOTA_MAX))
    }
}

/// A task on its way through the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoreTask {
    pub(super) worker: usize,
    pub(super) run: TaskRun,
    service: ServiceId,
}

/// One server: its lanes' memory, its NIC and its cores.
#[derive(Debug)]
pub(super) struct ServerCores {
    /// The lanes' machines are stored with their workers, and are swapped in here for what they do
    /// together.
    pub(super) lanes: Lanes,
    nic: Nic,
    cores: Vec<Core>,
    /// The tasks that the NIC holds, by their handles.
    offered: Vec<(RequestHandle, CoreTask)>,
    handles: u64,
    services: usize,
}

#[derive(Debug, Default)]
struct Core {
    running: Option<CoreTask>,
    waits: VecDeque<CoreTask>,
}

impl ServerCores {
    /// A server with idle cores; the service of each slice runs on all of them.
    pub(super) fn new(scenario: &CoresScenario, slices: usize) -> Self {
        let CoresScenario { cores, depth, .. } = *scenario;
        let settings = NicSettings { depth, ..NicSettings::paper(cores).expect("a few cores") };
        let mut nic = Nic::new(&settings).expect("the paper's settings");
        for slice in 0..slices {
            let (service, priority) = (service(slice), Priority::new(slice as u8).expect("few slices"));
            let mut call = nic.register_service_without_address(service, priority);
            for core in 0..cores {
                call = call.and_then(|()| nic.enable_service(service, CoreId(core as u16)));
            }
            call.expect("a new service");
        }
        Self {
            lanes: Lanes::new(scenario.lanes_of_server(slices)),
            nic,
            cores: (0..cores).map(|_| Core::default()).collect(),
            offered: Vec::new(),
            handles: 0,
            services: slices,
        }
    }

    /// Gives a lane's task to the NIC, which finds a core for it.
    pub(super) fn offer(&mut self, worker: usize, run: TaskRun, now: Nanos) -> Result<(), String> {
        let service = service(worker % self.services);
        self.handles += 1;
        let handle = RequestHandle(self.handles);
        self.offered.push((handle, CoreTask { worker, run, service }));
        let taken = self.nic.receive_of(service, (handle, DESCRIPTOR_BYTES), now, |_| ());
        taken.map_err(|why| format!("a server's NIC refuses task {}: {why}", run.task))
    }

    /// Gives tasks to cores that have room; returns a task that a core begins.
    pub(super) fn begin_next(&mut self, now: Nanos) -> Option<CoreTask> {
        while let Some(descriptor) = self.nic.dispatch(now) {
            let Some(request) = descriptor.request else { continue };
            let place = self.offered.iter().position(|(handle, _)| *handle == request.handle)?;
            self.cores[descriptor.core.index()].waits.push_back(self.offered.swap_remove(place).1);
        }
        self.cores.iter_mut().find_map(|core| core.begin(now))
    }

    /// A run of a lane has ended: frees its core. An error if no core runs it.
    pub(super) fn ended(&mut self, worker: usize, slot: u64) -> Result<CoreTask, String> {
        let is_it = |task: &CoreTask| (task.worker, task.run.slot) == (worker, slot);
        let core = self.cores.iter().position(|core| core.running.as_ref().is_some_and(is_it));
        let core = core.ok_or_else(|| format!("worker {worker}'s run {slot} ended on no core"))?;
        let task = mem::take(&mut self.cores[core].running).ok_or("it ran")?;
        let heard = self.nic.load_feedback(task.service, CoreId(core as u16), 1);
        heard.map_err(|why| format!("a server's NIC refuses feedback: {why}"))?;
        Ok(task)
    }

    /// How many more tasks of a slice the cores have room for.
    pub(super) fn room(&self, slice: usize) -> u32 {
        let service = service(slice);
        self.nic.balancer().room(service).saturating_sub(self.nic.waiting(service))
    }

    /// How many tasks wait or run.
    pub(super) fn held(&self) -> usize {
        let on_cores = |core: &Core| core.waits.len() + usize::from(core.running.is_some());
        self.offered.len() + self.cores.iter().map(on_cores).sum::<usize>()
    }
}

impl Core {
    /// Begins the most important waiting task; of equal ones the first.
    fn begin(&mut self, now: Nanos) -> Option<CoreTask> {
        if self.running.is_some() {
            return None;
        }
        let most = self.waits.iter().map(|task| task.service.index()).max()?;
        let place = self.waits.iter().position(|task| task.service.index() == most)?;
        self.running = self.waits.remove(place);
        self.running.iter_mut().for_each(|task| task.run.started = now);
        self.running
    }
}

/// The service of a slice. Its priority is the slice's number.
fn service(slice: usize) -> ServiceId {
    ServiceId::new(slice).expect("few slices")
}
