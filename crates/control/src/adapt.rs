//! The slice step of adaptive scheduling: which slice evens out its depths, and which lends a worker to which
//! (Rain §3.3).
//!
//! Agents send a [`SliceTally`] for each of their slices at each interval's end, and each hears what the slice's workers
//! on other servers did ([`SliceOthers`]): a rule that looks at a whole slice needs to know. [`slice_step`] decides on the sums of
//! all agents: a slice with both overloaded workers and idle ones evens out its depths; one with overloaded ones only
//! may take a worker; one whose workers are idle for more than a floor together may give one. The most overloaded is
//! paired with the idlest until one side runs out: a taker takes one worker an interval, and a giver's idleness drops
//! by one worker with each that it gives. The worker with the smallest depth goes, and starts at the taker's mean depth.
//!
//! The bounds: no slice gives its last worker, and a worker moves only where the controller would also let a person
//! move it.

use alloc::string::String;
use alloc::vec::Vec;

use sluice_wire::{Nanos, SliceId, WorkerId};

use crate::controller::Controller;
use crate::message::{Action, Answer, Refusal};
use crate::note::Note;
use crate::plan::QUOTA_MAX;
use crate::workers::{Fate, Worker};

/// A whole worker, in the tallies' unit.
const WORKER_MILLI: u32 = 1_000;

/// What agents say of a slice's workers in one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceTally {
    /// The slice.
    pub slice: SliceId,
    /// Workers that are overloaded.
    pub overloads: u32,
    /// The idle shares of the others, in thousandths of a worker.
    pub idle_milli: u32,
    /// The workers and their depths.
    pub depths: Vec<(WorkerId, u8)>,
    /// Tasks that they ended.
    pub tasks: u64,
}

/// What the workers of a slice that belong to other servers than an agent's did in its last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceOthers {
    /// The slice.
    pub slice: SliceId,
    /// How many of them serve it.
    pub workers: u32,
    /// How many of them other agents have just spoken for.
    pub heard: u32,
    /// The tasks that those ended.
    pub tasks: u64,
}

impl SliceTally {
    fn mean_depth(&self) -> u8 {
        let sum: u32 = self.depths.iter().map(|(_, depth)| u32::from(*depth)).sum();
        let count = self.depths.len().max(1) as u32;
        u8::try_from((sum + count / 2) / count).unwrap_or(QUOTA_MAX).clamp(1, QUOTA_MAX)
    }
}

/// What a slice step changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceChange {
    /// All workers of a slice get this depth.
    Even {
        /// The slice.
        slice: SliceId,
        /// Their depth from now on.
        depth: u8,
    },
    /// A worker goes from one slice to another.
    Move {
        /// The worker.
        worker: WorkerId,
        /// Who gives it.
        from: SliceId,
        /// How idle the giver was, in thousandths of a worker.
        idle_milli: u32,
        /// Who takes it.
        to: SliceId,
        /// How many of the taker's workers were overloaded.
        overloads: u32,
        /// Its depth from now on.
        depth: u8,
    },
}

/// Decides on one tally a slice; a slice gives only what it is idle beyond `idle_floor_milli`. `may_move` says whether a
/// worker can serve a slice; the next smallest is asked for if not.
pub fn slice_step(
    tallies: &[SliceTally],
    idle_floor_milli: u32,
    mut may_move: impl FnMut(WorkerId, SliceId) -> bool,
) -> Vec<SliceChange> {
    let mut changes = Vec::new();
    let (mut takers, mut givers) = (Vec::new(), Vec::new());
    for tally in tallies.iter().filter(|tally| !tally.depths.is_empty()) {
        let is_idle = tally.idle_milli > idle_floor_milli;
        match (tally.overloads > 0, is_idle) {
            (true, true) => {
                changes.push(SliceChange::Even { slice: tally.slice, depth: tally.mean_depth() });
            }
            (true, false) => takers.push(tally),
            (false, true) => givers.push(tally.clone()),
            (false, false) => {}
        }
    }
    takers.sort_by_key(|tally| (core::cmp::Reverse(tally.overloads), tally.slice));
    for taker in takers {
        let fits = |giver: &SliceTally| giver.depths.len() > 1 && giver.idle_milli > idle_floor_milli;
        let able = givers.iter_mut().filter(|giver| fits(giver));
        let Some(giver) = able.min_by_key(|g| (core::cmp::Reverse(g.idle_milli), g.slice)) else { break };
        giver.depths.sort_by_key(|(worker, depth)| (*depth, *worker));
        let Some(place) = giver.depths.iter().position(|(worker, _)| may_move(*worker, taker.slice)) else {
            continue;
        };
        let (worker, _) = giver.depths.remove(place);
        let (from, idle_milli, to, overloads) = (giver.slice, giver.idle_milli, taker.slice, taker.overloads);
        let depth = taker.mean_depth();
        changes.push(SliceChange::Move { worker, from, idle_milli, to, overloads, depth });
        giver.idle_milli = giver.idle_milli.saturating_sub(WORKER_MILLI);
    }
    changes
}

