//! What happens to workers (`nodes::worker`).

use std::mem;

use sluice_host::worker::{Action, Worker};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{Nanos, Packet, Payload, ReplyStatus};

use super::{DatacenterWorkers, NEVER};
use crate::datacenter::places::LEAVES;
use crate::datacenter::watch::TaskWatch;
use crate::datacenter::world::{Datacenter, Reminder};
use crate::events::{Address, PacketId};
use crate::nodes::{Core, Node, Start, TaskRun, Try, WorkerCall, WorkerSide};

impl<O: TaskWatch> Datacenter<O> {
    /// The worker learns of a registration.
    pub(in crate::datacenter) fn grant_worker(&mut self, worker: usize, grant: WorkerRegistration) {
        self.pool = self.workers.seats[worker].pool.into();
        let Ok(()) = self.on_worker(worker, |machine, now, settings, out| {
            machine.grant(now, settings, grant, out);
        });
    }

    /// A worker's process dies with all that it held. What comes to its address from then on finds one that
    /// is not registered.
    pub(in crate::datacenter) fn worker_dies(&mut self, worker: usize) {
        self.pool = self.workers.seats[worker].pool.into();
        let (now, timer) = (self.world.now, self.workers.timer(worker));
        let DatacenterWorkers { all, cores, held, lives, .. } = &mut self.workers;
        let (mut core, had) = (mem::take(&mut cores[worker]), mem::take(&mut held[worker]));
        all[worker] = Node::new(Worker::new(), all[worker].at);
        lives[worker] += 1;
        core.lost().for_each(|packet| self.world.packets.free(packet));
        self.world.engine.timer(timer, NEVER);
        let (meter, running) = (&mut self.pools[self.pool].meter, u32::from(core.running.is_some()));
        (0..running).for_each(|_| meter.serving.leave(now));
        (running..had).for_each(|_| meter.at_workers.leave(now));
    }

    /// A packet comes to a worker's NIC.
    #[inline]
    pub(in crate::datacenter) fn at_worker(&mut self, worker: u32, packet: PacketId) {
        let worker = worker as usize;
        self.pool = self.workers.seats[worker].pool.into();
        if matches!(self.world.packets.get(packet), Packet::Dispatch(_)) {
            self.pools[self.pool].meter.at_workers.enter(self.world.now);
            self.workers.held[worker] += 1;
        }
        let Ok(()) = self.worker_hears(worker, packet);
    }

    /// A worker's timer expires: its service ends.
    #[inline]
    pub(in crate::datacenter) fn timer(&mut self, worker: u32) {
        self.pool = self.workers.seats[worker as usize].pool.into();
        let Ok(runs) = self.service_ends(worker as usize);
        if !runs {
            let timer = self.workers.timer(worker as usize);
            self.world.engine.timer(timer, NEVER);
        }
    }

    /// A worker's machine was to be woken now.
    pub(in crate::datacenter) fn worker_ticks(&mut self, worker: usize) {
        self.pool = self.workers.seats[worker].pool.into();
        let Ok(()) = self.worker_wakes(worker);
    }
}

impl<O: TaskWatch> WorkerSide for Datacenter<O> {
    #[inline]
    fn worker(&mut self, worker: usize) -> Option<WorkerCall<'_>> {
        let DatacenterWorkers { all, settings, actions: out, .. } = &mut self.workers;
        let world = &self.world;
        Some(WorkerCall { now: world.now, node: &mut all[worker], settings, packets: &world.packets, out })
    }

    #[inline]
    fn workers_say(&mut self) -> &mut Vec<Action> {
        &mut self.workers.actions
    }

    #[inline]
    fn desk(&mut self, worker: usize) -> usize {
        worker
    }

    #[inline]
    fn switch_of(&self, worker: usize) -> Address {
        LEAVES.at(self.workers.seats[worker].leaf)
    }

    #[inline]
    fn core(&mut self, desk: usize) -> &mut Core {
        &mut self.workers.cores[desk]
    }

    #[inline]
    fn unpacks(&mut self, _: usize, from: Nanos, _: Nanos, _: PacketId) -> Try<Self, Nanos> {
        Ok(from + self.workers.costs.receive)
    }

    /// A repeated task is not run again.
    #[inline]
    fn received(&mut self, worker: usize, at: Nanos, packet: PacketId, runs: bool) {
        if !runs && matches!(self.world.packets.get(packet), Packet::Dispatch(_)) {
            self.pools[self.pool].meter.at_workers.leave(at);
            self.workers.held[worker] -= 1;
        }
    }

    #[inline]
    fn spends_sending(&mut self, _: usize, from: Nanos) -> Nanos {
        from + self.workers.costs.send
    }

    #[inline]
    fn passes_by(&mut self) {
        let counts = &mut self.pools[self.pool].meter.counts;
        counts.passes += 1;
        counts.packets += 1;
    }

    #[inline]
    fn starts(&mut self, worker: usize, run: &mut TaskRun) -> Try<Self, Start> {
        let service = Nanos(u64::from_le_bytes(run.payload.inline));
        let busy_until = run.started + service;
        let life = self.workers.lives[worker];
        let meter = &mut self.pools[self.pool].meter;
        meter.observer.started((worker, life), run.task);
        meter.at_workers.leave(run.started);
        meter.serving.enter(run.started);
        self.world.engine.timer(self.workers.timer(worker), busy_until);
        Ok(Start { busy_until, outlook: None })
    }

    #[inline]
    fn served(&mut self, worker: usize, run: &TaskRun) -> Try<Self, (ReplyStatus, Payload)> {
        self.pools[self.pool].meter.serving.leave(self.world.now);
        self.workers.held[worker] -= 1;
        Ok((ReplyStatus::Done, Payload { len: 8, inline: run.payload.inline, ..Payload::EMPTY }))
    }

    fn is_ranked(&self) -> bool {
        self.workers.are_ranked
    }

    fn wakes_workers(&self) -> bool {
        self.has_faults
    }

    fn wake_worker(&mut self, at: Nanos, worker: usize) {
        self.world.engine.schedule(at, self.workers.all[worker].at, Reminder::Worker);
    }

    fn sends_early(&self) -> bool {
        false
    }

    fn wake_early(&mut self, _: Nanos, _: usize) {}
}
