//! The workers of all racks, and the cores of those that have something to do. What happens to them is in
//! `effects`.

use std::mem;

use sluice_control::WorkerGrant;
use sluice_events::TimerId;
use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_nodes::{Core, Node, Wakeup};
use sluice_switch::registry::Choice;
use sluice_testbed::cores_layout::CoresLayout;
use sluice_testbed::{Testbed, WorkerTimes};
use sluice_wire::Nanos;
use sluice_wire::tables::Feed;

use super::adaptation::{Adaptation, IntervalEnd};
use super::control::{Control, WorkerPosition};
use super::cores::ServersOfCores;
use super::early::Estimates;
use super::places::{LEAVES, RackWorld, WORKERS};
use super::servers::Servers;
use super::setup::{RackSetup, settings_below_spines, worker_settings};
use super::stalls::Cores;
use crate::point::Point;

/// All workers, a place each. One that never had anything to do takes its machine and [`ActiveIndex`], under
/// 230 bytes.
#[derive(Debug)]
pub(super) struct Workers {
    /// The timer of the first; the others' follow.
    timers: TimerId,
    /// What a packet costs a core.
    pub(super) costs: WorkerTimes,
    /// Whether it ranks tokens.
    pub(super) ranked: bool,
    /// How long it takes to fetch a large task that was not written ahead.
    pub(super) fetch_unwritten: Nanos,
    pub(super) servers: Servers,
    /// The agents beside them, where depths are found at run time.
    pub(super) adaptation: Option<Box<Adaptation>>,
    pub(super) all: Vec<Node<Worker>>,
    /// Tasks at each: those in service, and those before it.
    pub(super) held: Vec<u32>,
    /// Which life of its process each leads.
    pub(super) lives: Vec<u32>,
    indices: Vec<ActiveIndex>,
    /// What belongs to workers that have something to do.
    pub(super) taken: Vec<ActiveWorker>,
    pub(super) settings: WorkerSettings,
    pub(super) cores: Cores,
    /// Whether a machine ever needs a tick.
    pub(super) needs_ticks: bool,
    pub(super) actions: Vec<Action>,
    /// What services say of their ends, if workers send early tokens.
    pub(super) estimates: Option<Estimates>,
    /// How long a large task's bytes are fetched before it runs; zero if they are there.
    pub(super) fetch: Nanos,
    /// Whether they never come with the task.
    pub(super) fetches: bool,
    /// What stands behind them, where they are lanes of servers of many cores.
    pub(super) of_cores: Option<Box<ServersOfCores>>,
}

/// The index of a worker among the active ones, if it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ActiveIndex(u32);

impl ActiveIndex {
    const NONE: Self = Self(u32::MAX);
}

/// A worker that has something to do, or lately had.
#[derive(Debug, Default)]
pub(super) struct ActiveWorker {
    owner: u32,
    pub(super) core: Core,
}

impl Workers {
    /// The workers of a rack that is alone.
    pub(super) fn of_rack(
        world: &mut RackWorld,
        plan: &RackSetup,
        (point, choice): (&Point, &Choice),
        replication: u32,
        grants: &[WorkerGrant],
        servers: Servers,
    ) -> Self {
        let (testbed, seed) = (&point.testbed, point.seed);
        let all: Vec<_> =
            (0..testbed.workers).map(|worker| Node::new(Worker::new(), WORKERS.at(worker), LEAVES)).collect();
        let layout = &plan.of_cores;
        let cores = layout.as_ref().map_or(0, CoresLayout::cores);
        let timers = world.engine.timers(WORKERS, testbed.workers + cores);
        let of_cores = layout
            .clone()
            .map(|layout| Box::new(ServersOfCores::new(layout, timers.of_place(testbed.workers))));
        let settings = worker_settings(testbed, choice, &grants[0]);
        let settings = if of_cores.is_some() { ServersOfCores::settings(settings) } else { settings };
        let fetches = choice.traits().fetches;
        Self {
            fetch_unwritten: testbed.fetch(),
            of_cores,
            adaptation: choice
                .traits()
                .adaptive
                .map(|asked| Box::new(Adaptation::new(asked, grants, testbed))),
            cores: Cores::new(testbed, seed, replication),
            estimates: choice.traits().early.map(|early| Estimates::new(early, seed, replication)),
            fetches,
            fetch: if fetches { testbed.fetch() } else { Nanos(0) },
            ..Self::plain((timers, all), settings, plan.feed, testbed, servers)
        }
    }

    /// The workers of racks below spines, which are not registered yet.
    pub(super) fn below_spines(world: &mut RackWorld, control: &Control, testbed: &Testbed) -> Self {
        let node = |(worker, seat): (usize, &WorkerPosition)| Node {
            pool: seat.pool,
            ..Node::new(Worker::new(), WORKERS.at(worker as u32), LEAVES.at(seat.leaf))
        };
        let all: Vec<_> = control.seats.iter().enumerate().map(node).collect();
        let timers = world.engine.timers(WORKERS, all.len() as u32);
        let settings = settings_below_spines(testbed);
        Self::plain((timers, all), settings, control.system.feed(), testbed, Servers::default())
    }

