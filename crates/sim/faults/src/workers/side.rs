//! The events of workers in a fault run (`nodes::worker`).

use sluice_events::PacketId;
use sluice_host::worker::{self, Outlook, Worker};
use sluice_nodes::{Core, Node, Start, TaskRun, WorkerCall, WorkerSide};
use sluice_wire::{Handle, Nanos, Packet, Payload, Reply, ReplyStatus};

use super::WorkerProcess;
use crate::event::Event;
use crate::hosts::{Host, SWITCH, worker_at};
use crate::inspection::nothing_is_due;
use crate::oracle::{Life, answer, fails};
use crate::pieces::{content, content_of};
use crate::rack::Rack;
use crate::replay_log::Who;

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
            self.say(Who::Worker(worker), || format!("starts, life {life:016x}"));
            self.after(Nanos(1_000), Event::Renew(Host::Worker(worker), life));
        }
    }

    pub(crate) fn stands_still(&self, worker: usize) -> bool {
        self.world.now < self.stands_still_until(worker)
    }

    fn stands_still_until(&self, worker: usize) -> Nanos {
        self.workers[self.scenario.process_of(worker).start].core.stalled_until
    }

    /// A process that stood still goes on, unless a second stall lasts longer.
    pub(crate) fn worker_goes_on(&mut self, worker: usize) -> Result<(), String> {
        if self.stands_still(worker) {
            return Ok(());
        }
        let first = self.scenario.process_of(worker).start;
        self.turns_to_duties(first, first)?;
        self.settle_lanes(first)
    }

    /// A run of the service ends, in this life of the worker.
    pub(crate) fn finish(&mut self, worker: usize, life: Life, slot: u64) -> Result<(), String> {
        if self.workers[worker].life != life {
            return Ok(());
        }
        if self.stands_still(worker) {
            self.remind(self.stands_still_until(worker), Event::Finish { worker, life, slot });
            return Ok(());
        }
        if self.has_cores() { self.core_ends(worker, slot) } else { self.service_ends(worker).map(drop) }
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
    pub(crate) fn service_says(&mut self, worker: usize, span: Nanos) -> Option<Outlook> {
        let early = self.scenario.early?;
        let left = early.word(span, &mut self.estimates);
        let from = self.world.now + left - early.settings.lead_max;
        self.workers[worker].early.begins(from);
        Some(Outlook::Left(left))
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
        if process.core.early.comes(now) && process.core.early.by(goes_on) {
            self.remind(goes_on, Event::Early { worker, life });
        }
        Ok(())
    }
}