/// What agents said of the present interval, and when the step is taken.
#[derive(Debug, Default)]
pub(crate) struct Adapting {
    reports: Vec<Report>,
    pub(crate) due: Option<Nanos>,
}

/// What an agent said.
#[derive(Debug)]
struct Report {
    server: String,
    advises: bool,
    tallies: Vec<SliceTally>,
}

impl Controller {
    /// Whether a slice step is about to be taken, with the tallies of the present interval.
    pub fn is_gathering(&self) -> bool {
        self.adapting.due.is_some()
    }

    /// An agent's tallies join those of the others; its depths are those that its workers have from now on.
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
        // One that reports twice has come late with the first.
        self.adapting.reports.retain(|report| report.server != server);
        self.adapting.reports.push(Report { server, advises, tallies });
        self.adapting.due.get_or_insert(now + self.plan.gather_agents);
    }

    /// Takes the step once the agents had time to be heard.
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

    /// What the slices' workers beside this agent's did.
    fn beside(&self, own: &Report, reports: &[Report]) -> Action {
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

    /// The queue has room for what workers may hold.
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

    /// What a worker's host has to be told: it adopts the depth with its next registration at the latest.
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

    /// Whether the slice step may move a worker there.
    fn admit_lending(&self, id: WorkerId, to: SliceId) -> Result<(), Answer> {
        if let Some(answer) = self.unreachable() {
            return Err(answer);
        }
        let unknown = || Answer::Refused { why: Refusal::WorkerGone { name: alloc::format!("{id}") } };
        let worker = self.workers.get(id.0).ok_or_else(unknown)?;
        let name = worker.registration.shown();
        self.check_served(&name, &worker.types, to).map_err(|why| Answer::Refused { why })?;
        self.check_former(&worker.types, to)?;
        self.check_not_last(id.0).map_err(|why| Answer::Refused { why })?;
        if worker.needs_room_in(to) { Ok(()) } else { self.check_room(to) }
    }

    /// Whether this is the last worker of a slice, and clients are there whose tasks may be in it.
    pub(crate) fn is_missed(&self, index: u16) -> bool {
        let Some(worker) = self.workers.get(index) else { return false };
        let stays = |(i, w): (u16, &Worker)| i != index && w.slice == worker.slice && w.fate == Fate::Stays;
        self.clients.iter().next().is_some() && !self.workers.iter().any(stays)
    }

    /// A slice that takes tasks of registered clients keeps a worker.
    pub(crate) fn check_not_last(&self, index: u16) -> Result<(), Refusal> {
        let Some(worker) = self.workers.get(index).filter(|_| self.is_missed(index)) else { return Ok(()) };
        let types = self.types_of(worker.slice);
        if types.is_empty() {
            return Ok(());
        }
        Err(Refusal::LastWorker {
            worker: worker.registration.shown(),
            slice: self.slice_name(worker.slice),
            types: crate::workers::listed(&types),
        })
    }
}

