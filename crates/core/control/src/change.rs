//! The change of a worker's generation. Its sequence of steps makes sure that no token of an old generation
//! ever meets a task as if it were of the new one.
//!
//! The steps: close the worker's row; wait until no packet is inside the switch that saw the row open
//! (drain); raise the generation; drain again; read how many tasks were sent and how far the token ring had
//! got; reset the counters; open the row. For a worker that leaves, the row is cleared in place of the last
//! two. Each step waits for the answer to the one before. If the ring has no room for the new tokens beside
//! the stale ones, the ring is swept before the worker is opened.
//!
//! Any number of workers may be in a change at once. A worker is in one change at a time. What is asked of
//! it meanwhile is looked at when the change ends.

use alloc::vec::Vec;

use sluice_wire::tables::{SliceState, TableOp, WorkerState};
use sluice_wire::{Generation, Nanos, Serial, SliceId, WorkerId};

use crate::controller::{Controller, SOON, wait};
use crate::ledger::Expect;
use crate::message::{Action, Answer, Refusal, Waiting};
use crate::note::Note;
use crate::registration::{Fate, Waiter, Wants};
use crate::worker::{Step, Worker};

/// How many departures are remembered, for hosts that did not get the answer to their goodbye.
const DEPARTED_MAX: usize = 256;

impl Controller {
    /// Starts the change that a worker needs, or answers its waiting calls if it needs none.
    pub(crate) fn settle_worker(&mut self, now: Nanos, id: WorkerId, out: &mut Vec<Action>) {
        let Some(worker) = self.workers.get_mut(id.0) else { return };
        if worker.step == Some(Step::Sweeping) {
            self.open_or_sweep(now, id, out);
            return;
        }
        if worker.step.is_some() {
            return;
        }
        let moves = worker.row.slice != worker.slice || worker.rejoin;
        let stays_put = worker.in_switch && worker.fate == Fate::Stays && !moves;
        if !stays_put || !worker.row.open {
            self.begin_change(now, id, out);
        } else if (worker.row.at, worker.row.workers) != (worker.at, worker.workers) {
            worker.step = Some(Step::Readdressing);
            (worker.row.at, worker.row.workers) = (worker.at, worker.workers);
            let row = worker.row;
            self.ledger.ask(TableOp::SetWorker(id, Some(row)), Expect::Step(id), out);
        } else {
            self.answer_worker(id, out);
        }
    }

    /// The switch has answered a step: takes the next step.
    pub(crate) fn step_done(&mut self, now: Nanos, id: WorkerId, out: &mut Vec<Action>) {
        let Some(worker) = self.workers.get_mut(id.0) else { return };
        match worker.step {
            Some(Step::Closing) => self.raise(id, out),
            Some(Step::Raising) => {
                worker.step = Some(Step::Reading);
                let slice = worker.row.slice;
                self.ledger.ask(TableOp::ReadWorker(id), Expect::Counters(id), out);
                self.ledger.ask(TableOp::ReadSlice(slice), Expect::Mark(id), out);
            }
            Some(Step::Reading) if worker.fate == Fate::Stays => {
                worker.step = Some(Step::Resetting);
                let start = self.plan.counters_start;
                self.ledger.ask(TableOp::ResetCounters(id, start), Expect::Step(id), out);
            }
            Some(Step::Reading) => self.clear(id, out),
            Some(Step::Resetting) => self.open_or_sweep(now, id, out),
            Some(Step::Opening) => self.opened(now, id, out),
            Some(Step::Readdressing) => {
                worker.step = None;
                self.settle_worker(now, id, out);
            }
            Some(Step::Clearing) => self.departed(now, id, out),
            Some(Step::Sweeping) | None => self.confused(now, out),
        }
    }

    /// The counters between two generations. `sent` is final, since no task of the old generation can be
    /// sent any more.
    pub(crate) fn counters_read(
        &mut self,
        now: Nanos,
        id: WorkerId,
        state: WorkerState,
        out: &mut Vec<Action>,
    ) {
        if state.generation_out != self.generations[usize::from(id.0)] {
            self.confused(now, out);
            return;
        }
        let Some(worker) = self.workers.get_mut(id.0) else { return };
        worker.final_sent = (worker.in_switch && worker.counted).then_some(state.sent);
    }

    /// Notes how far the token ring had got: tokens that entered it until now may be stale, later ones are
    /// not.
    pub(crate) fn ring_read(&mut self, now: Nanos, id: WorkerId, state: SliceState, out: &mut Vec<Action>) {
        let Some(worker) = self.workers.get(id.0) else { return };
        if worker.in_switch {
            let slice = worker.row.slice;
            self.mark_stale(now, slice, id, state);
        }
        self.step_done(now, id, out);
    }

    fn begin_change(&mut self, now: Nanos, id: WorkerId, out: &mut Vec<Action>) {
        let Some(worker) = self.workers.get_mut(id.0) else { return };
        if !worker.in_switch {
            self.raise(id, out);
            return;
        }
        worker.step = Some(Step::Closing);
        worker.row.open = false;
        let row = worker.row;
        if let Some(slice) = worker.serves.take() {
            self.refresh_slice(now, slice, out);
        }
        self.ledger.ask(TableOp::SetWorker(id, Some(row)), Expect::Done, out);
        self.ledger.ask(TableOp::Drain, Expect::Step(id), out);
    }

