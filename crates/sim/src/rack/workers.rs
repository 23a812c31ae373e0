//! The workers: the real state machine, and a core that does one thing at a time (`worker_core`). Since
//! nothing can come between, a whole stretch (receive, send, start to serve) is worked out when it begins;
//! only the end of a service is an event of its own.

use sluice_control::WorkerGrant;
use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_switch::registry::Choice;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::Feed;
use sluice_wire::{Endpoint, Nanos, Packet, Payload, Reply, ReplyStatus};

use super::adaptation::{Adaptation, IntervalEnd};
use super::books::Place;
use super::early::Estimates;
use super::servers::Servers;
use super::setup::{Plan, worker_settings};
use super::stage::{Cue, RackWorld, Stage};
use super::stalls::Cores;
use crate::point::Point;
use crate::stats::Observer;
use crate::testbed::WorkerTimes;
use crate::worker_core::{Core, Duty, count_unread};
use crate::world::{Address, AlarmId, Mail, PacketId};

/// All workers, a place each. One that never had anything to do takes its machine and [`DeskIndex`], under
/// 200 bytes.
#[derive(Debug)]
pub(super) struct Workers {
    at: Address,
    switch: Address,
    /// The alarm of the first; the others' follow.
    alarms: AlarmId,
    /// What a packet costs a core.
    costs: WorkerTimes,
    /// Whether the switch's program sees replies.
    reports: bool,
    /// Whether it ranks tokens.
    ranked: bool,
    /// How long it takes to fetch a large task that was not written ahead.
    fetch_unwritten: Nanos,
    pub(super) servers: Servers,
    /// The agents beside them, where depths are found at run time.
    pub(super) adaptation: Option<Box<Adaptation>>,
    machines: Vec<Worker>,
    desks: Vec<DeskIndex>,
    /// What belongs to workers that have something to do.
    taken: Vec<Desk>,
    settings: WorkerSettings,
    cores: Cores,
    /// When each machine's next tick is in the agenda; empty if no machine ever needs one.
    armed: Vec<Nanos>,
    actions: Vec<Action>,
    /// What services say of their ends, if workers send early tokens.
    estimates: Option<Estimates>,
    /// How long a large task's bytes are fetched before it runs; zero if they are there.
    fetch: Nanos,
}

/// Which desk a worker has, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeskIndex(u32);

impl DeskIndex {
    const NONE: Self = Self(u32::MAX);
}

/// A worker that has something to do, or lately had.
#[derive(Debug, Default)]
struct Desk {
    owner: u32,
    core: Core<PacketId, Run>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    slot: u64,
    started: Nanos,
    service: [u8; 8],
}

impl Workers {
    /// The workers of a rack.
    pub(super) fn new(
        world: &mut RackWorld,
        plan: &Plan,
        point: &Point,
        choice: &Choice,
        replication: u32,
        grants: &[WorkerGrant],
        servers: Servers,
    ) -> Self {
        let (testbed, seed) = (&point.testbed, point.seed);
        let adaptation = |asked| Box::new(Adaptation::new(asked, grants, testbed));
        let count = testbed.workers as usize;
        let needs_ticks = testbed.has_faults() || waits_between_polls(plan.feed);
        Self {
            at: plan.places.workers,
            switch: plan.places.switch,
            alarms: world.engine.alarms(plan.places.workers, testbed.workers),
            costs: testbed.worker,
            reports: plan.program_sees_replies(),
            ranked: matches!(plan.feed, Feed::Tokens { ranked: true }),
            fetch_unwritten: testbed.fetch(),
            servers,
            machines: (0..count).map(|_| Worker::new()).collect(),
            desks: vec![DeskIndex::NONE; count],
            taken: Vec::new(),
            settings: worker_settings(testbed, choice, &grants[0]),
            adaptation: choice.adaptive().map(adaptation),
            cores: Cores::new(testbed, seed, replication),
            armed: if needs_ticks { vec![NEVER; count] } else { Vec::new() },
            actions: Vec::new(),
            estimates: choice.early().map(|early| Estimates::new(early, seed, replication)),
            fetch: if choice.fetches() { testbed.fetch() } else { Nanos(0) },
        }
    }

    /// A worker's machine, and its settings.
    fn machine(&mut self, worker: u32) -> (&mut Worker, &WorkerSettings) {
        (&mut self.machines[worker as usize], &self.settings)
    }

