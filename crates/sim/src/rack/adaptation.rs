//! Adaptive depths and slices in the rack: the agent as it runs beside workers, and the controller's slice step.
//!
//! One agent looks after all workers, or several after a block of them each if the testbed says so (`servers.agents`).
//! They hear of each other what a controller would tell them, at once. Samples come from what each DISPATCH carried and
//! what its worker knew. A move follows the generation rules: the worker is closed, its generation raised, and after
//! [`OPENS_AFTER`] it is let in again elsewhere, with new counters; its old tokens are swept. What is left out is the
//! controller's own time for the step.

use sluice_control::{SliceChange, SliceTally, slice_step};
use sluice_host::agent::{self, Agent, Decision, Others, Sample, Verdict};
use sluice_switch::registry::Adaptive;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Generation, Nanos, SliceId, Sweep, SweepOf, WorkerId};

use super::Rack;
use super::setup::{EPOCH, GENERATION, Plan};
use super::stage::Cue;
use crate::agents;
use crate::stats::{Depths, Ended, Observer};
use crate::testbed::Testbed;

/// What closing a worker, raising its generation and opening it again takes: four steps of a controller over a link.
const OPENS_AFTER: Nanos = Nanos::from_micros(100);
/// How idle a slice has to be before it gives a worker away, in thousandths of a worker.
const IDLE_FLOOR_MILLI: u32 = 1_000;

/// The agents and the controller of a rack.
#[derive(Debug)]
pub(super) struct Adaptation {
    agents: Vec<Agent>,
    /// How many workers each looks after.
    workers_each: u32,
    carries_out: bool,
    interval_began: Nanos,
    seats: Vec<Seat>,
    decisions: Vec<Decision>,
    /// Of all agents together.
    tallies: Vec<agent::SliceTally>,
    /// The interval's tasks by slice.
    ended: Vec<Ended>,
    log: Vec<Depths>,
    moves: u32,
}

/// Where a worker serves.
#[derive(Clone, Copy, Debug)]
struct Seat {
    slice: SliceId,
    depth: u8,
    generation: Generation,
    is_open: bool,
}

