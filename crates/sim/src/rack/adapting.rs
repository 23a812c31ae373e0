//! What an interval's end changes in a rack: depths at once, and workers that move to another slice.

use sluice_control::{SliceChange, slice_step};
use sluice_host::agent::Decision;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::{TableAnswer, TableOp, WorkerRow};
use sluice_wire::tallies::SliceTally;
use sluice_wire::{Generation, Nanos, SliceId, Sweep, SweepOf, WorkerId};

use super::Rack;
use super::adaptation::{Adaptation, Serving};
use super::nodes::Nodes;
use super::setup::{EPOCH, Plan};
use super::stage::Cue;
use crate::stats::Observer;

/// What closing a worker, raising its generation and opening it again takes: four steps of a controller over
/// a link.
const OPENS_AFTER: Nanos = Nanos::from_micros(100);
/// How idle a slice has to be before it gives a worker away, in thousandths of a worker.
const IDLE_FLOOR_MILLI: u32 = 1_000;

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
        let Serving { slice, depth, generation, .. } = *seat;
        let grant = WorkerRegistration {
            generation,
            slice,
            quota: depth,
            ..self.nodes.registrations[worker as usize]
        };
        let row = worker_row(&self.nodes.plan, &grant, true);
        for op in [
            TableOp::RaiseGeneration(grant.worker, generation),
            TableOp::ResetCounters(grant.worker, grant.start),
            TableOp::SetWorker(grant.worker, Some(row)),
        ] {
            self.nodes.switch.table(op);
        }
        let Nodes { controller, workers, switch, .. } = &mut self.nodes;
        controller.provide(&mut workers.servers, worker, slice, switch.program());
        adaptation.agent_of(worker).serves(self.stage.now(), WorkerId(worker as u16), slice, depth);
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
        *seat = Serving { slice: to, depth, generation, is_open: false };
        adaptation.moves += 1;
        adaptation.agent_of(worker.0.into()).gone(worker);
        let before = Generation(generation.0 - 1);
        let grant = self.nodes.registrations[usize::from(worker.0)];
        let grant = WorkerRegistration { generation: before, slice: from, ..grant };
        let closed = worker_row(&self.nodes.plan, &grant, false);
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

fn worker_row(plan: &Plan, grant: &WorkerRegistration, open: bool) -> WorkerRow {
    let WorkerRegistration { worker, key, slice, generation, .. } = *grant;
    let at = plan.places.workers.at(worker.0.into()).endpoint();
    WorkerRow { key, at, slice, generation, open, life: 1 }
}

fn of_agent(tally: &SliceTally, seats: &[Serving]) -> SliceTally {
    let depth = |(worker, _): &(WorkerId, u8)| (*worker, seats[usize::from(worker.0)].depth);
    SliceTally {
        slice: tally.slice,
        overloads: tally.overloads,
        idle_milli: tally.idle_milli,
        depths: tally.depths.iter().map(depth).collect(),
        tasks: tally.tasks,
    }
}