    /// What runs takes so much longer; says until when.
    fn goes_on_for(&mut self, worker: u32, now: Nanos, span: Nanos) -> Nanos {
        let desk = self.desk(worker, now);
        let core = &mut self.taken[desk].core;
        core.free_at = core.free_at + span;
        core.free_at
    }

    /// The worker's desk; it gets one if it has none.
    #[inline]
    fn desk(&mut self, worker: u32, now: Nanos) -> usize {
        let DeskIndex(desk) = self.desks[worker as usize];
        if desk == DeskIndex::NONE.0 { self.take_desk(worker, now) } else { desk as usize }
    }

    /// The agents' interval ends, if there are agents; they hear first who has nothing to do.
    pub(super) fn interval_ends(&mut self, now: Nanos) -> Option<IntervalEnd> {
        let mut adaptation = self.adaptation.take()?;
        for worker in 0..self.machines.len() as u32 {
            if let Some(free_at) = self.blocked_since(worker, now) {
                adaptation.wakes(now, worker, free_at);
            }
        }
        let end = adaptation.tick(now);
        self.adaptation = Some(adaptation);
        Some(end)
    }

    /// Since when the worker has had nothing to do, if it has nothing now.
    fn blocked_since(&self, worker: u32, now: Nanos) -> Option<Nanos> {
        let DeskIndex(desk) = self.desks[worker as usize];
        let Some(desk) = self.taken.get(desk as usize) else { return Some(Nanos(0)) };
        desk.core.is_idle(now).then_some(desk.core.free_at)
    }

    /// Desks of workers that are idle again go to others before there are more of them: a full round over all
    /// desks frees half of them, or they double.
    #[cold]
    fn take_desk(&mut self, worker: u32, now: Nanos) -> usize {
        let room = self.taken.capacity();
        let idle = |desk: &&mut Desk| desk.core.is_idle(now);
        if self.taken.len() == room && self.taken.iter_mut().filter(idle).count() * 2 > room {
            let desks = &mut self.desks;
            self.taken.retain(|desk| {
                let is_idle = desk.core.is_idle(now);
                if is_idle {
                    desks[desk.owner as usize] = DeskIndex::NONE;
                }
                !is_idle
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

/// What happens to workers.
impl Workers {
    /// The worker learns of a registration; it sends what tokens it may.
    pub(super) fn grant<O: Observer>(
        &mut self,
        stage: &mut Stage<O>,
        worker: u32,
        grant: WorkerRegistration,
    ) {
        let now = stage.now();
        self.machines[worker as usize].grant(now, &self.settings, grant, &mut self.actions);
        let desk = self.desk(worker, now);
        let busy_until = self.taken[desk].core.free_at.max(now);
        self.act(stage, worker, desk, busy_until);
        self.arm(stage, worker);
    }

    /// The worker may have so many tasks granted or held from now on.
    pub(super) fn set_quota<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32, depth: u8) {
        self.machines[worker as usize].set_quota(depth);
        self.tick_soon(stage, worker);
    }

    /// A packet comes to a worker's NIC.
    #[inline]
    pub(super) fn mail<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32, mail: Mail) {
        let Mail::Packet { packet, .. } = mail else { return };
        let now = stage.now();
        if matches!(stage.world.engine.packets.get(packet), Packet::Dispatch(_)) {
            stage.meter.at_workers.enter(now);
            stage.books.moves(Place::ToWorker, Place::AtWorker);
        }
        let desk = self.desk(worker, now);
        let core = &mut self.taken[desk].core;
        let Some(packet) = core.comes(now, packet) else { return };
        let (free_at, from) = (core.free_at, core.free_at.max(now));
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.wakes(now, worker, free_at);
        }
        self.receive(stage, worker, desk, from, now, packet);
        self.arm(stage, worker);
    }

    /// A service ends: the reply leaves, then the token; then what waits in the NIC is received until there
    /// is a task.
    #[inline]
    pub(super) fn ends<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32) {
        let (alarm, now) = (self.alarm(worker), stage.now());
        let desk = self.desk(worker, now);
        let Some(run) = self.taken[desk].core.running.take() else {
            return stage.world.engine.alarm(alarm, NEVER);
        };
        stage.meter.serving.leave(now);
        stage.books.moves(Place::Running, Place::ToClient);
        let reply = Payload { len: 8, inline: run.service, ..Payload::EMPTY };
        let machine = &mut self.machines[worker as usize];
        if let Some(adaptation) = &mut self.adaptation
            && let Some(sample) = machine.sample(now, run.started)
        {
            adaptation.finished(now, worker, sample);
        }
        let (slot, status) = (run.slot, ReplyStatus::Done);
        machine.finished(now, &self.settings, slot, run.started, status, reply, &mut self.actions);
        self.act(stage, worker, desk, now);
        self.poll(stage, worker, desk);
        if self.taken[desk].core.running.is_none() {
            stage.world.engine.alarm(alarm, NEVER);
        }
        self.arm(stage, worker);
    }

    /// The machine has something to do: at once, or when the service has ended.
    pub(super) fn tick<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32) {
        self.armed[worker as usize] = NEVER;
        self.tick_soon(stage, worker);
    }