impl Adaptation {
    pub(super) fn new(asked: Adaptive, plan: &Plan, testbed: &Testbed) -> Self {
        let workers = testbed.workers;
        let settings = agents::settings(asked, agents::way(testbed));
        let count = testbed.servers.agents.map_or(1, u32::from);
        let workers_each = workers.div_ceil(count).max(1);
        let agent = |_| Agent::new(Nanos(0), settings).expect("what can be asked for is in range");
        let mut agents: Vec<Agent> = (0..count).map(agent).collect();
        let seat = |worker| {
            let grant = plan.worker_grant(worker);
            let agent = &mut agents[(worker / workers_each) as usize];
            agent.serves(Nanos(0), grant.worker, grant.slice, grant.quota);
            Seat { slice: grant.slice, depth: grant.quota, generation: GENERATION, is_open: true }
        };
        let seats = (0..workers).map(seat).collect();
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
    fn agent_of(&mut self, worker: u32) -> &mut Agent {
        &mut self.agents[(worker / self.workers_each) as usize]
    }

    /// The interval ends for all agents, and each hears what the others' workers did in it.
    fn tick(&mut self, now: Nanos) {
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

    fn note(&mut self, now: Nanos) {
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

impl<O: Observer> Rack<'_, O> {
    /// An interval ends: depths change at once, workers that move in a moment.
    pub(super) fn adapt(&mut self) {
        let Some(mut adaptation) = self.stage.adaptation.take() else { return };
        for worker in 0..self.testbed.workers {
            if let Some(free_at) = self.nodes.workers.blocked_since(worker, self.stage.now()) {
                adaptation.wakes(self.stage.now(), worker, free_at);
            }
        }
        adaptation.interval_began = self.stage.now();
        adaptation.tick(self.stage.now());
        if adaptation.carries_out {
            for index in 0..adaptation.decisions.len() {
                let Decision { worker, to, .. } = adaptation.decisions[index];
                self.set_depth(&mut adaptation, worker, to);
            }
            self.slice_step(&mut adaptation);
        }
        adaptation.note(self.stage.now());
        if self.nodes.clients.has_more() {
            self.stage.cue(adaptation.deadline(), Cue::Adapts);
        }
        self.stage.adaptation = Some(adaptation);
    }

    /// A worker that moves is let in again.
    pub(super) fn opens(&mut self, worker: u32) {
        let Some(mut adaptation) = self.stage.adaptation.take() else { return };
        let seat = &mut adaptation.seats[worker as usize];
        seat.is_open = true;
        let Seat { slice, depth, generation, .. } = *seat;
        for op in self.nodes.plan.worker_ops(WorkerId(worker as u16), slice, generation) {
            self.nodes.switch.table(op);
        }
        self.nodes.workers.servers.serves(self.nodes.switch.program(), worker, slice);
        adaptation.agent_of(worker).serves(self.stage.now(), WorkerId(worker as u16), slice, depth);
        let grant = sluice_host::worker::Grant {
            generation,
            slice,
            quota: depth,
            ..self.nodes.plan.worker_grant(worker)
        };
        self.stage.adaptation = Some(adaptation);
        self.nodes.workers.grant(&mut self.stage, worker, grant);
    }

    fn slice_step(&mut self, adaptation: &mut Adaptation) {
        let seats = &adaptation.seats;
        let tallies: Vec<SliceTally> =
            adaptation.tallies.iter().map(|tally| of_agent(tally, seats)).collect();
        let changes = slice_step(&tallies, IDLE_FLOOR_MILLI, |_, _| true);
        for change in changes {
            match change {
                SliceChange::Even { slice, depth } => {
                    for worker in 0..self.testbed.workers {
                        if adaptation.seats[worker as usize].slice == slice {
                            self.set_depth(adaptation, WorkerId(worker as u16), depth);
                        }
                    }
                }
                SliceChange::Move { worker, from, to, depth, .. } => {
                    self.close(adaptation, worker, from, to, depth);
                }
            }
        }
    }

    fn set_depth(&mut self, adaptation: &mut Adaptation, worker: WorkerId, depth: u8) {
        let seat = &mut adaptation.seats[usize::from(worker.0)];
        if seat.depth == depth || !seat.is_open {
            return;
        }
        seat.depth = depth;
        let slice = seat.slice;
        adaptation.agent_of(worker.0.into()).serves(self.stage.now(), worker, slice, depth);
        self.nodes.workers.set_quota(&mut self.stage, worker.0.into(), depth);
    }

    /// No new tokens of the worker, and none of its old ones are used any more.
    fn close(
        &mut self,
        adaptation: &mut Adaptation,
        worker: WorkerId,
        from: SliceId,
        to: SliceId,
        depth: u8,
    ) {
        let seat = &mut adaptation.seats[usize::from(worker.0)];
        let generation = Generation(seat.generation.0 + 1);
        *seat = Seat { slice: to, depth, generation, is_open: false };
        adaptation.moves += 1;
        adaptation.agent_of(worker.0.into()).gone(worker);
        let closed = self.nodes.plan.worker_row(worker, from, Generation(generation.0 - 1), false);
        self.nodes.switch.table(TableOp::SetWorker(worker, Some(closed)));
        self.nodes.switch.table(TableOp::RaiseGeneration(worker, generation));
        if let TableAnswer::Slice(state) = self.nodes.switch.table(TableOp::ReadSlice(from)) {
            let left = state.tokens_in.since(state.tokens_out).clamp(0, u16::MAX.into()) as u16;
            let sweep = Sweep { epoch: EPOCH, slice: from, of: SweepOf::Tokens, left, carried: None };
            self.nodes.switch.sweep(&mut self.stage, sweep);
        }
        self.stage.cue(self.stage.now() + OPENS_AFTER, Cue::Opens(worker.0.into()));
    }
}

/// The tallies of all agents, one for each slice.
fn together<'t>(all: impl Iterator<Item = &'t agent::SliceTally>) -> Vec<agent::SliceTally> {
    let mut sums: Vec<agent::SliceTally> = Vec::new();
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
fn beside(own: &agent::SliceTally, sums: &[agent::SliceTally]) -> Others {
    let all = sums.iter().find(|sum| sum.slice == own.slice).unwrap_or(own);
    let workers = (all.depths.len() - own.depths.len()) as u32;
    Others { slice: own.slice, workers, heard: workers, tasks: all.tasks - own.tasks }
}

fn of_agent(tally: &agent::SliceTally, seats: &[Seat]) -> SliceTally {
    let depth = |(worker, _): &(WorkerId, u8)| (*worker, seats[usize::from(worker.0)].depth);
    SliceTally {
        slice: tally.slice,
        overloads: tally.overloads,
        idle_milli: tally.idle_milli,
        depths: tally.depths.iter().map(depth).collect(),
        tasks: tally.tasks,
    }
}
