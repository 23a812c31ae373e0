//! Servers of many cores in fault runs. Each is several workers, lanes (`host::worker::Lanes`), which live
//! in one process behind one address and die together.
//!
//! The lanes' machines are stored with their workers, like those of one core, so that the checks from
//! outside stay the same. They are swapped into one place for what lanes do together.

use std::mem;
use std::ops::Range;

use sluice_events::PacketId;
use sluice_host::worker::{Action, Lanes, WorkerSettings};
use sluice_wire::{Nanos, Packet};

use crate::cores::{CoreTask, CoresScenario, ServerCores};
use crate::rack::Rack;

impl Rack<'_> {
    /// Gives a server's new life idle cores.
    pub(crate) fn new_cores(&mut self, worker: usize) {
        if let Some(cores) = &self.scenario.cores {
            let server = self.server_of(worker);
            self.servers_of_cores[server] = ServerCores::new(cores, self.scenario.slices);
        }
    }

    /// The lane of a server that a packet is for.
    pub(crate) fn lane_of(&mut self, worker: usize, packet: PacketId) -> usize {
        let packet = *self.world.packets.get(packet);
        worker + self.with_lanes(worker, |lanes, _, _| lanes.of(&packet))
    }

    /// A packet arrives at its lane. A repeat of a task that another lane knows is answered by that lane.
    pub(crate) fn on_lane_packet(
        &mut self,
        worker: usize,
        (at, arrived): (Nanos, Nanos),
        packet: PacketId,
    ) -> Result<(), String> {
        let packet = *self.world.packets.get(packet);
        let process = self.scenario.process_of(worker);
        let lane = worker - process.start;
        let answers = self.with_lanes(worker, |lanes, settings, out| {
            lanes.packet(lane, (at, arrived), settings, &packet, out)
        });
        self.perform_worker_actions(worker, at)?;
        if let (Some(other), Packet::Dispatch(dispatch)) = (answers, &packet) {
            self.with_lanes(worker, |lanes, settings, out| {
                lanes.answer_repeat(other, arrived, settings, dispatch, out);
            });
            self.perform_worker_actions(process.start + other, at)?;
        }
        self.settle_lanes(worker)
    }

    /// Wakes a lane at the time that it asked for, if that time still holds. All lanes tick together, after
    /// the server's room is shared out.
    pub(crate) fn on_lane_timer(&mut self, worker: usize) -> Result<(), String> {
        let now = self.world.now;
        let comes = self.workers[worker].node.as_mut().is_some_and(|node| node.wakeup.fires(now));
        if comes { self.settle_lanes(worker) } else { Ok(()) }
    }

    /// A core has served a task.
    pub(crate) fn core_ends(&mut self, worker: usize, slot: u64) -> Result<(), String> {
        let (now, server) = (self.world.now, self.server_of(worker));
        let CoreTask { run, .. } = self.servers_of_cores[server].ended(worker, slot)?;
        let answer = self.served(worker, &run)?;
        let first = self.scenario.process_of(worker).start;
        self.with_lanes(worker, |lanes, settings, out| {
            lanes.finished(worker - first, now, settings, (slot, run.started), answer, out);
        });
        self.perform_worker_actions(worker, now)?;
        self.settle_lanes(worker)
    }

    /// Called after everything that arrives at a server of many cores. Cores begin waiting tasks, tokens
    /// follow the room that is left, and every lane does what is due. Does nothing for workers of one core.
    pub(crate) fn settle_lanes(&mut self, worker: usize) -> Result<(), String> {
        let Some(cores) = self.scenario.cores else { return Ok(()) };
        let process = self.scenario.process_of(worker);
        if !self.workers[process.start].lives() || self.is_paused(worker) {
            return Ok(());
        }
        self.cores_begin(worker)?;
        let now = self.world.now;
        for lane in process.clone() {
            let of_server = lane - process.start;
            self.with_lanes(worker, |lanes, settings, out| lanes.fetch_due(of_server, now, settings, out));
            self.perform_worker_actions(lane, now)?;
        }
        self.share_room(&cores, worker);
        for lane in process.clone() {
            self.tick_worker(lane, now)?;
        }
        self.cores_begin(worker)?;
        if self.workers[process.start].lives() {
            process.for_each(|lane| self.arm_worker(lane));
        }
        Ok(())
    }

    fn share_room(&mut self, cores: &CoresScenario, worker: usize) {
        let (server, slices) = (self.server_of(worker), self.scenario.slices);
        let all = cores.lanes_of_server(slices);
        for slice in 0..slices {
            let room = self.servers_of_cores[server].room(slice);
            let lanes: Vec<usize> = (slice..all).step_by(slices).collect();
            self.with_lanes(worker, |machines, _, _| machines.share_room(&lanes, room));
        }
    }

    fn cores_begin(&mut self, worker: usize) -> Result<(), String> {
        let (now, server) = (self.world.now, self.server_of(worker));
        while let Some(task) = self.servers_of_cores[server].begin_next(now) {
            self.starts(task.worker, &task.run)?;
        }
        Ok(())
    }

    /// Calls a function on all lanes of a server.
    fn with_lanes<T>(
        &mut self,
        worker: usize,
        call: impl FnOnce(&mut Lanes, &WorkerSettings, &mut Vec<Action>) -> T,
    ) -> T {
        let (process, server) = (self.scenario.process_of(worker), self.server_of(worker));
        self.swap_machines(server, process.clone());
        let lanes = &mut self.servers_of_cores[server].lanes;
        let said = call(lanes, &self.worker_settings, &mut self.worker_actions);
        self.swap_machines(server, process);
        said
    }

    fn swap_machines(&mut self, server: usize, process: Range<usize>) {
        let lanes = &mut self.servers_of_cores[server].lanes;
        for (lane, worker) in self.workers[process].iter_mut().enumerate() {
            worker.held_when_seen = None;
            if let Some(node) = &mut worker.node {
                mem::swap(lanes.lane(lane), &mut node.machine);
            }
        }
    }
}
