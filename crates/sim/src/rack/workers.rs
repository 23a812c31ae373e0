//! The workers: the real state machine, and a core that does one thing at a time.
//!
//! A core receives a packet, serves a task, or sends a packet. While it is at something, packets wait in the NIC. Since
//! nothing can come between, a whole stretch (receive, send, start to serve) is worked out when it begins; only the
//! end of a service is an event of its own.

use std::collections::VecDeque;

use sluice_host::worker::{Action, Grant, Worker, WorkerSettings};
use sluice_wire::{Nanos, Packet, Payload, Reply, ReplyStatus, WorkerId};

use super::Rack;
use super::books::Place;
use super::early::Estimates;
use super::links::{Due, PacketId, Source};
use super::stalls::Cores;
use crate::stats::Observer;
use crate::testbed::Testbed;

/// All workers. One that never had anything to do takes its machine and [`DeskIndex`], under 200 bytes.
#[derive(Debug)]
pub(super) struct Workers {
    machines: Vec<Worker>,
    desks: Vec<DeskIndex>,
    /// What belongs to workers that have something to do.
    taken: Vec<Desk>,
    pub(super) settings: WorkerSettings,
    pub(super) cores: Cores,
    /// When each machine's next tick is in the agenda; empty if no machine ever needs one.
    armed: Vec<Nanos>,
    pub(super) actions: Vec<Action>,
    /// What services say of their ends, if workers send early tokens.
    pub(super) estimates: Option<Estimates>,
    /// How long a large task's bytes are fetched before it runs; zero if they are there.
    fetch: Nanos,
}

/// Which desk a worker has, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeskIndex(u32);

impl DeskIndex {
    const NONE: Self = Self(u32::MAX);
}

/// A worker that has something to do, or lately had.
#[derive(Debug, Default)]
struct Desk {
    owner: u32,
    /// The core is free from then on, but for the service.
    free_at: Nanos,
    running: Option<Run>,
    /// What waits in the NIC, and since when.
    mail: VecDeque<(Nanos, PacketId)>,
    tick_due: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) slot: u64,
    pub(super) started: Nanos,
    service: [u8; 8],
}

impl Desk {
    fn is_idle(&self, now: Nanos) -> bool {
        self.running.is_none() && self.mail.is_empty() && self.free_at <= now && !self.tick_due
    }
}

impl Workers {
    /// `fetch` is how long a large task's bytes are fetched before it runs.
    pub(super) fn new(
        testbed: &Testbed,
        settings: WorkerSettings,
        cores: Cores,
        fetch: Nanos,
        needs_ticks: bool,
        estimates: Option<Estimates>,
    ) -> Self {
        let count = testbed.workers as usize;
        Self {
            machines: (0..count).map(|_| Worker::new()).collect(),
            desks: vec![DeskIndex::NONE; count],
            taken: Vec::new(),
            settings,
            cores,
            armed: if needs_ticks { vec![Nanos(u64::MAX); count] } else { Vec::new() },
            actions: Vec::new(),
            estimates,
            fetch,
        }
    }

    /// A worker's machine, and its settings.
    pub(super) fn machine(&mut self, worker: u32) -> (&mut Worker, &WorkerSettings) {
        (&mut self.machines[worker as usize], &self.settings)
    }

    /// What runs takes so much longer; says until when.
    pub(super) fn goes_on_for(&mut self, worker: u32, now: Nanos, span: Nanos) -> Nanos {
        let desk = self.desk(worker, now);
        let desk = &mut self.taken[desk];
        desk.free_at = desk.free_at + span;
        desk.free_at
    }

    /// The worker's desk; it gets one if it has none.
    #[inline]
    fn desk(&mut self, worker: u32, now: Nanos) -> usize {
        let DeskIndex(desk) = self.desks[worker as usize];
        if desk == DeskIndex::NONE.0 { self.take_desk(worker, now) } else { desk as usize }
    }

    /// Since when the worker has had nothing to do, if it has nothing now.
    pub(super) fn blocked_since(&self, worker: u32, now: Nanos) -> Option<Nanos> {
        let DeskIndex(desk) = self.desks[worker as usize];
        let Some(desk) = self.taken.get(desk as usize) else { return Some(Nanos(0)) };
        desk.is_idle(now).then_some(desk.free_at)
    }

    /// Desks of workers that are idle again go to others before there are more of them: a full round over all desks
    /// frees half of them, or they double.
    #[cold]
    fn take_desk(&mut self, worker: u32, now: Nanos) -> usize {
        let room = self.taken.capacity();
        let idle = |desk: &&mut Desk| desk.is_idle(now);
        if self.taken.len() == room && self.taken.iter_mut().filter(idle).count() * 2 > room {
            let desks = &mut self.desks;
            self.taken.retain(|desk| {
                if desk.is_idle(now) {
                    desks[desk.owner as usize] = DeskIndex::NONE;
                }
                !desk.is_idle(now)
            });
            for (index, desk) in self.taken.iter().enumerate() {
                self.desks[desk.owner as usize] = DeskIndex(index as u32);
            }
        }
        let desk = self.taken.len();
        self.taken.push(Desk { owner: worker, ..Desk::default() });
        self.desks[worker as usize] = DeskIndex(desk as u32);
        desk
    }
}

