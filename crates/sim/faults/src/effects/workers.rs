//! The events of workers in a fault run (`nodes::worker`).

use std::mem;

use sluice_events::{Address, PacketId};
use sluice_host::worker::{self, RemainingTime, Worker, WorkerSettings};
use sluice_nodes::{Duty, Node, TaskRun, WorkerEffect, write_reply, write_token};
use sluice_wire::{Handle, Nanos, Packet, Payload, Reply, ReplyStatus};

use crate::event::Event;
use crate::hosts::{Host, SWITCH, worker_at};
use crate::inspection::nothing_is_due;
use crate::limits::SOONEST;
use crate::oracle::{Life, answer, fails};
use crate::pieces::{content, content_of};
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
            let node = &mut self.workers[worker];
            node.starts += 1;
            *node = WorkerProcess {
                node: Some(Node::new(Worker::new(), worker_at(first as u16, node.starts), SWITCH)),
                life,
                starts: node.starts,
                ..WorkerProcess::new(worker)
            };
            self.say(Party::Worker(worker), || format!("starts, life {life:016x}"));
            self.after(Nanos(1_000), Event::Renew(Host::Worker(worker), life));
        }
    }

    pub(crate) fn is_paused(&self, worker: usize) -> bool {
        self.world.now < self.paused_until(worker)
    }

    fn paused_until(&self, worker: usize) -> Nanos {
        self.workers[self.scenario.process_of(worker).start].core.stalled_until
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

    /// A service that starts tells how long it will take.
    fn remaining_time(&mut self, worker: usize, span: Nanos) -> Option<RemainingTime> {
        let early = self.scenario.early?;
        let left = early.word(span, &mut self.estimates);
        let from = self.world.now + left - early.settings.lead_max;
        self.workers[worker].early.set_start(from);
        Some(RemainingTime::Left(left))
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

    pub(crate) const fn has_cores(&self) -> bool {
        self.scenario.cores.is_some()
    }

    /// The core that a worker uses: the lanes of a server share the thread of its first lane, which has their
    /// socket.
    fn core_of(&self, worker: usize) -> usize {
        self.scenario.process_of(worker).start
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

    /// Calls a worker's machine, if its process lives, and does what it says once the core has time.
    pub(crate) fn on_worker(
        &mut self,
        worker: usize,
        call: impl FnOnce(&mut Worker, Nanos, &WorkerSettings, &mut Vec<worker::Action>),
    ) -> Result<(), String> {
        let now = self.world.now;
        let from = self.workers[self.core_of(worker)].core.free_from(now);
        let Self { workers, worker_settings: settings, worker_actions: out, .. } = self;
        let Some(node) = &mut workers[worker].node else { return Ok(()) };
        call(&mut node.machine, now, settings, out);
        self.perform_worker_actions(worker, from)?;
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

    /// A deadline of the machine has come.
    pub(crate) fn tick_worker(&mut self, worker: usize, at: Nanos) -> Result<(), String> {
        let Self { workers, worker_settings: settings, worker_actions: out, .. } = self;
        let Some(node) = &mut workers[worker].node else { return Ok(()) };
        node.machine.tick(at, settings, out);
        self.perform_worker_actions(worker, at)?;
        let due = self.workers[worker].machine().and_then(|machine| machine.deadline(&self.worker_settings));
        nothing_is_due("a worker", due, self.world.now)
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

    /// Lets a core do what its machine said: packets leave one after the other, then a service starts.
    pub(crate) fn perform_worker_actions(&mut self, worker: usize, from: Nanos) -> Result<(), String> {
        let core_at = self.core_of(worker);
        self.workers[worker].held_when_seen = None;
        let Some(node) = &self.workers[worker].node else { return Ok(()) };
        let (sender, mut actions) = (node.sender(), mem::take(&mut self.worker_actions));
        let mut next = None;
        for action in &actions {
            match WorkerEffect::of(action, sender, from) {
                WorkerEffect::Run(run) => {
                    self.workers[worker].begin_until.begins(from, run.task)?;
                    if self.has_cores() { self.offer_to_cores(worker, run)? } else { next = Some(run) }
                }
                effect => self.does(worker, (sender.at, sender.switch), from, effect)?,
            }
        }
        if let Some(run) = next {
            self.serves(worker, run)?;
        } else {
            self.workers[core_at].core.free_at = from;
        }
        actions.clear();
        self.worker_actions = actions;
        self.stop_if_left(worker);
        Ok(())
    }

    /// Does one thing that a machine said. It takes no time.
    fn does(
        &mut self,
        worker: usize,
        (at, switch): (Address, Address),
        leaves: Nanos,
        effect: WorkerEffect<'_>,
    ) -> Result<(), String> {
        let unread = self.workers[self.core_of(worker)].core.unread(&self.world.packets);
        let packets = &mut self.world.packets;
        let (to, packet) = match effect {
            WorkerEffect::Token(packet) => (switch, packets.make(|place| write_token(place, packet, unread))),
            WorkerEffect::Report(reply) => {
                let reply = self.with_bytes(worker, reply)?;
                (switch, self.world.packets.make(|place| write_reply(place, &reply, unread)))
            }
            WorkerEffect::Reply(to, reply) => {
                let reply = self.with_bytes(worker, reply)?;
                (to, self.world.packets.make(|place| write_reply(place, &reply, 0)))
            }
            WorkerEffect::Ask(to, packet) => (to, packets.keep(&packet)),
            WorkerEffect::Keep(action) => return self.worker_keeps(worker, action),
            WorkerEffect::Run(_) => return Ok(()),
        };
        self.send_at(at, to, leaves, packet);
        Ok(())
    }

    /// A task runs.
    fn serves(&mut self, worker: usize, run: TaskRun) -> Result<(), String> {
        let outlook = self.starts(worker, &run)?;
        let (now, core_at) = (self.world.now, self.core_of(worker));
        self.workers[core_at].core.serve(run, now);
        if let (Some(outlook), Some(node)) = (outlook, &mut self.workers[worker].node) {
            node.machine.expect(run.started, run.slot, outlook);
        }
        Ok(())
    }

    /// Asks to be woken for what the machine wants next.
    pub(crate) fn arm_worker(&mut self, worker: usize) {
        let (now, core_at) = (self.world.now, self.core_of(worker));
        let settings = &self.worker_settings;
        let Some(node) = &mut self.workers[worker].node else { return };
        let tick = node.wakes_at(node.machine.deadline(settings), now + SOONEST);
        let early = if self.scenario.early.is_some() { node.machine.early_at(settings) } else { None };
        let early = self.workers[core_at].core.early_wakes_at(early, now, now + SOONEST);
        let life = self.workers[worker].life;
        if let Some(due) = tick {
            self.remind(due, Event::Wake(Host::Worker(worker)));
        }
        if let Some(due) = early {
            self.remind(due, Event::Early { worker, life });
        }
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

    /// A reply with its bytes, as the worker's driver sends it.
    fn with_bytes(&mut self, worker: usize, reply: &Reply) -> Result<Reply, String> {
        let (mut reply, process) = (*reply, &self.workers[worker]);
        if reply.status == ReplyStatus::Old {
            let remembers = (process.life, self.worker_settings.retry_horizon);
            self.oracle.called_old(self.world.now, remembers, reply.task)?;
        }
        if reply.status == ReplyStatus::Late {
            self.oracle.called_late(process.life, reply.task)?;
        }
        if !matches!(reply.status, ReplyStatus::Gone | ReplyStatus::Old | ReplyStatus::Late) {
            reply.payload = process.replies.find(reply.payload.handle)?;
        }
        if let Some(node) = process.node.as_ref().filter(|_| reply.payload.has_more()) {
            reply.worker_at = node.at.endpoint();
        }
        Ok(reply)
    }

    /// A service starts; it may say how long it will take.
    pub(crate) fn starts(&mut self, worker: usize, run: &TaskRun) -> Result<Option<RemainingTime>, String> {
        let TaskRun { task, task_type, payload, slot, .. } = *run;
        if !self.scenario.serves[worker].contains(&task_type) {
            return Err(format!(
                "promise 7: worker {worker} got {task} of type {task_type}, which it does not serve"
            ));
        }
        let process = &self.workers[worker];
        let mut asked = process.tasks.find(payload.handle)?;
        if asked.is_large() {
            asked.handle = process.pieces.get(&payload.handle).map_or(Handle::NONE, |all| content_of(all));
        }
        let life = process.life;
        self.oracle.started(life, task, &asked)?;
        self.tell(Party::Worker(worker), None, Some(task), |task| format!("runs task {task}"));
        let span = self.dice.span(Nanos::from_micros(5), self.scenario.service_max);
        self.after(span, Event::Finish { worker, life, slot });
        Ok(self.remaining_time(worker, span))
    }

    /// A service has ended: gives its reply.
    pub(crate) fn served(&mut self, worker: usize, run: &TaskRun) -> Result<(ReplyStatus, Payload), String> {
        let (task, process) = (run.task, &mut self.workers[worker]);
        process.late_in_hand.retain(|late| *late != task);
        process.early.ended();
        self.oracle.served(self.world.now, process.life, task)?;
        let reply = process.replies.keep(answer(process.life, task));
        let status = if fails(process.life, task) { ReplyStatus::Failed } else { ReplyStatus::Done };
        Ok((status, reply))
    }

    /// What concerns bytes beyond packets, and the controller.
    fn worker_keeps(&mut self, worker: usize, action: &worker::Action) -> Result<(), String> {
        let process = &mut self.workers[worker];
        match *action {
            worker::Action::Parts { need, payload } => {
                let asked = process.replies.find(payload.handle)?;
                if let Some(at) = process.node.as_ref().map(|node| node.at) {
                    self.send_parts(at, &need, &asked);
                }
            }
            worker::Action::Place { at, offset, part } => self.place(worker, at, offset, &part)?,
            worker::Action::Check { task, payload } => {
                let pieces = process.pieces.get(&payload.handle);
                let is_right = pieces.is_some_and(|all| content_of(all) == content(payload.inline));
                self.on_worker(worker, |machine, now, settings, out| {
                    machine.checked(now, settings, task, is_right, out);
                })?;
            }
            worker::Action::Release(handle) => {
                process.pieces.remove(&handle);
                process.tasks.give_back(handle)?;
            }
            worker::Action::Forget(handle) => {
                process.replies.give_back(handle)?;
            }
            worker::Action::Renew => self.renew(Host::Worker(worker)),
            // Packets to send and tasks to run are effects of their own.
            _ => {}
        }
        Ok(())
    }

    /// Ends a process whose workers have all left.
    fn stop_if_left(&mut self, worker: usize) {
        let (now, settings) = (self.world.now, &self.worker_settings);
        let process = self.scenario.process_of(worker);
        let has_left = |process: &WorkerProcess| process.machine().is_some_and(|m| m.is_done(now, settings));
        if self.workers[process.clone()].iter().all(has_left) {
            for worker in process {
                self.say(Party::Worker(worker), || "has left".to_owned());
                self.workers[worker].stop();
            }
        }
    }
}
