//! The events at servers of many cores.

use sluice_events::PacketId;
use sluice_host::orchestrator::{CoreId, Descriptor, RunSlice};
use sluice_nodes::TaskRun;
use sluice_testbed::cores_layout::id;
use sluice_wire::{Nanos, Payload, ReplyStatus};

use crate::racks::cores::ServerTask;
use crate::racks::places::{Scheduled, WORKERS};
use crate::racks::task_places::Place;
use crate::racks::watch::TaskObserver;
use crate::racks::workers::Workers;
use crate::racks::world::SimulatedRacks;

const NEVER: Nanos = Nanos(u64::MAX);

impl<O: TaskObserver> SimulatedRacks<O> {
    /// A packet arrives at a lane. Without losses no task comes twice, so no other lane has to be asked.
    pub(in crate::racks) fn on_lane_packet(
        &mut self,
        worker: usize,
        at: Nanos,
        arrived: Nanos,
        packet: PacketId,
    ) {
        let Workers { all, settings, actions, .. } = &mut self.workers;
        all[worker].machine.packet(at, arrived, settings, self.world.packets.get(packet), actions);
        self.perform_lane_actions(worker);
        self.settle_cores(worker);
    }

    /// Gives a lane's task to the server's cores.
    pub(in crate::racks) fn offer_to_cores(&mut self, worker: usize, run: TaskRun) {
        let now = self.world.now;
        let Some(cores) = &mut self.workers.of_cores else { return };
        let layout = &cores.layout;
        let service = Nanos(u64::from_le_bytes(run.payload.inline));
        let left = layout.packets + layout.times.descriptor + service;
        let (server, of) = layout.place_of(worker);
        let taken = cores.all[server].offer(of, ServerTask { worker, run, left: left.max(Nanos(1)) }, now);
        debug_assert!(taken.is_ok(), "{taken:?}");
    }

    /// The first descriptor on its way arrives at its core.
    pub(in crate::racks) fn on_core_descriptor(&mut self, server: usize) {
        let Some(cores) = &mut self.workers.of_cores else { return };
        let of = &mut cores.all[server];
        let Some((core, request)) = of.to_cores.pop_front() else { return };
        let descriptor = Descriptor { core: CoreId(core), request: Some(request), hint: None };
        let delivered = of.cores[usize::from(core)].deliver(&descriptor);
        debug_assert!(delivered.is_ok(), "the NIC keeps to the bound");
        self.start_core(server, core);
    }

    /// A timer expires; returns whether it was a core's.
    #[inline]
    pub(in crate::racks) fn core_rings(&mut self, place: u32) -> bool {
        self.workers.of_cores.is_some() && self.core_of_many_rings(place)
    }

    #[inline(never)]
    fn core_of_many_rings(&mut self, place: u32) -> bool {
        let Some(cores) = &mut self.workers.of_cores else { return false };
        let Some((server, core)) = cores.core_at(place) else { return false };
        let (timer, at) = (cores.timer(server, core), usize::from(core));
        self.world.engine.timer(timer, NEVER);
        let (of, now) = (&mut cores.all[server], self.world.now);
        let Some(running) = of.cores[at].running() else { return true };
        let place = running.handle.0 as u32;
        let task = &mut of.tasks[place as usize];
        task.left = task.left - of.spans[at];
        self.pools[0].meter.serving.leave(now);
        if task.left > Nanos(0) {
            self.pools[0].meter.at_workers.enter(now);
            self.task_places.move_task(Place::Running, Place::AtWorker);
            if let Ok(slice) = of.cores[at].yields(now) {
                self.run_core(server, core, slice);
            }
            return true;
        }
        if of.cores[at].finish(true).is_ok() {
            of.ended.push_back((core, place));
            let pcie = cores.layout.times.pcie;
            self.schedule(now + pcie, WORKERS.at(server as u32), Scheduled::Ended);
        }
        self.start_core(server, core);
        true
    }

    /// The first reply on its way arrives at the NIC, with its core's feedback, and leaves.
    pub(in crate::racks) fn on_core_reply(&mut self, server: usize) {
        let workers = &mut self.workers;
        let (Some(cores), now) = (&mut workers.of_cores, self.world.now) else { return };
        let of = &mut cores.all[server];
        let Some((core, place)) = of.ended.pop_front() else { return };
        of.free.push(place);
        let task = of.tasks[place as usize];
        let service = id(cores.layout.place_of(task.worker).1);
        let told = cores.all[server].nic.load_feedback(service, CoreId(core), 1);
        debug_assert!(told.is_ok(), "no more ends than was dispatched");
        let reply = Payload { len: 8, inline: task.run.payload.inline, ..Payload::EMPTY };
        let (answer, times) = ((ReplyStatus::Done, reply), (now, &workers.settings));
        cores.finishes(&task, times, answer, &mut workers.all, &mut workers.actions);
        self.task_places.move_task(Place::Running, Place::ToClient);
        self.perform_lane_actions(task.worker);
        self.settle_cores(task.worker);
    }

    /// Called after everything that arrives at a server. Cores get waiting tasks, tokens follow the room
    /// that is left, and every lane does what is due.
    pub(in crate::racks) fn settle_cores(&mut self, worker: usize) {
        let workers = &mut self.workers;
        let (Some(cores), now) = (&mut workers.of_cores, self.world.now) else { return };
        let (server, _) = cores.layout.place_of(worker);
        let at = WORKERS.at(server as u32);
        for _ in 0..cores.all[server].dispatch(now) {
            self.world.engine.schedule(now + cores.layout.times.pcie, at, Scheduled::Descriptor);
        }
        cores.share_room(server, &mut workers.all);
        let of = |service| cores.layout.workers_of(server, service);
        let lanes: Vec<usize> = (0..cores.layout.services.len()).flat_map(of).collect();
        for lane in lanes {
            let Workers { all, settings, actions, .. } = &mut self.workers;
            all[lane].machine.tick(now, settings, actions);
            self.perform_lane_actions(lane);
        }
    }

    fn start_core(&mut self, server: usize, core: u16) {
        let Some(cores) = &mut self.workers.of_cores else { return };
        if let Some(slice) = cores.all[server].cores[usize::from(core)].start(self.world.now) {
            self.run_core(server, core, slice);
        }
    }

    fn run_core(&mut self, server: usize, core: u16, slice: RunSlice) {
        let Some(cores) = &mut self.workers.of_cores else { return };
        let now = self.world.now;
        let switch = if slice.is_switch { cores.layout.times.switch } else { Nanos(0) };
        let timer = cores.timer(server, core);
        let of = &mut cores.all[server];
        let task = &mut of.tasks[slice.request.handle.0 as usize];
        if !slice.is_resumed {
            task.run.started = now;
        }
        let span = task.left.min(slice.until.since(now));
        of.spans[usize::from(core)] = span;
        self.pools[0].meter.at_workers.leave(now);
        self.pools[0].meter.serving.enter(now);
        self.task_places.move_task(Place::AtWorker, Place::Running);
        self.world.engine.timer(timer, now + switch + span);
    }

    fn perform_lane_actions(&mut self, worker: usize) {
        let (now, active) = (self.world.now, self.active(worker));
        self.perform_worker_actions(worker, active, now);
    }
}
