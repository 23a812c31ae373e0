//! The workers of a curve (`nodes::worker`): what their cores' work takes, and what is counted there. Of what a
//! core does only the end of a service is an event of its own.

use sluice_control::WorkerGrant;
use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_switch::registry::Choice;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::Feed;
use sluice_wire::{Nanos, Packet, Payload, ReplyStatus};

use super::adaptation::{Adaptation, IntervalEnd};
use super::books::Place;
use super::early::Estimates;
use super::nodes::Staged;
use super::servers::Servers;
use super::setup::{Plan, worker_settings};
use super::stage::{Cue, RackWorld, Stage};
use super::stalls::Cores;
use crate::nodes::{Core, Node, Run, Start, Try, WorkerCall, WorkerSide};
use crate::point::Point;
use crate::stats::Observer;
use crate::testbed::WorkerTimes;
use crate::world::{AlarmId, PacketId};

/// All workers, a place each. One that never had anything to do takes its machine and [`DeskIndex`], under
/// 200 bytes.
#[derive(Debug)]
pub(super) struct Workers {
    /// The alarm of the first; the others' follow.
    alarms: AlarmId,
    /// What a packet costs a core.
    costs: WorkerTimes,
    /// Whether it ranks tokens.
    ranked: bool,
    /// How long it takes to fetch a large task that was not written ahead.
    fetch_unwritten: Nanos,
    pub(super) servers: Servers,
    /// The agents beside them, where depths are found at run time.
    pub(super) adaptation: Option<Box<Adaptation>>,
    all: Vec<Node<Worker>>,
    desks: Vec<DeskIndex>,
    /// What belongs to workers that have something to do.
    taken: Vec<Desk>,
    settings: WorkerSettings,
    cores: Cores,
    /// Whether a machine ever needs a tick.
    needs_ticks: bool,
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
    core: Core,
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
        let node = |worker| Node::new(Worker::new(), plan.places.workers.at(worker));
        let needs_ticks = testbed.has_faults() || waits_between_polls(plan.feed);
        Self {
            alarms: world.engine.alarms(plan.places.workers, testbed.workers),
            costs: testbed.worker,
            ranked: matches!(plan.feed, Feed::Tokens { ranked: true }),
            fetch_unwritten: testbed.fetch(),
            servers,
            all: (0..testbed.workers).map(node).collect(),
            desks: vec![DeskIndex::NONE; testbed.workers as usize],
            taken: Vec::new(),
            settings: worker_settings(testbed, choice, &grants[0]),
            adaptation: choice.adaptive().map(adaptation),
            cores: Cores::new(testbed, seed, replication),
            needs_ticks,
            actions: Vec::new(),
            estimates: choice.early().map(|early| Estimates::new(early, seed, replication)),
            fetch: if choice.fetches() { testbed.fetch() } else { Nanos(0) },
        }
    }

    /// The worker's desk; it gets one if it has none.
    #[inline]
    fn desk_of(&mut self, worker: u32, now: Nanos) -> usize {
        let DeskIndex(desk) = self.desks[worker as usize];
        if desk == DeskIndex::NONE.0 { self.take_desk(worker, now) } else { desk as usize }
    }

    /// The alarm at the end of this worker's service.
    #[inline]
    const fn alarm(&self, worker: usize) -> AlarmId {
        self.alarms.of_place(worker as u32)
    }

    /// A packet comes: if there are agents, they hear of a core that had nothing to do.
    #[inline]
    fn hears_of_work(&mut self, now: Nanos, worker: u32) {
        if self.adaptation.is_none() {
            return;
        }
        let desk = self.desk_of(worker, now);
        let core = &self.taken[desk].core;
        if let Some(adaptation) = self.adaptation.as_mut().filter(|_| core.takes_at_once(now)) {
            adaptation.wakes(now, worker, core.free_at);
        }
    }

    /// The agents' interval ends, if there are agents; they hear first who has nothing to do.
    pub(super) fn interval_ends(&mut self, now: Nanos) -> Option<IntervalEnd> {
        let mut adaptation = self.adaptation.take()?;
        for worker in 0..self.all.len() as u32 {
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

impl<O: Observer> Staged<'_, O> {
    /// The worker learns of a registration; it sends what tokens it may.
    pub(super) fn grant_worker(&mut self, worker: u32, grant: WorkerRegistration) {
        let Ok(()) = self.on_worker(worker as usize, |machine, now, settings, out| {
            machine.grant(now, settings, grant, out);
        });
    }

    /// The worker may have so many tasks granted or held from now on.
    pub(super) fn set_quota(&mut self, worker: u32, depth: u8) {
        self.nodes.workers.all[worker as usize].machine.set_quota(depth);
        let Ok(()) = self.wants_a_tick(worker as usize);
    }

    /// A packet comes to a worker's NIC.
    #[inline]
    pub(super) fn at_worker(&mut self, worker: u32, packet: PacketId) {
        let Stage { world, meter, books } = &mut *self.stage;
        if matches!(world.packets.get(packet), Packet::Dispatch(_)) {
            meter.at_workers.enter(world.now);
            books.moves(Place::ToWorker, Place::AtWorker);
        }
        self.nodes.workers.hears_of_work(world.now, worker);
        let Ok(()) = self.worker_hears(worker as usize, packet);
    }

    /// A worker's alarm goes off: its service ends, if it has not got longer.
    #[inline]
    pub(super) fn alarm(&mut self, worker: u32) {
        let Ok(()) = self.service_ends(worker as usize);
        let desk = self.desk(worker as usize);
        if self.core(desk).running.is_none() {
            let alarm = self.nodes.workers.alarm(worker as usize);
            self.stage.world.engine.alarm(alarm, NEVER);
        }
    }

    /// Bytes that are fetched cost packets and passes.
    fn count_fetch(&mut self) {
        self.stage.meter.counts.packets += 4;
        self.stage.meter.counts.passes += 2;
    }
}

impl<O: Observer> WorkerSide for Staged<'_, O> {
    #[inline]
    fn worker(&mut self, worker: usize) -> Option<WorkerCall<'_>> {
        let Workers { all, settings, actions: out, .. } = &mut self.nodes.workers;
        let world = &self.stage.world;
        let node = &mut all[worker];
        Some(WorkerCall { now: world.now, node, settings, packets: &world.packets, out })
    }

    #[inline]
    fn desk(&mut self, worker: usize) -> usize {
        self.nodes.workers.desk_of(worker as u32, self.stage.world.now)
    }

    #[inline]
    fn core(&mut self, desk: usize) -> &mut Core {
        &mut self.nodes.workers.taken[desk].core
    }

    fn is_ranked(&self) -> bool {
        self.nodes.workers.ranked
    }

    #[inline]
    fn unpacks(&mut self, worker: usize, from: Nanos, _: Nanos, id: PacketId) -> Try<Self, Nanos> {
        let workers = &mut self.nodes.workers;
        let takes = match self.stage.world.packets.get(id) {
            Packet::Dispatch(dispatch) => workers.servers.takes(worker as u32, dispatch),
            _ => Some(Nanos(0)),
        };
        let takes_all = workers.costs.receive + takes.unwrap_or(workers.fetch_unwritten);
        let at = workers.cores.spend(worker as u32, from, takes_all);
        if takes.is_none() {
            self.count_fetch();
        }
        Ok(at)
    }

    /// A repeated task is not run again.
    #[inline]
    fn received(&mut self, _: usize, at: Nanos, packet: PacketId, runs: bool) {
        if !runs && matches!(self.stage.world.packets.get(packet), Packet::Dispatch(_)) {
            self.stage.meter.at_workers.leave(at);
        }
    }

    #[inline]
    fn spends_sending(&mut self, worker: usize, from: Nanos) -> Nanos {
        let Workers { cores, costs, .. } = &mut self.nodes.workers;
        cores.spend(worker as u32, from, costs.send)
    }

    #[inline]
    fn passes_by(&mut self) {
        self.stage.meter.counts.passes += 1;
        self.stage.meter.counts.packets += 1;
    }

    #[inline]
    fn starts(&mut self, worker: usize, run: &mut Run) -> Try<Self, Start> {
        if run.payload.is_large() && self.nodes.workers.fetch > Nanos(0) {
            run.started = run.started + self.nodes.workers.fetch;
            self.count_fetch();
        }
        let (workers, Stage { world, meter, books }) = (&mut self.nodes.workers, &mut *self.stage);
        let service = Nanos(u64::from_le_bytes(run.payload.inline));
        let busy_until = workers.cores.spend(worker as u32, run.started, service);
        meter.at_workers.leave(run.started);
        meter.serving.enter(run.started);
        books.moves(Place::AtWorker, Place::Running);
        world.engine.alarm(workers.alarm(worker), busy_until);
        let outlook = workers.estimates.as_mut().map(|estimates| estimates.outlook(service));
        Ok(Start { busy_until, outlook })
    }

    #[inline]
    fn served(&mut self, worker: usize, run: &Run) -> Try<Self, (ReplyStatus, Payload)> {
        let (workers, Stage { world, meter, books }) = (&mut self.nodes.workers, &mut *self.stage);
        meter.serving.leave(world.now);
        books.moves(Place::Running, Place::ToClient);
        if let Some(adaptation) = &mut workers.adaptation
            && let Some(sample) = workers.all[worker].machine.sample(world.now, run.started)
        {
            adaptation.finished(world.now, worker as u32, sample);
        }
        Ok((ReplyStatus::Done, Payload { len: 8, inline: run.payload.inline, ..Payload::EMPTY }))
    }

    fn goes_on(&mut self, worker: usize, desk: usize) {
        let workers = &mut self.nodes.workers;
        let (alarm, core) = (workers.alarm(worker), &mut workers.taken[desk].core);
        core.free_at = core.free_at + workers.costs.send;
        self.stage.world.engine.alarm(alarm, core.free_at);
    }

    fn wakes_workers(&self) -> bool {
        self.nodes.workers.needs_ticks
    }

    fn wake_worker(&mut self, at: Nanos, worker: usize) {
        self.stage.cue(at, self.nodes.workers.all[worker].at, Cue::Tick);
    }

    fn sends_early(&self) -> bool {
        self.nodes.workers.estimates.is_some()
    }

    fn wake_early(&mut self, at: Nanos, worker: usize) {
        self.stage.cue(at, self.nodes.workers.all[worker].at, Cue::Early);
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
        assert!(size_of::<Node<Worker>>() + size_of::<DeskIndex>() < 200);
    }
}
