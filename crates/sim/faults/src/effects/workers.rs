//! What a worker's machine says (`nodes::worker`), carried out.

use std::mem;

use sluice_events::Address;
use sluice_host::worker::{self, RemainingTime, Worker, WorkerSettings};
use sluice_nodes::{TaskRun, WorkerEffect, write_reply, write_token};
use sluice_wire::{Handle, Nanos, Payload, Reply, ReplyStatus};

use crate::event::Event;
use crate::hosts::Host;
use crate::inspection::nothing_is_due;
use crate::limits::SOONEST;
use crate::oracle::{answer, fails};
use crate::pieces::{content, content_of};
use crate::rack::Rack;
use crate::replay_log::Party;
use crate::workers::WorkerProcess;

impl Rack<'_> {
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

    /// A deadline of the machine has come.
    pub(crate) fn tick_worker(&mut self, worker: usize, at: Nanos) -> Result<(), String> {
        let Self { workers, worker_settings: settings, worker_actions: out, .. } = self;
        let Some(node) = &mut workers[worker].node else { return Ok(()) };
        node.machine.tick(at, settings, out);
        self.perform_worker_actions(worker, at)?;
        let due = self.workers[worker].machine().and_then(|machine| machine.deadline(&self.worker_settings));
        nothing_is_due("a worker", due, self.world.now)
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
    pub(crate) fn does(
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

    fn serves(&mut self, worker: usize, run: TaskRun) -> Result<(), String> {
        let outlook = self.starts(worker, &run)?;
        let (now, core_at) = (self.world.now, self.core_of(worker));
        self.workers[core_at].core.serve(run, now);
        if let (Some(outlook), Some(node)) = (outlook, &mut self.workers[worker].node) {
            node.machine.expect(run.started, run.slot, outlook);
        }
        Ok(())
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

    /// A service that starts tells how long it will take.
    fn remaining_time(&mut self, worker: usize, span: Nanos) -> Option<RemainingTime> {
        let early = self.scenario.early?;
        let left = early.word(span, &mut self.estimates);
        let from = self.world.now + left - early.settings.lead_max;
        self.workers[worker].early.set_start(from);
        Some(RemainingTime::Left(left))
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

    /// Gives a lane's task to the server's cores.
    fn offer_to_cores(&mut self, worker: usize, run: TaskRun) -> Result<(), String> {
        let (now, server) = (self.world.now, self.server_of(worker));
        self.servers_of_cores[server].offer(worker, run, now)
    }

    /// The core that a worker uses: the lanes of a server share the thread of its first lane, which has their
    /// socket.
    pub(crate) fn core_of(&self, worker: usize) -> usize {
        self.scenario.process_of(worker).start
    }

    pub(crate) fn server_of(&self, worker: usize) -> usize {
        worker / self.scenario.workers_per_server()
    }
}