impl<O: Observer> Rack<'_, O> {
    /// The worker gets its registration; it sends its first tokens.
    pub(super) fn start_worker(&mut self, worker: u32) {
        self.grant_worker(worker, self.plan.worker_grant(worker));
    }

    /// The worker learns of a registration; it sends what tokens it may.
    pub(super) fn grant_worker(&mut self, worker: u32, grant: Grant) {
        let Workers { machines, settings, actions, .. } = &mut self.workers;
        machines[worker as usize].grant(self.now, settings, grant, actions);
        let desk = self.workers.desk(worker, self.now);
        let busy_until = self.workers.taken[desk].free_at.max(self.now);
        self.act_worker(worker, busy_until);
        self.arm_worker(worker);
    }

    /// The worker may have so many tasks granted or held from now on.
    pub(super) fn set_quota(&mut self, worker: u32, depth: u8) {
        self.workers.machines[worker as usize].set_quota(depth);
        self.tick_soon(worker);
    }

    /// A packet comes to a worker's NIC.
    #[inline]
    pub(super) fn at_worker(&mut self, packet: PacketId) {
        let packet_is = self.links.packet(packet);
        let Some(WorkerId(worker)) = addressee(packet_is) else { return };
        let worker = u32::from(worker);
        if matches!(packet_is, Packet::Dispatch(_)) {
            self.meter.at_workers.enter(self.now);
            self.books.moves(Place::ToWorker, Place::AtWorker);
        }
        let desk = self.workers.desk(worker, self.now);
        let desk = &mut self.workers.taken[desk];
        if desk.running.is_some() || !desk.mail.is_empty() {
            desk.mail.push_back((self.now, packet));
            return;
        }
        let (free_at, from) = (desk.free_at, desk.free_at.max(self.now));
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.wakes(self.now, worker, free_at);
        }
        self.receive(worker, from, self.now, packet);
        self.arm_worker(worker);
    }

    /// A service ends: the reply leaves, then the token; then what waits in the NIC is received until there is a task.
    #[inline]
    pub(super) fn ends(&mut self, worker: u32) {
        let desk = self.workers.desk(worker, self.now);
        let Some(run) = self.workers.taken[desk].running.take() else { return self.links.ends_never(worker) };
        self.meter.serving.leave(self.now);
        self.books.moves(Place::Running, Place::ToClient);
        let reply = Payload { len: 8, inline: run.service, ..Payload::EMPTY };
        let Workers { machines, settings, actions, .. } = &mut self.workers;
        if let Some(adaptation) = &mut self.adaptation
            && let Some(sample) = machines[worker as usize].sample(self.now, run.started)
        {
            adaptation.finished(self.now, worker, sample);
        }
        let (slot, status) = (run.slot, ReplyStatus::Done);
        machines[worker as usize].finished(self.now, settings, slot, run.started, status, reply, actions);
        self.act_worker(worker, self.now);
        self.poll(worker, desk);
        if self.workers.taken[desk].running.is_none() {
            self.links.ends_never(worker);
        }
        self.arm_worker(worker);
    }

    /// The machine has something to do: at once, or when the service has ended.
    pub(super) fn tick_worker(&mut self, worker: u32) {
        self.workers.armed[worker as usize] = Nanos(u64::MAX);
        self.tick_soon(worker);
    }

    fn tick_soon(&mut self, worker: u32) {
        let desk = self.workers.desk(worker, self.now);
        let desk = &mut self.workers.taken[desk];
        if desk.running.is_some() {
            desk.tick_due = true;
            return;
        }
        let from = desk.free_at.max(self.now);
        self.tick_now(worker, from);
        self.arm_worker(worker);
    }

    fn poll(&mut self, worker: u32, desk: usize) {
        loop {
            let at = &mut self.workers.taken[desk];
            if at.running.is_some() {
                return;
            }
            let free_at = at.free_at;
            let Some((arrived, packet)) = at.mail.pop_front() else { break };
            self.receive(worker, free_at, arrived, packet);
        }
        let at = &mut self.workers.taken[desk];
        if std::mem::take(&mut at.tick_due) {
            let from = at.free_at;
            self.tick_now(worker, from);
        }
    }

    fn tick_now(&mut self, worker: u32, now: Nanos) {
        let Workers { machines, settings, actions, .. } = &mut self.workers;
        machines[worker as usize].tick(now, settings, actions);
        self.act_worker(worker, now);
    }

    #[inline]
    fn receive(&mut self, worker: u32, from: Nanos, arrived: Nanos, packet: PacketId) {
        let packet_is = self.links.packet(packet);
        let (is_task, takes) = match packet_is {
            Packet::Dispatch(dispatch) => (true, self.servers.takes(worker, dispatch)),
            _ => (false, Some(Nanos(0))),
        };
        if takes.is_none() {
            self.meter.counts.packets += 4;
            self.meter.counts.passes += 2;
        }
        let takes = self.testbed.worker.receive + takes.unwrap_or_else(|| self.testbed.fetch());
        let Workers { machines, settings, actions, cores, .. } = &mut self.workers;
        let now = cores.spend(worker, from, takes);
        machines[worker as usize].packet(now, arrived, settings, packet_is, actions);
        self.links.free(packet);
        let runs = self.act_worker(worker, now);
        // A repeated task is not run again.
        if is_task && !runs {
            self.meter.at_workers.leave(now);
        }
    }

    /// Lets a core do what its machine said: packets leave one after the other, then a service starts. Says whether one
    /// does.
    #[inline]
    fn act_worker(&mut self, worker: u32, now: Nanos) -> bool {
        let mut actions = std::mem::take(&mut self.workers.actions);
        let mut free_at = now;
        let mut run = None;
        for action in &actions {
            match action {
                Action::ToSwitch(packet) => {
                    free_at = self.workers.cores.spend(worker, free_at, self.testbed.worker.send);
                    self.send(Source::Tokens, free_at + self.testbed.links.worker, packet);
                }
                Action::Reply { packet, .. } | Action::Report(packet) => {
                    free_at = self.workers.cores.spend(worker, free_at, self.testbed.worker.send);
                    self.send_reply(worker, free_at, packet);
                }
                Action::Run { slot, payload, .. } => run = Some((*slot, *payload)),
                // Nothing has bytes beyond the packet, and no controller is there to be asked.
                Action::Need { .. }
                | Action::Parts { .. }
                | Action::Place { .. }
                | Action::Check { .. }
                | Action::Release(_)
                | Action::Forget(_)
                | Action::Renew => {}
            }
        }
        actions.clear();
        self.workers.actions = actions;
        let desk = self.workers.desk(worker, self.now);
        self.workers.taken[desk].free_at = free_at;
        if let Some((slot, payload)) = run {
            self.serve(worker, desk, free_at, slot, payload);
        }
        run.is_some()
    }

    /// The task runs from then on, once its bytes are there.
    #[inline]
    fn serve(&mut self, worker: u32, desk: usize, from: Nanos, slot: u64, payload: Payload) {
        let mut started = from;
        if payload.is_large() && self.workers.fetch > Nanos(0) {
            started = started + self.workers.fetch;
            self.meter.counts.packets += 4;
            self.meter.counts.passes += 2;
        }
        let service = Nanos(u64::from_le_bytes(payload.inline));
        let ends = self.workers.cores.spend(worker, started, service);
        let desk = &mut self.workers.taken[desk];
        let run = Run { slot, started, service: payload.inline };
        desk.running = Some(run);
        desk.free_at = ends;
        self.meter.at_workers.leave(started);
        self.meter.serving.enter(started);
        self.books.moves(Place::AtWorker, Place::Running);
        self.links.ends_at(ends, worker);
        self.expect(worker, run, service, ends);
    }

    /// A reply leaves a worker: it passes the switch, where only some programs look at it. Those see what waits in the NIC
    /// too.
    #[inline]
    fn send_reply(&mut self, worker: u32, leaves: Nanos, reply: &Reply) {
        if self.plan.program_sees_replies() {
            let desk = self.workers.desk(worker, self.now);
            let load = reply.load + self.workers.taken[desk].mail.len() as u32;
            let packet = Packet::Reply(Reply { load, ..*reply });
            self.send(Source::Tokens, leaves + self.testbed.links.worker, &packet);
        } else {
            self.meter.counts.passes += 1;
            self.meter.counts.packets += 1;
            self.send(Source::Clients, leaves + self.testbed.way_back(), &Packet::Reply(*reply));
        }
    }

    /// Puts the machine's next deadline into the agenda, if it needs any.
    #[inline]
    fn arm_worker(&mut self, worker: u32) {
        if self.workers.armed.is_empty() {
            return;
        }
        let due = self.workers.machines[worker as usize].deadline(&self.workers.settings);
        let armed = &mut self.workers.armed[worker as usize];
        if let Some(due) = due.filter(|due| due < armed) {
            *armed = due.max(self.now);
            self.links.at(*armed, Due::WorkerTick(worker));
        }
    }
}

pub(super) const fn addressee(packet: &Packet) -> Option<WorkerId> {
    match packet {
        Packet::Dispatch(dispatch) => Some(dispatch.worker),
        Packet::Answer(answer) => Some(answer.worker),
        Packet::Empty(empty) => Some(empty.worker),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_with_nothing_to_do_takes_under_200_bytes() {
        assert!(size_of::<Worker>() + size_of::<DeskIndex>() < 200);
    }
}