    /// Workers without agents, early tokens, cores behind them or bytes to fetch.
    fn plain(
        (timers, all): (TimerId, Vec<Node<Worker>>),
        settings: WorkerSettings,
        feed: Feed,
        testbed: &Testbed,
        servers: Servers,
    ) -> Self {
        Self {
            timers,
            costs: testbed.worker,
            ranked: matches!(feed, Feed::Tokens { ranked: true }),
            fetch_unwritten: Nanos(0),
            servers,
            adaptation: None,
            held: vec![0; all.len()],
            lives: vec![0; all.len()],
            indices: vec![ActiveIndex::NONE; all.len()],
            taken: Vec::new(),
            settings,
            cores: Cores::EVEN,
            needs_ticks: testbed.has_faults() || waits_between_polls(feed),
            actions: Vec::new(),
            estimates: None,
            fetch: Nanos(0),
            fetches: false,
            of_cores: None,
            all,
        }
    }

    /// A worker's process dies with all that its core had.
    pub(super) fn restart(&mut self, worker: usize) -> (Core, u32) {
        let node = &mut self.all[worker];
        node.machine = Worker::new();
        node.wakeup = Wakeup::NONE;
        self.lives[worker] += 1;
        let ActiveIndex(active) = self.indices[worker];
        let core = self.taken.get_mut(active as usize).map(|active| mem::take(&mut active.core));
        (core.unwrap_or_default(), mem::take(&mut self.held[worker]))
    }

    /// Whether none has anything to do.
    pub(super) fn are_idle(&self, now: Nanos) -> bool {
        self.taken.iter().all(|active| active.core.is_idle(now))
    }

    /// The worker's index among the active ones; it becomes one if it is none.
    #[inline]
    pub(super) fn active_of(&mut self, worker: u32, now: Nanos) -> usize {
        let ActiveIndex(active) = self.indices[worker as usize];
        if active == ActiveIndex::NONE.0 { self.activate(worker, now) } else { active as usize }
    }

    /// The timer at the end of this worker's service.
    #[inline]
    pub(super) const fn timer(&self, worker: usize) -> TimerId {
        self.timers.of_place(worker as u32)
    }

    /// A packet comes: if there are agents, they hear of a core that had nothing to do.
    #[inline]
    pub(super) fn report_busy(&mut self, now: Nanos, worker: u32) {
        if self.adaptation.is_none() {
            return;
        }
        let active = self.active_of(worker, now);
        let core = &self.taken[active].core;
        if let Some(adaptation) = self.adaptation.as_mut().filter(|_| core.takes_at_once(now)) {
            adaptation.on_busy(now, worker, core.free_at);
        }
    }

    /// The agents' interval ends, if there are agents; they hear first who has nothing to do.
    pub(super) fn interval_ends(&mut self, now: Nanos) -> Option<IntervalEnd> {
        let mut adaptation = self.adaptation.take()?;
        for worker in 0..self.all.len() as u32 {
            if let Some(free_at) = self.blocked_since(worker, now) {
                adaptation.on_busy(now, worker, free_at);
            }
        }
        let end = adaptation.tick(now);
        self.adaptation = Some(adaptation);
        Some(end)
    }

    /// Since when the worker has had nothing to do, if it has nothing now.
    fn blocked_since(&self, worker: u32, now: Nanos) -> Option<Nanos> {
        let ActiveIndex(active) = self.indices[worker as usize];
        let Some(active) = self.taken.get(active as usize) else { return Some(Nanos(0)) };
        active.core.is_idle(now).then_some(active.core.free_at)
    }

    /// Desks of workers that are idle again go to others before there are more of them: a full round over all
    /// indices frees half of them, or they double.
    #[cold]
    fn activate(&mut self, worker: u32, now: Nanos) -> usize {
        let room = self.taken.capacity();
        let idle = |active: &&mut ActiveWorker| active.core.is_idle(now);
        if self.taken.len() == room && self.taken.iter_mut().filter(idle).count() * 2 > room {
            let indices = &mut self.indices;
            self.taken.retain(|active| {
                let is_idle = active.core.is_idle(now);
                if is_idle {
                    indices[active.owner as usize] = ActiveIndex::NONE;
                }
                !is_idle
            });
            for (index, active) in self.taken.iter().enumerate() {
                self.indices[active.owner as usize] = ActiveIndex(index as u32);
            }
        }
        let active = self.taken.len();
        self.taken.push(ActiveWorker { owner: worker, ..ActiveWorker::default() });
        self.indices[worker as usize] = ActiveIndex(active as u32);
        active
    }
}

/// Whether a worker has to wake up by itself to ask again.
const fn waits_between_polls(feed: Feed) -> bool {
    matches!(feed, Feed::Polls { every } if every.0 > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_with_nothing_to_do_takes_under_230_bytes() {
        assert!(size_of::<Node<Worker>>() + size_of::<ActiveIndex>() < 230);
    }
}