/// What all agents say of each slice, but those that only advise.
fn sums(reports: Vec<Report>) -> Vec<SliceTally> {
    let mut sums: Vec<SliceTally> = Vec::new();
    for tally in reports.into_iter().filter(|report| !report.advises).flat_map(|report| report.tallies) {
        match sums.iter_mut().find(|sum| sum.slice == tally.slice) {
            Some(sum) => {
                sum.overloads = sum.overloads.saturating_add(tally.overloads);
                sum.idle_milli = sum.idle_milli.saturating_add(tally.idle_milli);
                sum.tasks = sum.tasks.saturating_add(tally.tasks);
                sum.depths.extend(tally.depths);
            }
            None => sums.push(tally),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FLOOR: u32 = 1_000;

    fn tally(slice: u16, overloads: u32, idle_milli: u32, depths: &[(u16, u8)]) -> SliceTally {
        let depths = depths.iter().map(|(worker, depth)| (WorkerId(*worker), *depth)).collect();
        SliceTally { slice: SliceId(slice), overloads, idle_milli, depths, tasks: 0 }
    }

    fn step(tallies: &[SliceTally]) -> Vec<SliceChange> {
        slice_step(tallies, FLOOR, |_, _| true)
    }

    fn moves(changes: &[SliceChange]) -> Vec<(u16, u16, u16, u8)> {
        let of = |change: &SliceChange| match *change {
            SliceChange::Move { worker, from, to, depth, .. } => Some((worker.0, from.0, to.0, depth)),
            SliceChange::Even { .. } => None,
        };
        changes.iter().filter_map(of).collect()
    }

    #[test]
    fn the_giver_lends_its_shallowest_worker_at_the_takers_mean_depth() {
        let busy = tally(0, 2, 0, &[(0, 3), (1, 4)]);
        let idle = tally(1, 0, 2_500, &[(2, 2), (3, 1), (4, 2)]);
        assert_eq!(moves(&step(&[busy, idle])), [(3, 1, 0, 4)]);
    }

    #[test]
    fn overload_and_idleness_in_one_slice_even_out_its_depths() {
        let changes = step(&[tally(0, 1, 1_500, &[(0, 1), (1, 4)]), tally(1, 0, 5_000, &[(2, 1), (3, 1)])]);
        assert_eq!(changes, [SliceChange::Even { slice: SliceId(0), depth: 3 }]);
    }

    #[test]
    fn the_most_overloaded_is_served_first_and_each_taker_once() {
        let takers = [tally(0, 1, 0, &[(0, 1)]), tally(1, 5, 0, &[(1, 2)])];
        let giver = tally(2, 0, 1_900, &[(2, 1), (3, 1), (4, 1)]);
        let [first, second] = takers;
        assert_eq!(moves(&step(&[first, second, giver])), [(2, 2, 1, 2)]);
    }

    #[test]
    fn a_giver_gives_while_it_is_idle_beyond_the_floor() {
        let takers = (0..4).map(|slice| tally(slice, 1, 0, &[(slice, 1)]));
        let givers = [tally(8, 0, 3_500, &[(8, 1), (9, 1), (10, 1), (11, 1)]), tally(9, 0, 900, &[(12, 1)])];
        let changes = step(&takers.chain(givers).collect::<Vec<_>>());
        assert_eq!(moves(&changes), [(8, 8, 0, 1), (9, 8, 1, 1), (10, 8, 2, 1)]);
    }

    #[test]
    fn a_worker_that_may_not_move_is_passed_over() {
        let tallies = [tally(0, 1, 0, &[(0, 2)]), tally(1, 0, 3_000, &[(1, 1), (2, 1)])];
        let changes = slice_step(&tallies, FLOOR, |worker, _| worker != WorkerId(1));
        assert_eq!(moves(&changes), [(2, 1, 0, 2)]);
    }

    proptest! {
        #[test]
        fn no_slice_is_emptied_and_no_worker_moves_twice(
            slices in proptest::collection::vec((0_u32..4, 0_u32..9_000, 1_usize..5), 1..7)
        ) {
            let mut next = 0;
            let tallies: Vec<_> = slices.iter().enumerate().map(|(slice, (overloads, idle, workers))| {
                let depths: Vec<_> = (0..*workers).map(|i| (next + i as u16, 1 + (i % 8) as u8)).collect();
                next += *workers as u16;
                tally(slice as u16, *overloads, *idle, &depths)
            }).collect();
            let moved = moves(&step(&tallies));
            for tally in &tallies {
                let given = moved.iter().filter(|m| m.1 == tally.slice.0).count();
                let taken = moved.iter().filter(|m| m.2 == tally.slice.0).count();
                prop_assert!(given < tally.depths.len() && taken <= usize::from(tally.overloads > 0));
                prop_assert!(given == 0 || (tally.overloads == 0 && tally.idle_milli > FLOOR));
            }
            let mut workers: Vec<_> = moved.iter().map(|m| m.0).collect();
            workers.dedup();
            prop_assert_eq!(workers.len(), moved.len());
        }
    }
}