    fn tick_soon<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32) {
        let desk = self.desk(worker, stage.now());
        let core = &mut self.taken[desk].core;
        if !core.may_call() {
            return;
        }
        let from = core.free_at.max(stage.now());
        self.tick_now(stage, worker, desk, from);
        self.arm(stage, worker);
    }

    fn poll<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32, desk: usize) {
        while let Some(duty) = self.taken[desk].core.next() {
            let from = self.taken[desk].core.free_at;
            match duty {
                Duty::Packet(arrived, packet) => self.receive(stage, worker, desk, from, arrived, packet),
                Duty::Call => self.tick_now(stage, worker, desk, from),
            }
        }
    }

    fn tick_now<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32, desk: usize, now: Nanos) {
        self.machines[worker as usize].tick(now, &self.settings, &mut self.actions);
        self.act(stage, worker, desk, now);
    }

    #[inline]
    fn receive<O: Observer>(
        &mut self,
        stage: &mut Stage<O>,
        worker: u32,
        desk: usize,
        from: Nanos,
        arrived: Nanos,
        id: PacketId,
    ) {
        let packet = stage.world.engine.packets.get(id);
        let (is_task, takes) = match packet {
            Packet::Dispatch(dispatch) => (true, self.servers.takes(worker, dispatch)),
            _ => (false, Some(Nanos(0))),
        };
        if takes.is_none() {
            stage.meter.counts.packets += 4;
            stage.meter.counts.passes += 2;
        }
        let takes = self.costs.receive + takes.unwrap_or(self.fetch_unwritten);
        let now = self.cores.spend(worker, from, takes);
        self.machines[worker as usize].packet(now, arrived, &self.settings, packet, &mut self.actions);
        stage.world.engine.packets.free(id);
        let runs = self.act(stage, worker, desk, now);
        // A repeated task is not run again.
        if is_task && !runs {
            stage.meter.at_workers.leave(now);
        }
    }

    /// Lets a core do what its machine said: packets leave one after the other, then a service starts. Says
    /// whether one does.
    #[inline]
    fn act<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32, desk: usize, now: Nanos) -> bool {
        let mut free_at = now;
        let mut run = None;
        for action in &self.actions {
            match action {
                Action::ToSwitch(packet) => {
                    free_at = self.cores.spend(worker, free_at, self.costs.send);
                    self.send_to_switch(stage, worker, free_at, packet);
                }
                Action::Reply { to, packet } => {
                    free_at = self.cores.spend(worker, free_at, self.costs.send);
                    self.send_reply(stage, worker, to, free_at, packet);
                }
                Action::Report(packet) => {
                    free_at = self.cores.spend(worker, free_at, self.costs.send);
                    self.send_report(stage, worker, free_at, packet);
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
        self.actions.clear();
        self.taken[desk].core.free_at = free_at;
        if let Some((slot, payload)) = run {
            self.serve(stage, worker, desk, free_at, slot, payload);
        }
        run.is_some()
    }

    /// The task runs from then on, once its bytes are there.
    #[inline]
    fn serve<O: Observer>(
        &mut self,
        stage: &mut Stage<O>,
        worker: u32,
        desk: usize,
        from: Nanos,
        slot: u64,
        payload: Payload,
    ) {
        let mut started = from;
        if payload.is_large() && self.fetch > Nanos(0) {
            started = started + self.fetch;
            stage.meter.counts.packets += 4;
            stage.meter.counts.passes += 2;
        }
        let service = Nanos(u64::from_le_bytes(payload.inline));
        let ends = self.cores.spend(worker, started, service);
        let core = &mut self.taken[desk].core;
        let run = Run { slot, started, service: payload.inline };
        core.running = Some(run);
        core.free_at = ends;
        stage.meter.at_workers.leave(started);
        stage.meter.serving.enter(started);
        stage.books.moves(Place::AtWorker, Place::Running);
        stage.world.engine.alarm(self.alarm(worker), ends);
        self.expect(stage, worker, run, service, ends);
    }

    /// A service that starts says what it will take; the worker may want its early token sent before it ends.
    #[inline]
    fn expect<O: Observer>(
        &mut self,
        stage: &mut Stage<O>,
        worker: u32,
        run: Run,
        service: Nanos,
        ends: Nanos,
    ) {
        let Some(estimates) = &mut self.estimates else { return };
        let outlook = estimates.outlook(service);
        let (machine, settings) = self.machine(worker);
        machine.expect(run.started, run.slot, outlook);
        let due = machine.early_at(settings).map(|at| at.max(run.started));
        if let Some(at) = due.filter(|at| *at < ends) {
            stage.cue(at, self.at.at(worker), Cue::Early);
        }
    }

    /// The early token leaves; the service goes on afterwards.
    pub(super) fn early_token<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32) {
        let mut actions = std::mem::take(&mut self.actions);
        let now = stage.now();
        let (machine, settings) = self.machine(worker);
        machine.early(now, settings, &mut actions);
        for action in actions.drain(..) {
            if let Action::ToSwitch(packet) = action {
                let send = self.costs.send;
                let leaves = self.cores.spend(worker, now, send);
                self.send_to_switch(stage, worker, leaves, &packet);
                let ends = self.goes_on_for(worker, now, send);
                stage.world.engine.alarm(self.alarm(worker), ends);
            }
        }
        self.actions = actions;
    }

    /// The alarm at the end of this worker's service.
    #[inline]
    const fn alarm(&self, worker: u32) -> AlarmId {
        self.alarms.of_place(worker)
    }

    /// A packet leaves for the switch. What waits in the NIC stands before a token, too.
    #[inline]
    fn send_to_switch<O: Observer>(&self, stage: &mut Stage<O>, worker: u32, leaves: Nanos, packet: &Packet) {
        let unread = if self.ranked { self.unread(stage, worker) } else { 0 };
        stage.send(self.at.at(worker), self.switch, leaves, |place| {
            *place = *packet;
            count_unread(place, unread);
        });
    }

    /// How many tasks wait in a worker's NIC.
    fn unread<O: Observer>(&self, stage: &Stage<O>, worker: u32) -> u32 {
        let DeskIndex(desk) = self.desks[worker as usize];
        let packets = &stage.world.engine.packets;
        self.taken.get(desk as usize).map_or(0, |desk| desk.core.unread(|id| packets.get(*id)))
    }

    /// A reply leaves a worker. Where the program looks at replies it goes by the switch's address, otherwise
    /// past it.
    #[inline]
    fn send_reply<O: Observer>(
        &self,
        stage: &mut Stage<O>,
        worker: u32,
        to: &Endpoint,
        leaves: Nanos,
        reply: &Reply,
    ) {
        if self.reports {
            return self.send_report(stage, worker, leaves, reply);
        }
        stage.meter.counts.passes += 1;
        stage.meter.counts.packets += 1;
        stage.send(self.at.at(worker), Address::of(to), leaves, |place| reply_into(place, reply));
    }

    /// A reply by which the switch learns how much the worker holds, with what waits in its NIC.
    #[inline]
    fn send_report<O: Observer>(&self, stage: &mut Stage<O>, worker: u32, leaves: Nanos, reply: &Reply) {
        let unread = self.unread(stage, worker);
        stage.send(self.at.at(worker), self.switch, leaves, |place| {
            reply_into(place, reply);
            count_unread(place, unread);
        });
    }

    /// Asks for the machine's next deadline, if it needs any.
    #[inline]
    fn arm<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32) {
        if self.armed.is_empty() {
            return;
        }
        let due = self.machines[worker as usize].deadline(&self.settings);
        let armed = &mut self.armed[worker as usize];
        if let Some(due) = due.filter(|due| due < armed) {
            *armed = due.max(stage.now());
            stage.cue(*armed, self.at.at(worker), Cue::Tick);
        }
    }
}

/// In two steps, so that the reply is copied to where it belongs as it was written.
#[inline]
fn reply_into(place: &mut Packet, reply: &Reply) {
    *place = Packet::Reply(Reply::default());
    if let Packet::Reply(place) = place {
        *place = *reply;
    }
}

/// Whether a worker has to wake up by itself to ask again.
const fn waits_between_polls(feed: Feed) -> bool {
    matches!(feed, Feed::Polls { every } if every.0 > 0)
}

const NEVER: Nanos = Nanos(u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_with_nothing_to_do_takes_under_200_bytes() {
        assert!(size_of::<Worker>() + size_of::<DeskIndex>() < 200);
    }
}
