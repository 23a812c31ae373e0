//! Servers of many cores in a rack. Each has RingLeader's NIC in front, whose lanes are the workers that
//! the switch and the controller know (`host::worker::Lanes`).
//!
//! The testbed's workers are the servers' cores. Classes of one priority share a slice, which all cores
//! serve. A descriptor takes one way over PCIe to its core, and feedback and the reply take one way back. A
//! core pays for each packet received and each reply sent, as a worker of its own does; for the descriptor;
//! and for a switch when it continues another task than the one that yielded. The NIC handles tokens at no
//! cost to cores. This module keeps only where tasks wait and how long they take; the state machines
//! decide.

use std::collections::VecDeque;
use std::mem;

use sluice_events::TimerId;
use sluice_host::orchestrator::{
    CoreId, CoreScheduler, Nic, OrchestratorError, Priority, RequestHandle, ScheduledRequest,
};
use sluice_host::worker::{Action, Lanes, Worker, WorkerSettings};
use sluice_nodes::{Node, TaskRun};
use sluice_testbed::cores_layout::{CoresLayout, id};
use sluice_wire::Nanos;

use crate::point::Point;

/// Bytes of a descriptor in the NIC's buffer; requests' bytes lie in the host's memory.
const DESCRIPTOR_BYTES: u32 = 64;

/// The point as the switch sees it: its workers are the servers' lanes.
pub(super) fn of_switch(layout: &CoresLayout, point: &Point) -> Point {
    let lanes = layout.servers * layout.lanes_each;
    let mut seen = point.clone();
    seen.testbed.workers = lanes * layout.services.len() as u32;
    seen.testbed.servers.count = 0;
    let slice = |(_, names): &(Priority, String)| (names.clone(), lanes);
    seen.slices = (layout.services.len() > 1).then(|| layout.services.iter().map(slice).collect());
    seen
}

/// All servers of a rack.
#[derive(Debug)]
pub(super) struct ServersOfCores {
    pub(super) layout: CoresLayout,
    /// The timer of the first core; those of the other cores follow.
    timers: TimerId,
    pub(super) all: Vec<CoreServer>,
}

/// One server: its lanes, its NIC and its cores.
#[derive(Debug)]
pub(super) struct CoreServer {
    /// The lanes' machines are stored with their workers, and are swapped in here for what they do
    /// together.
    lanes: Lanes,
    pub(super) nic: Nic,
    pub(super) cores: Vec<CoreScheduler>,
    /// How long each core runs its present task.
    pub(super) spans: Vec<Nanos>,
    /// The tasks that the server holds, by the NIC's handles.
    pub(super) tasks: Vec<ServerTask>,
    pub(super) free: Vec<u32>,
    /// Descriptors on their way to cores, and replies on their way back, both in order of departure.
    pub(super) to_cores: VecDeque<(u16, ScheduledRequest)>,
    pub(super) ended: VecDeque<(u16, u32)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ServerTask {
    pub(super) worker: usize,
    pub(super) run: TaskRun,
    /// The rest of a core's work on the task.
    pub(super) left: Nanos,
}

impl ServersOfCores {
    /// Servers with idle cores; `timers` are the cores' timers.
    pub(super) fn new(layout: CoresLayout, timers: TimerId) -> Self {
        let all = (0..layout.servers).map(|_| CoreServer::new(&layout)).collect();
        Self { layout, timers, all }
    }

    /// The settings of a lane's machine: it runs all tasks that it holds.
    pub(super) const fn settings(plain: WorkerSettings) -> WorkerSettings {
        WorkerSettings { at_once: plain.held_max, ..plain }
    }

    /// The server and core of a timer's place; `None` if the place is a worker's.
    pub(super) fn core_at(&self, place: u32) -> Option<(usize, u16)> {
        let core = place.checked_sub(self.layout.lanes())?;
        Some(((core / self.layout.cores_each) as usize, (core % self.layout.cores_each) as u16))
    }

