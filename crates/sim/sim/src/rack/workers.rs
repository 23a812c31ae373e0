//! The workers of a curve, and the cores of those that have something to do. What happens to them is in
//! `side`.

mod side;

use sluice_control::WorkerGrant;
use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_switch::registry::Choice;
use sluice_wire::Nanos;
use sluice_wire::tables::Feed;

use super::adaptation::{Adaptation, IntervalEnd};
use super::cores::ServersOfCores;
use super::early::Estimates;
use super::servers::Servers;
use super::setup::{RackSetup, worker_settings};
use super::stage::RackWorld;
use super::stalls::Cores;
use crate::cores_layout::CoresLayout;
use crate::events::TimerId;
use crate::nodes::{Core, Node};
use crate::point::Point;
use crate::testbed::WorkerTimes;

/// All workers, a place each. One that never had anything to do takes its machine and [`DeskIndex`], under
/// 220 bytes.
#[derive(Debug)]
pub(super) struct Workers {
    /// The timer of the first; the others' follow.
    timers: TimerId,
    /// What a packet costs a core.
    costs: WorkerTimes,
    /// Whether it ranks tokens.
    ranked: bool,
    /// How long it takes to fetch a large task that was not written ahead.
    fetch_unwritten: Nanos,
    pub(super) servers: Servers,
    /// The agents beside them, where depths are found at run time.
    pub(super) adaptation: Option<Box<Adaptation>>,
    pub(super) all: Vec<Node<Worker>>,
    desks: Vec<DeskIndex>,
    /// What belongs to workers that have something to do.
    taken: Vec<Desk>,
    pub(super) settings: WorkerSettings,
    cores: Cores,
    /// Whether a machine ever needs a tick.
    needs_ticks: bool,
    pub(super) actions: Vec<Action>,
    /// What services say of their ends, if workers send early tokens.
    estimates: Option<Estimates>,
    /// How long a large task's bytes are fetched before it runs; zero if they are there.
    fetch: Nanos,
    /// Whether they never come with the task.
    fetches: bool,
    /// What stands behind them, where they are lanes of servers of many cores.
    pub(super) of_cores: Option<Box<ServersOfCores>>,
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
        plan: &RackSetup,
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
        let layout = &plan.of_cores;
        let cores = layout.as_ref().map_or(0, CoresLayout::cores);
        let timers = world.engine.timers(plan.places.workers, testbed.workers + cores);
        let of_cores = layout
            .clone()
            .map(|layout| Box::new(ServersOfCores::new(layout, timers.of_place(testbed.workers))));
        let settings = worker_settings(testbed, choice, &grants[0]);
        Self {
            timers,
            costs: testbed.worker,
            ranked: matches!(plan.feed, Feed::Tokens { ranked: true }),
            fetch_unwritten: testbed.fetch(),
            servers,
            all: (0..testbed.workers).map(node).collect(),
            desks: vec![DeskIndex::NONE; testbed.workers as usize],
            taken: Vec::new(),
            settings: if of_cores.is_some() { ServersOfCores::settings(settings) } else { settings },
            of_cores,
            adaptation: choice.adaptive().map(adaptation),
            cores: Cores::new(testbed, seed, replication),
            needs_ticks,
            actions: Vec::new(),
            estimates: choice.early().map(|early| Estimates::new(early, seed, replication)),
            fetches: choice.fetches(),
            fetch: if choice.fetches() { testbed.fetch() } else { Nanos(0) },
        }
    }

    /// The worker's desk; it gets one if it has none.
    #[inline]
    fn desk_of(&mut self, worker: u32, now: Nanos) -> usize {
        let DeskIndex(desk) = self.desks[worker as usize];
        if desk == DeskIndex::NONE.0 { self.take_desk(worker, now) } else { desk as usize }
    }

    /// The timer at the end of this worker's service.
    #[inline]
    const fn timer(&self, worker: usize) -> TimerId {
        self.timers.of_place(worker as u32)
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

/// Whether a worker has to wake up by itself to ask again.
const fn waits_between_polls(feed: Feed) -> bool {
    matches!(feed, Feed::Polls { every } if every.0 > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_with_nothing_to_do_takes_under_220_bytes() {
        assert!(size_of::<Node<Worker>>() + size_of::<DeskIndex>() < 220);
    }
}