impl WorkerSide for Rack<'_> {
    fn worker(&mut self, worker: usize) -> Option<WorkerCall<'_>> {
        let Self { world, workers, worker_settings: settings, worker_actions: out, .. } = self;
        let process = &mut workers[worker];
        process.held_when_seen = None;
        let node = process.node.as_mut()?;
        Some(WorkerCall { now: world.now, node, settings, packets: &world.packets, out })
    }

    /// All workers share one list of actions, which is empty between calls.
    fn workers_say(&mut self) -> &mut Vec<worker::Action> {
        &mut self.worker_actions
    }

    /// The lanes of a server share the thread of its first lane, which has their socket.
    fn desk(&mut self, worker: usize) -> usize {
        self.scenario.process_of(worker).start
    }

    fn core(&mut self, desk: usize) -> &mut Core {
        &mut self.workers[desk].core
    }

    fn unpacks(&mut self, worker: usize, from: Nanos, arrived: Nanos, id: PacketId) -> Result<Nanos, String> {
        let mut packet = *self.world.packets.get(id);
        match &mut packet {
            Packet::Dispatch(dispatch) => {
                self.workers[worker].late = self.workers[worker].late();
                self.scenario.hands.check_sent(worker, dispatch)?;
                let pieces = self.copy(worker, arrived, dispatch)?;
                let process = &mut self.workers[worker];
                dispatch.payload = process.tasks.keep(dispatch.payload);
                process.pieces.insert(dispatch.payload.handle, pieces);
            }
            Packet::Part(part) => part.payload = self.workers[worker].tasks.keep(part.payload),
            _ => {}
        }
        *self.world.packets.get_mut(id) = packet;
        Ok(from)
    }

    fn meant(&mut self, worker: usize, packet: PacketId) -> usize {
        if self.has_cores() { self.lane_of(worker, packet) } else { worker }
    }

    fn has_cores(&self) -> bool {
        self.scenario.cores.is_some()
    }

    fn lane_takes(&mut self, lane: usize, at: Nanos, arrived: Nanos, packet: PacketId) -> Result<(), String> {
        self.lane_hears(lane, (at, arrived), packet)
    }

    fn hands_over(&mut self, worker: usize, run: TaskRun) -> Result<(), String> {
        self.offer_to_cores(worker, run)
    }

    fn received(&mut self, worker: usize, _: Nanos, packet: PacketId, _: bool) {
        let process = &mut self.workers[worker];
        if let Packet::Dispatch(dispatch) = self.world.packets.get(packet)
            && process.late() > process.late
        {
            process.late_in_hand.push(dispatch.task);
        }
    }

    /// A reply with its bytes, as the worker's driver sends it.
    fn with_bytes(&mut self, worker: usize, reply: &Reply) -> Result<Option<Reply>, String> {
        let (mut reply, process) = (*reply, &self.workers[worker]);
        if reply.status == ReplyStatus::Old {
            let remembers = (process.life, self.worker_settings.retry_horizon);
            self.oracle.called_old(self.world.now, remembers, reply.task)?;
        }
        if !matches!(reply.status, ReplyStatus::Gone | ReplyStatus::Old) {
            reply.payload = process.replies.find(reply.payload.handle)?;
        }
        if let Some(node) = process.node.as_ref().filter(|_| reply.payload.has_more()) {
            reply.worker_at = node.at.endpoint();
        }
        Ok(Some(reply))
    }

    fn starts(&mut self, worker: usize, run: &mut TaskRun) -> Result<Start, String> {
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
        self.tell(Who::Worker(worker), None, Some(task), |task| format!("runs task {task}"));
        let span = self.dice.span(Nanos::from_micros(5), self.scenario.service_max);
        self.after(span, Event::Finish { worker, life, slot });
        Ok(Start { busy_until: self.world.now, outlook: self.service_says(worker, span) })
    }

    fn served(&mut self, worker: usize, run: &TaskRun) -> Result<(ReplyStatus, Payload), String> {
        let (task, process) = (run.task, &mut self.workers[worker]);
        process.late_in_hand.retain(|late| *late != task);
        process.early.ended();
        self.oracle.served(self.world.now, process.life, task)?;
        let reply = process.replies.keep(answer(process.life, task));
        let status = if fails(process.life, task) { ReplyStatus::Failed } else { ReplyStatus::Done };
        Ok((status, reply))
    }

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
            // The node handles packets to send and tasks to run.
            _ => {}
        }
        Ok(())
    }

    /// Ends a process whose workers have all left.
    fn acted(&mut self, worker: usize) -> Result<(), String> {
        let (now, settings) = (self.world.now, &self.worker_settings);
        let process = self.scenario.process_of(worker);
        let has_left = |process: &WorkerProcess| process.machine().is_some_and(|m| m.is_done(now, settings));
        if self.workers[process.clone()].iter().all(has_left) {
            for worker in process {
                self.say(Who::Worker(worker), || "has left".to_owned());
                self.workers[worker].stop();
            }
        }
        Ok(())
    }

    fn ticked(&mut self, worker: usize) -> Result<(), String> {
        let due = self.workers[worker].machine().and_then(|machine| machine.deadline(&self.worker_settings));
        nothing_is_due("a worker", due, self.world.now)
    }

    fn wake_worker(&mut self, at: Nanos, worker: usize) {
        self.remind(at, Event::Wake(Host::Worker(worker)));
    }

    fn sends_early(&self) -> bool {
        self.scenario.early.is_some()
    }

    fn wake_early(&mut self, at: Nanos, worker: usize) {
        let life = self.workers[worker].life;
        self.remind(at, Event::Early { worker, life });
    }
}