    fn raise(&mut self, id: WorkerId, out: &mut Vec<Action>) {
        let Some(worker) = self.workers.get_mut(id.0) else { return };
        worker.step = Some(Step::Raising);
        // Newer than the generations of all indices: a host that gets another index must see that its
        // registration changed.
        let newest = self.generations.iter().map(|generation| generation.0).max().unwrap_or(0);
        let generation = Generation(newest.saturating_add(1));
        self.generations[usize::from(id.0)] = generation;
        self.ledger.ask(TableOp::RaiseGeneration(id, generation), Expect::Done, out);
        self.ledger.ask(TableOp::Drain, Expect::Step(id), out);
    }

    fn clear(&mut self, id: WorkerId, out: &mut Vec<Action>) {
        if let Some(worker) = self.workers.get_mut(id.0) {
            worker.step = Some(Step::Clearing);
            self.ledger.ask(TableOp::SetWorker(id, None), Expect::Step(id), out);
        }
    }

    /// A slice was read: opens those workers whose tokens the ring now has room for.
    pub(crate) fn open_where_swept(&mut self, now: Nanos, slice: SliceId, out: &mut Vec<Action>) {
        let waits = |w: &Worker| w.step == Some(Step::Sweeping) && w.slice == slice;
        let waiting: Vec<_> =
            self.workers.iter().filter(|(_, w)| waits(w)).map(|(i, _)| WorkerId(i)).collect();
        for worker in waiting {
            self.open_or_sweep(now, worker, out);
        }
    }

    /// Opens a worker whose counters were reset, as soon as there is room for its tokens; clears its row if
    /// it does not stay.
    fn open_or_sweep(&mut self, now: Nanos, id: WorkerId, out: &mut Vec<Action>) {
        let Some(worker) = self.workers.get(id.0) else { return };
        let slice = worker.slice;
        if worker.fate != Fate::Stays {
            self.clear(id, out);
        } else if self.has_room_to_open(id, slice) {
            self.open(id, out);
        } else if let Some(worker) = self.workers.get_mut(id.0) {
            worker.step = Some(Step::Sweeping);
            self.sweep_soon(now, slice);
        }
    }

    fn open(&mut self, id: WorkerId, out: &mut Vec<Action>) {
        let generation = self.generations[usize::from(id.0)];
        let kind = self.workers.get(id.0).and_then(|worker| self.kind_in(worker.labels, worker.slice));
        let Some(worker) = self.workers.get_mut(id.0) else { return };
        worker.row.kind = kind.unwrap_or_default();
        worker.step = Some(Step::Opening);
        worker.row.generation = generation;
        worker.row.open = true;
        worker.row.slice = worker.slice;
        worker.rejoin = false;
        (worker.row.at, worker.row.workers) = (worker.at, worker.workers);
        let row = worker.row;
        self.ledger.ask(TableOp::SetWorker(id, Some(row)), Expect::Step(id), out);
    }

    fn opened(&mut self, now: Nanos, id: WorkerId, out: &mut Vec<Action>) {
        let Some(worker) = self.workers.get_mut(id.0) else { return };
        let joined = !worker.in_switch;
        worker.step = None;
        worker.in_switch = true;
        worker.counted = true;
        worker.serves = Some(worker.row.slice);
        let (name, row) = (worker.registration.shown(), worker.row);
        let slice = self.slice_name(row.slice);
        let generation = row.generation;
        out.push(Action::Note(if joined {
            Note::WorkerJoined { name, worker: id, slice, generation }
        } else {
            Note::WorkerMoved { name, worker: id, slice, generation }
        }));
        self.refresh_slice(now, row.slice, out);
        self.settle_worker(now, id, out);
    }

    fn departed(&mut self, now: Nanos, id: WorkerId, out: &mut Vec<Action>) {
        let Some(mut worker) = self.workers.remove(id.0) else { return };
        let name = worker.registration.shown();
        for Waiter { call, wants } in worker.registration.take_waiters() {
            let answer = gone_answer(wants, &name, worker.final_sent);
            out.push(Action::Answer { call, answer });
        }
        self.note_departure(id, &worker, out);
        self.sweep_soon(now, worker.row.slice);
    }

    /// Remembers a worker that has gone, and notes it.
    pub(crate) fn note_departure(&mut self, id: WorkerId, worker: &Worker, out: &mut Vec<Action>) {
        let name = worker.registration.shown();
        if self.departed.len() >= DEPARTED_MAX {
            self.departed.pop_front();
        }
        self.departed.push_back((worker.registration.life, worker.final_sent));
        out.push(Action::Note(match worker.fate {
            Fate::Leaves => Note::WorkerLeft { name, worker: id },
            Fate::Stays | Fate::Dies => Note::WorkerDied { name, worker: id },
        }));
    }
}

/// The answer to a call whose worker has gone.
fn gone_answer(wants: Wants, name: &str, final_sent: Option<Serial>) -> Answer {
    match wants {
        Wants::Grant => wait(Waiting::Leaving, SOON),
        Wants::Left => Answer::Left { final_sent },
        Wants::Moved => Answer::Refused { why: Refusal::WorkerGone { name: name.into() } },
    }
}
