//! The events of workers (`nodes::worker`).

use std::mem;

use sluice_events::PacketId;
use sluice_nodes::{Duty, WorkerEffect};
use sluice_wire::{Nanos, Packet};

use crate::event::Event;
use crate::hosts::Host;
use crate::oracle::Life;
use crate::rack::Rack;
use crate::replay_log::Party;
use crate::workers::WorkerProcess;

impl Rack<'_> {
    /// Starts a process, with all workers that live in it.
    pub(crate) fn start_worker(&mut self, worker: usize) {
        let life = self.dice.word() | 1;
        let process = self.scenario.process_of(worker);
        let first = process.start;
        self.world.network.injector.mend(Host::Worker(first));
        self.new_cores(worker);
        for worker in process {
            self.workers[worker].start(first, life);
            self.say(Party::Worker(worker), || format!("starts, life {life:016x}"));
            self.after(Nanos(1_000), Event::Renew(Host::Worker(worker), life));
        }
    }

    /// A process that stood still goes on, unless a second stall lasts longer.
    pub(crate) fn resume_worker(&mut self, worker: usize) -> Result<(), String> {
        if self.is_paused(worker) {
            return Ok(());
        }
        let first = self.scenario.process_of(worker).start;
        self.serve_duties(first)?;
        self.settle_lanes(first)
    }

    /// A run of the service ends, in this life of the worker.
    pub(crate) fn finish(&mut self, worker: usize, life: Life, slot: u64) -> Result<(), String> {
        if self.workers[worker].life != life {
            return Ok(());
        }
        if self.is_paused(worker) {
            self.remind(self.paused_until(worker), Event::Finish { worker, life, slot });
            return Ok(());
        }
        if self.has_cores() { self.core_ends(worker, slot) } else { self.on_service_end(worker).map(drop) }
    }

    /// A process leaves, with all workers that live in it.
    pub(crate) fn leave(&mut self, worker: usize) -> Result<(), String> {
        for worker in self.scenario.process_of(worker) {
            self.workers[worker].leaving = true;
            self.workers[worker].session.asked = None;
            self.on_worker(worker, |machine, _, _, _| machine.leave())?;
            self.renew(Host::Worker(worker));
        }
        self.settle_lanes(worker)
    }

    /// Ends a process, with all workers that live in it.
    pub(crate) fn process_ends(&mut self, worker: usize) {
        self.workers[self.scenario.process_of(worker)].iter_mut().for_each(WorkerProcess::stop);
    }

    /// A running service lets the machine send its early token.
    pub(crate) fn early(&mut self, worker: usize, life: Life) -> Result<(), String> {
        let (now, process) = (self.world.now, &mut self.workers[worker]);
        if process.life != life {
            return Ok(());
        }
        let goes_on = process.core.stalled_until;
        if now >= goes_on {
            return self.worker_sends_early(worker);
        }
        if process.core.early.fires(now) && process.core.early.wake_by(goes_on) {
            self.remind(goes_on, Event::Early { worker, life });
        }
        Ok(())
    }

    /// The running service's early token leaves.
    fn worker_sends_early(&mut self, worker: usize) -> Result<(), String> {
        let (now, core_at) = (self.world.now, self.core_of(worker));
        if !self.workers[core_at].core.early.fires(now) {
            return Ok(());
        }
        let Self { workers, worker_settings: settings, worker_actions: out, .. } = self;
        workers[worker].held_when_seen = None;
        let Some(node) = &mut workers[worker].node else { return Ok(()) };
        node.machine.early(now, settings, out);
        let (sender, mut actions) = (node.sender(), mem::take(out));
        for action in &actions {
            self.does(worker, (sender.at, sender.switch), now, WorkerEffect::of(action, sender, now))?;
        }
        actions.clear();
        self.worker_actions = actions;
        self.arm_worker(worker);
        Ok(())
    }

    /// A packet comes to a worker's NIC.
    pub(crate) fn at_worker(&mut self, worker: usize, packet: PacketId) -> Result<(), String> {
        let (now, core_at) = (self.world.now, self.core_of(worker));
        let core = &mut self.workers[core_at].core;
        let Some(packet) = core.deliver(now, packet) else { return Ok(()) };
        let from = core.free_from(now);
        self.receives(worker, from, now, packet)?;
        self.arm_worker(worker);
        Ok(())
    }

    /// A worker was to be woken now, unless that has changed: its machine is called at once, or when the core
    /// has time.
    pub(crate) fn on_worker_timer(&mut self, worker: usize) -> Result<(), String> {
        let (now, core_at) = (self.world.now, self.core_of(worker));
        let comes = self.workers[worker].node.as_mut().is_some_and(|node| node.wakeup.fires(now));
        if !comes || !self.workers[core_at].core.may_call(now) {
            return Ok(());
        }
        let from = self.workers[core_at].core.free_from(now);
        self.tick_worker(worker, from)?;
        self.arm_worker(worker);
        Ok(())
    }

    /// A service ends: the reply leaves, then the token; then what waits in the NIC is received until there
    /// is a task.
    fn on_service_end(&mut self, worker: usize) -> Result<(), String> {
        let (now, core_at) = (self.world.now, self.core_of(worker));
        let Some(run) = self.workers[core_at].core.running.take() else { return Ok(()) };
        let (status, reply) = self.served(worker, &run)?;
        let Self { workers, worker_settings: settings, worker_actions: out, .. } = self;
        let Some(node) = &mut workers[worker].node else { return Ok(()) };
        node.machine.finished(now, settings, run.slot, run.started, status, reply, out);
        self.perform_worker_actions(worker, now)?;
        self.serve_duties(worker)
    }

    /// The core turns to what waits for it.
    fn serve_duties(&mut self, worker: usize) -> Result<(), String> {
        let (now, core_at) = (self.world.now, self.core_of(worker));
        loop {
            let core = &mut self.workers[core_at].core;
            let from = core.free_from(now);
            match core.next_duty() {
                Some(Duty::Packet(arrived, packet)) => self.receives(worker, from, arrived, packet)?,
                Some(Duty::Call) => self.tick_worker(worker, from)?,
                None => break,
            }
        }
        self.arm_worker(worker);
        Ok(())
    }

    /// A core receives a packet from then on.
    fn receives(
        &mut self,
        worker: usize,
        from: Nanos,
        arrived: Nanos,
        packet: PacketId,
    ) -> Result<(), String> {
        let worker = if self.has_cores() { self.lane_of(worker, packet) } else { worker };
        let late_before = self.workers[worker].late();
        self.unpack(worker, arrived, packet)?;
        if self.has_cores() {
            self.on_lane_packet(worker, (from, arrived), packet)?;
        } else {
            let Self { world, workers, worker_settings: settings, worker_actions: out, .. } = self;
            if let Some(node) = &mut workers[worker].node {
                node.machine.packet(from, arrived, settings, world.packets.get(packet), out);
            }
            self.perform_worker_actions(worker, from)?;
        }
        let process = &mut self.workers[worker];
        if let Packet::Dispatch(dispatch) = self.world.packets.get(packet)
            && process.late() > late_before
        {
            process.late_in_hand.push(dispatch.task);
        }
        self.world.packets.free(packet);
        Ok(())
    }

    /// Puts the bytes of a packet that is received where the machine wants them.
    fn unpack(&mut self, worker: usize, arrived: Nanos, id: PacketId) -> Result<(), String> {
        let mut packet = *self.world.packets.get(id);
        match &mut packet {
            Packet::Dispatch(dispatch) => {
                self.scenario.worker_labels.check_sent(worker, dispatch)?;
                let pieces = self.copy(worker, arrived, dispatch)?;
                self.workers[worker].begin_until.came(arrived, dispatch);
                let process = &mut self.workers[worker];
                dispatch.payload = process.tasks.keep(dispatch.payload);
                process.pieces.insert(dispatch.payload.handle, pieces);
            }
            Packet::Part(part) => part.payload = self.workers[worker].tasks.keep(part.payload),
            _ => {}
        }
        *self.world.packets.get_mut(id) = packet;
        Ok(())
    }
}
