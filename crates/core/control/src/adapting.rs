//! Takes agents' reports, and carries out the slice step that follows from them.
//!
//! The step lends a worker only where the controller would also let an operator move it.

use alloc::string::String;
use alloc::vec::Vec;

use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{Nanos, SliceId, WorkerId};

use crate::adapt::{AgentReport, SliceChange, slice_step, sums};
use crate::controller::Controller;
use crate::message::{Action, Answer, Refusal};
use crate::note::Note;
use crate::registration::Fate;
use crate::worker::Worker;

impl Controller {
    /// Whether a slice step is about to be taken on the tallies of the present interval.
    pub fn is_gathering(&self) -> bool {
        self.adapting.due.is_some()
    }

    /// Takes an agent's tallies. Their depths are the depths of its workers from now on.
    pub(crate) fn tallied(
        &mut self,
        now: Nanos,
        server: String,
        advises: bool,
        mut tallies: Vec<SliceTally>,
        out: &mut Vec<Action>,
    ) {
        tallies.retain(|tally| self.slice_exists(tally.slice));
        for tally in tallies.iter().filter(|_| !advises) {
            self.take_depths(now, tally, out);
        }
        // A second report of the same agent means that its first one came late, for the interval before.
        self.adapting.reports.retain(|report| report.server != server);
        self.adapting.reports.push(AgentReport { server, advises, tallies });
        self.adapting.due.get_or_insert(now + self.plan.gather_agents);
    }

    /// Takes the step at its time, when all agents have had time to report.
    pub(crate) fn tick_adapting(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if self.adapting.due.is_none_or(|due| due > now) {
            return;
        }
        self.adapting.due = None;
        let reports = core::mem::take(&mut self.adapting.reports);
        out.extend(reports.iter().map(|report| self.beside(report, &reports)));
        let mut tallies = sums(reports);
        for tally in &mut tallies {
            tally.depths.retain(|(worker, _)| self.serves_in(*worker, tally.slice));
        }
        let may_move = |worker: WorkerId, slice| self.admit_lending(worker, slice).is_ok();
        for change in slice_step(&tallies, self.plan.idle_floor_milli, may_move) {
            self.carry_out(now, change, out);
        }
    }

    /// Tells an agent what the workers of its slices on other servers did.
    fn beside(&self, own: &AgentReport, reports: &[AgentReport]) -> Action {
        let of = |tally: &SliceTally| {
            let slice = tally.slice;
            let is_own = |id| tally.depths.iter().any(|(worker, _)| *worker == id);
            let is_other = |index, worker: &Worker| {
                let is_known = worker.registration.name.is_some() && worker.server != own.server;
                worker.serves == Some(slice) && is_known && !is_own(WorkerId(index))
            };
            let workers =
                self.workers.iter().filter(|(index, worker)| is_other(*index, worker)).count() as u32;
            let others = reports.iter().filter(|report| report.server != own.server);
            let others = others.flat_map(|report| &report.tallies).filter(|other| other.slice == slice);
            let (heard, tasks) = others.fold((0, 0_u64), |(heard, tasks), other| {
                (heard + other.depths.len() as u32, tasks.saturating_add(other.tasks))
            });
            SliceOthers { slice, workers, heard, tasks }
        };
        Action::TellAgent { server: own.server.clone(), others: own.tallies.iter().map(of).collect() }
    }

    /// Takes the depths that an agent told, and makes room in the queue for the tasks that its workers may
    /// hold.
    fn take_depths(&mut self, now: Nanos, tally: &SliceTally, out: &mut Vec<Action>) {
        let mut changed = false;
        for (worker, depth) in &tally.depths {
            if !(1..=QUOTA_MAX).contains(depth) || !self.serves_in(*worker, tally.slice) {
                continue;
            }
            let Some(worker) = self.workers.get_mut(worker.0) else { continue };
            changed |= worker.quota != *depth;
            worker.quota = *depth;
        }
        if changed {
            self.refresh_slice(now, tally.slice, out);
        }
    }

    /// Carries out one change. The worker's host is told, and adopts the depth with its next registration
    /// at the latest.
    fn carry_out(&mut self, now: Nanos, change: SliceChange, out: &mut Vec<Action>) {
        match change {
            SliceChange::Even { slice, depth } => {
                let members = self.workers.iter().filter(|(_, worker)| worker.serves == Some(slice));
                let members: Vec<_> = members.map(|(index, _)| WorkerId(index)).collect();
                out.extend(members.into_iter().map(|worker| Action::SetDepth { worker, depth }));
                out.push(Action::Note(Note::DepthsEvened { slice: self.slice_name(slice), depth }));
            }
            SliceChange::Move { worker, from, idle_milli, to, overloads, depth } => {
                let (giver, taker) = (self.slice_name(from), self.slice_name(to));
                let Some(lent) = self.workers.get_mut(worker.0) else { return };
                (lent.slice, lent.quota, lent.start_quota) = (to, depth, Some(depth));
                let name = lent.registration.shown();
                out.push(Action::Note(Note::WorkerLent {
                    name,
                    worker,
                    from: giver,
                    idle_milli,
                    to: taker,
                    overloads,
                    depth,
                }));
                self.settle_worker(now, worker, out);
            }
        }
    }

    fn serves_in(&self, worker: WorkerId, slice: SliceId) -> bool {
        let is_there = |worker: &Worker| worker.serves == Some(slice) && worker.is_settled();
        self.workers.get(worker.0).is_some_and(is_there)
    }

    /// Whether the slice step may move a worker to this slice.
    fn admit_lending(&self, id: WorkerId, to: SliceId) -> Result<(), Answer> {
        if let Some(answer) = self.unreachable() {
            return Err(answer);
        }
        let unknown = || Answer::Refused { why: Refusal::WorkerGone { name: alloc::format!("{id}") } };
        let worker = self.workers.get(id.0).ok_or_else(unknown)?;
        let name = worker.registration.shown();
        self.check_served(&name, &worker.types, worker.labels, to).map_err(|why| Answer::Refused { why })?;
        self.check_former(&worker.types, worker.labels, to)?;
        self.check_serving(to)?;
        self.check_not_last(id.0).map_err(|why| Answer::Refused { why })?;
        if worker.needs_room_in(to) { Ok(()) } else { self.check_room(to) }
    }

    /// Whether this is the last worker of a slice in which registered clients' tasks may wait.
    pub(crate) fn is_missed(&self, index: u16) -> bool {
        let Some(worker) = self.workers.get(index) else { return false };
        let stays = |(i, w): (u16, &Worker)| i != index && w.slice == worker.slice && w.fate == Fate::Stays;
        self.clients.iter().next().is_some() && !self.workers.iter().any(stays)
    }

    /// Refuses to move the last worker of a slice that takes tasks of registered clients.
    pub(crate) fn check_not_last(&self, index: u16) -> Result<(), Refusal> {
        let Some(worker) = self.workers.get(index).filter(|_| self.is_missed(index)) else { return Ok(()) };
        let types = self.types_of(worker.slice);
        if types.is_empty() {
            return Ok(());
        }
        Err(Refusal::LastWorker {
            worker: worker.registration.shown(),
            slice: self.slice_name(worker.slice),
            types: self.plan.types_shown(&types),
        })
    }
}
