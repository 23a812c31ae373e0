//! Adaptive depths and slices in the rack: the agents that run beside workers, and the slice and depth of
//! each worker.
//!
//! One agent serves all workers; or several serve a block of workers each, if the testbed says so
//! (`servers.agents`). They report to the controller, which tells them about each other and takes the slice
//! step (`adapting`). Samples consist of what a DISPATCH carried and what its worker measured.

use sluice_control::WorkerGrant;
use sluice_host::agent::{Agent, AgentSettings, Decision, Sample, Verdict};
use sluice_nodes::names;
use sluice_stats::{IntervalTasks, SliceDepths};
use sluice_testbed::Testbed;
use sluice_testbed::agents;
use sluice_units::Adaptive;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{Nanos, SliceId, WorkerId};

/// The agents of a rack.
#[derive(Debug)]
pub(super) struct Adaptation {
    agents: Vec<Agent>,
    /// Workers of each agent.
    workers_each: u32,
    advises: bool,
    interval_began: Nanos,
    seats: Vec<WorkerDepth>,
    decisions: Vec<Decision>,
    /// The interval's tasks, by slice.
    ended: Vec<IntervalTasks>,
    log: Vec<SliceDepths>,
    moves: u32,
}

/// The slice and depth of a worker.
#[derive(Clone, Copy, Debug)]
struct WorkerDepth {
    slice: SliceId,
    depth: u8,
}

/// The agents' decisions at the end of an interval.
#[derive(Debug)]
pub(super) struct IntervalEnd {
    pub(super) next: Nanos,
    /// Whether the agents only advise.
    pub(super) advises: bool,
    /// Changes that are made at once.
    pub(super) decisions: Vec<Decision>,
    /// The report of each agent.
    pub(super) reports: Vec<Vec<SliceTally>>,
}

impl Adaptation {
    pub(super) fn new(asked: Adaptive, grants: &[WorkerGrant], testbed: &Testbed) -> Self {
        let settings = AgentSettings::asked(asked, agents::way(testbed));
        let count = testbed.servers.agents.map_or(1, u32::from);
        let workers_each = testbed.workers.div_ceil(count).max(1);
        let agent = |_| Agent::new(Nanos(0), settings).expect("what can be asked for is in range");
        let mut agents: Vec<Agent> = (0..count).map(agent).collect();
        let seat = |grant: &WorkerGrant| {
            let WorkerRegistration { worker, slice, quota: depth, .. } = grant.registration;
            agents[(u32::from(worker.0) / workers_each) as usize].serves(Nanos(0), worker, slice, depth);
            WorkerDepth { slice, depth }
        };
        let seats = grants.iter().map(seat).collect();
        Self {
            agents,
            workers_each,
            advises: asked.advises,
            interval_began: Nanos(0),
            seats,
            decisions: Vec::new(),
            ended: Vec::new(),
            log: Vec::new(),
            moves: 0,
        }
    }

    pub(super) fn deadline(&self) -> Nanos {
        // All agents' intervals end together.
        self.agents[0].deadline()
    }

    /// A worker that was idle since `free_at` gets a task.
    #[inline]
    pub(super) fn on_busy(&mut self, now: Nanos, worker: u32, free_at: Nanos) {
        let since = free_at.max(self.interval_began);
        self.agent_of(worker).idled(WorkerId(worker as u16), now.since(since));
    }

    #[inline]
    pub(super) fn finished(&mut self, now: Nanos, worker: u32, sample: Sample) {
        let slice = usize::from(self.seats[worker as usize].slice.0);
        if self.ended.len() <= slice {
            self.ended.resize_with(slice + 1, IntervalTasks::default);
        }
        self.ended[slice].take(sample.switch_wait + sample.worker_wait, sample.service);
        self.agent_of(worker).finished(now, WorkerId(worker as u16), sample);
    }

    #[inline]
    fn agent_of(&mut self, worker: u32) -> &mut Agent {
        &mut self.agents[(worker / self.workers_each) as usize]
    }

    /// The interval ends for all agents.
    pub(super) fn tick(&mut self, now: Nanos) -> IntervalEnd {
        self.interval_began = now;
        self.decisions.clear();
        let tick = |agent: &mut Agent| {
            let mut tallies = Vec::new();
            agent.tick(now, &mut self.decisions, &mut tallies);
            tallies
        };
        let reports = self.agents.iter_mut().map(tick).collect();
        let decisions = if self.advises { Vec::new() } else { self.decisions.clone() };
        IntervalEnd { next: self.deadline(), advises: self.advises, decisions, reports }
    }

    /// An agent is told what the workers of other agents did in the interval that has just ended.
    pub(super) fn add_others(&mut self, name: &str, others: &[SliceOthers]) {
        let ended = self.interval_began;
        let called = |(index, _): &(usize, &mut Agent)| names::agent(*index) == name;
        if let Some((_, agent)) = self.agents.iter_mut().enumerate().find(called) {
            agent.told(ended, others);
        }
    }

    /// Sets a worker's depth; returns whether it changed.
    pub(super) fn set_depth(&mut self, now: Nanos, worker: WorkerId, depth: u8) -> bool {
        let seat = &mut self.seats[usize::from(worker.0)];
        let is_new = std::mem::replace(&mut seat.depth, depth) != depth;
        let slice = seat.slice;
        if is_new {
            self.agent_of(worker.0.into()).serves(now, worker, slice, depth);
        }
        is_new
    }

    /// A worker got another registration.
    pub(super) fn granted(&mut self, now: Nanos, grant: &WorkerRegistration) {
        let WorkerRegistration { worker, slice, quota: depth, .. } = *grant;
        let seat = &mut self.seats[usize::from(worker.0)];
        self.moves += u32::from(seat.slice != slice);
        *seat = WorkerDepth { slice, depth };
        self.agent_of(worker.0.into()).serves(now, worker, slice, depth);
    }

    /// The depths and slices, interval by interval.
    pub(super) fn into_log(self) -> Vec<SliceDepths> {
        self.log
    }

    /// Records an interval that has ended with these reports.
    pub(super) fn note(&mut self, now: Nanos, reports: &[Vec<SliceTally>]) {
        for (slice, idle_milli) in together(reports.iter().flatten()) {
            let seats = self.seats.iter().filter(|seat| seat.slice == slice);
            let depths: Vec<u8> = seats.map(|seat| seat.depth).collect();
            let of = |verdict| {
                let fits = |d: &&Decision| d.slice == slice && d.verdict == verdict;
                self.decisions.iter().filter(fits).count() as u32
            };
            let mut ended = self.ended.get_mut(usize::from(slice.0)).map(std::mem::take).unwrap_or_default();
            self.log.push(SliceDepths {
                at_ns: now.0,
                slice: slice.0.into(),
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
                idle_workers: f64::from(idle_milli) / 1_000.0,
                moves: self.moves,
            });
        }
    }
}

/// The idleness of each slice, summed over all agents.
fn together<'t>(all: impl Iterator<Item = &'t SliceTally>) -> Vec<(SliceId, u32)> {
    let mut sums: Vec<(SliceId, u32)> = Vec::new();
    for SliceTally { slice, idle_milli, .. } in all {
        match sums.iter_mut().find(|(known, _)| known == slice) {
            Some((_, sum)) => *sum += idle_milli,
            None => sums.push((*slice, *idle_milli)),
        }
    }
    sums
}
