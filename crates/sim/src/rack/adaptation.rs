//! Adaptive depths and slices in the rack: the agents as they run beside workers, and what is known of who
//! serves where.
//!
//! One agent looks after all workers, or several after a block of them each if the testbed says so
//! (`servers.agents`). They hear of each other what a controller would tell them, at once. Samples come from
//! what each DISPATCH carried and what its worker knew. A move follows the generation rules: the worker is
//! closed, its generation raised, and after 100 µs it is let in again elsewhere, with new counters; its old
//! tokens are swept. What is left out is the controller's own time for the step.

use sluice_host::agent::{Agent, Decision, Sample, Verdict};
use sluice_switch::registry::Adaptive;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{Generation, Nanos, SliceId, WorkerId};

use crate::agents;
use crate::stats::{Depths, Ended};
use crate::testbed::Testbed;

/// The agents and the controller of a rack.
#[derive(Debug)]
pub(super) struct Adaptation {
    agents: Vec<Agent>,
    /// How many workers each looks after.
    workers_each: u32,
    pub(super) carries_out: bool,
    pub(super) interval_began: Nanos,
    pub(super) seats: Vec<Serving>,
    pub(super) decisions: Vec<Decision>,
    /// Of all agents together.
    pub(super) tallies: Vec<SliceTally>,
    /// The interval's tasks by slice.
    ended: Vec<Ended>,
    log: Vec<Depths>,
    pub(super) moves: u32,
}

/// Where a worker serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub(super) slice: SliceId,
    pub(super) depth: u8,
    pub(super) generation: Generation,
    pub(super) is_open: bool,
}

impl Adaptation {
    pub(super) fn new(asked: Adaptive, workers: &[WorkerRegistration], testbed: &Testbed) -> Self {
        let settings = agents::settings(asked, agents::way(testbed));
        let count = testbed.servers.agents.map_or(1, u32::from);
        let workers_each = testbed.workers.div_ceil(count).max(1);
        let agent = |_| Agent::new(Nanos(0), settings).expect("what can be asked for is in range");
        let mut agents: Vec<Agent> = (0..count).map(agent).collect();
        let seat = |grant: &WorkerRegistration| {
            let WorkerRegistration { worker, slice, quota: depth, generation, .. } = *grant;
            agents[(u32::from(worker.0) / workers_each) as usize].serves(Nanos(0), worker, slice, depth);
            Serving { slice, depth, generation, is_open: true }
        };
        let seats = workers.iter().map(seat).collect();
        Self {
            agents,
            workers_each,
            carries_out: !asked.advises,
            interval_began: Nanos(0),
            seats,
            decisions: Vec::new(),
            tallies: Vec::new(),
            ended: Vec::new(),
            log: Vec::new(),
            moves: 0,
        }
    }

    pub(super) fn deadline(&self) -> Nanos {
        // Their intervals end together.
        self.agents[0].deadline()
    }

    /// A worker that was free since `free_at` gets something to do.
    #[inline]
    pub(super) fn wakes(&mut self, now: Nanos, worker: u32, free_at: Nanos) {
        let since = free_at.max(self.interval_began);
        self.agent_of(worker).idled(WorkerId(worker as u16), now.since(since));
    }

    #[inline]
    pub(super) fn finished(&mut self, now: Nanos, worker: u32, sample: Sample) {
        let slice = usize::from(self.seats[worker as usize].slice.0);
        if self.ended.len() <= slice {
            self.ended.resize_with(slice + 1, Ended::default);
        }
        self.ended[slice].take(sample.switch_wait + sample.worker_wait, sample.service);
        self.agent_of(worker).finished(now, WorkerId(worker as u16), sample);
    }

    #[inline]
    pub(super) fn agent_of(&mut self, worker: u32) -> &mut Agent {
        &mut self.agents[(worker / self.workers_each) as usize]
    }

    /// The interval ends for all agents, and each hears what the others' workers did in it.
    pub(super) fn tick(&mut self, now: Nanos) {
        self.decisions.clear();
        let tick = |agent: &mut Agent| {
            let mut tallies = Vec::new();
            agent.tick(now, &mut self.decisions, &mut tallies);
            tallies
        };
        let of_agents: Vec<_> = self.agents.iter_mut().map(tick).collect();
        self.tallies = together(of_agents.iter().flatten());
        for (agent, own) in self.agents.iter_mut().zip(&of_agents) {
            let others = own.iter().map(|own| beside(own, &self.tallies));
            agent.told(now, &others.collect::<Vec<_>>());
        }
    }

    /// What became of depths and slices, interval by interval.
    pub(super) fn into_log(self) -> Vec<Depths> {
        self.log
    }

    pub(super) fn note(&mut self, now: Nanos) {
        for tally in &self.tallies {
            let seats = self.seats.iter().filter(|seat| seat.slice == tally.slice && seat.is_open);
            let depths: Vec<u8> = seats.map(|seat| seat.depth).collect();
            let of = |verdict| {
                let fits = |d: &&Decision| d.slice == tally.slice && d.verdict == verdict;
                self.decisions.iter().filter(fits).count() as u32
            };
            let mut ended =
                self.ended.get_mut(usize::from(tally.slice.0)).map(std::mem::take).unwrap_or_default();
            self.log.push(Depths {
                at_ns: now.0,
                slice: tally.slice.0.into(),
                workers: depths.len() as u32,
                depth_mean: depths.iter().map(|d| f64::from(*d)).sum::<f64>() / depths.len().max(1) as f64,
                depth_min: depths.iter().copied().min().unwrap_or(0),
                depth_max: depths.iter().copied().max().unwrap_or(0),
                deeper: of(Verdict::Deeper),
                shallower: of(Verdict::Shallower),
                overloaded: of(Verdict::Overloaded),
                tasks: ended.tasks(),
                slowdown_p99: ended.slowdown_p99(),
                response_p99_ns: ended.response_p99_ns(),
                idle_workers: f64::from(tally.idle_milli) / 1_000.0,
                moves: self.moves,
            });
        }
    }
}

/// The tallies of all agents, one for each slice.
fn together<'t>(all: impl Iterator<Item = &'t SliceTally>) -> Vec<SliceTally> {
    let mut sums: Vec<SliceTally> = Vec::new();
    for tally in all {
        match sums.iter_mut().find(|sum| sum.slice == tally.slice) {
            Some(sum) => {
                sum.overloads += tally.overloads;
                sum.idle_milli += tally.idle_milli;
                sum.tasks += tally.tasks;
                sum.depths.extend(&tally.depths);
            }
            None => sums.push(tally.clone()),
        }
    }
    sums
}

/// What the workers of a slice that are not this agent's did.
fn beside(own: &SliceTally, sums: &[SliceTally]) -> SliceOthers {
    let all = sums.iter().find(|sum| sum.slice == own.slice).unwrap_or(own);
    let workers = (all.depths.len() - own.depths.len()) as u32;
    SliceOthers { slice: own.slice, workers, heard: workers, tasks: all.tasks - own.tasks }
}