    pub(super) fn timer(&self, server: usize, core: u16) -> TimerId {
        self.timers.of_place(server as u32 * self.layout.cores_each + u32::from(core))
    }

    /// Divides the room of a server's cores among the tokens of its lanes.
    pub(super) fn share_room(&mut self, server: usize, workers: &mut [Node<Worker>]) {
        for service in 0..self.layout.services.len() {
            let room = self.all[server].room(service);
            let lanes: Vec<usize> = (0..self.layout.lanes_each as usize).collect();
            self.with_lanes(server, service, workers, |machines| machines.share_room(&lanes, room));
        }
    }

    /// Calls a function on all lanes of a service.
    fn with_lanes<T>(
        &mut self,
        server: usize,
        service: usize,
        workers: &mut [Node<Worker>],
        call: impl FnOnce(&mut Lanes) -> T,
    ) -> T {
        let of = self.layout.workers_of(server, service);
        let lanes = &mut self.all[server].lanes;
        let mut swap = |lanes: &mut Lanes| {
            for (lane, worker) in workers[of.clone()].iter_mut().enumerate() {
                mem::swap(lanes.lane(lane), &mut worker.machine);
            }
        };
        swap(lanes);
        let said = call(lanes);
        swap(lanes);
        said
    }

    /// A lane has served a task: it answers, and no token leaves before the room is divided anew.
    pub(super) fn finishes(
        &mut self,
        task: &ServerTask,
        (now, settings): (Nanos, &WorkerSettings),
        answer: (sluice_wire::ReplyStatus, sluice_wire::Payload),
        workers: &mut [Node<Worker>],
        out: &mut Vec<Action>,
    ) {
        let (server, service) = self.layout.place_of(task.worker);
        let lane = task.worker - self.layout.workers_of(server, service).start;
        self.with_lanes(server, service, workers, |lanes| {
            lanes.finished(lane, now, settings, (task.run.slot, task.run.started), answer, out);
        });
    }
}

impl CoreServer {
    fn new(layout: &CoresLayout) -> Self {
        let cores = layout.cores_each as usize;
        let nic = layout.idle_nic().expect("the point was checked");
        let held = layout.held_max();
        let yields = layout.times.yields;
        let yields = if yields > Nanos(0) { yields } else { Nanos(u64::MAX >> 1) };
        let core = |core: usize| CoreScheduler::new(CoreId(core as u16), held, yields);
        Self {
            lanes: Lanes::new(layout.lanes_each as usize),
            nic,
            cores: (0..cores).map(core).collect(),
            spans: vec![Nanos(0); cores],
            tasks: Vec::new(),
            free: Vec::new(),
            to_cores: VecDeque::new(),
            ended: VecDeque::new(),
        }
    }

    /// Gives a lane's task to the NIC, where it waits for a core.
    pub(super) fn offer(
        &mut self,
        service: usize,
        task: ServerTask,
        now: Nanos,
    ) -> Result<(), OrchestratorError> {
        let place = self.free.pop().unwrap_or(self.tasks.len() as u32);
        match self.tasks.get_mut(place as usize) {
            Some(free) => *free = task,
            None => self.tasks.push(task),
        }
        let handle = (RequestHandle(place.into()), DESCRIPTOR_BYTES);
        self.nic.receive_of(id(service), handle, now, |_| debug_assert!(false, "lanes keep to the room"))
    }

    /// Dispatches tasks to cores that have room; returns how many descriptors leave.
    pub(super) fn dispatch(&mut self, now: Nanos) -> usize {
        let before = self.to_cores.len();
        while let Some(descriptor) = self.nic.dispatch(now) {
            self.to_cores.extend(descriptor.request.map(|request| (descriptor.core.0, request)));
        }
        self.to_cores.len() - before
    }

    /// How many more tasks of a service the cores have room for.
    fn room(&self, service: usize) -> u32 {
        self.nic.balancer().room(id(service)).saturating_sub(self.nic.waiting(id(service)))
    }
}
