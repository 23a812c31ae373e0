//! The controller's steps on a program's tables and registers.

use sluice_wire::serving::Labels;
use sluice_wire::tables::{ClientRow, SliceRow, SliceState, TableAnswer, TableOp, WorkerRow, WorkerState};
use sluice_wire::{Attempt, ClientId, Generation, Serial, SliceId, TaskType, WorkerId};

use super::memory::replay_word;
use super::{Front, Scheduler};
use crate::program::Program;

/// Carries out one step; [`TableAnswer::OutOfRange`] if an index or value lies outside the program's shape.
pub(super) fn table<S: Scheduler>(program: &mut S, op: TableOp) -> TableAnswer {
    step(program, op).unwrap_or(TableAnswer::OutOfRange)
}

/// Carries out one step; `None` if an index or value lies outside the program's shape.
fn step<S: Scheduler>(program: &mut S, op: TableOp) -> Option<TableAnswer> {
    let front = program.front_mut();
    match op {
        TableOp::ReadShape => return Some(TableAnswer::Shape(program.shape())),
        TableOp::Claim(term) => return Some(front.term.claim(term)),
        TableOp::SetType(of, slice) => front.set_type(of, slice)?,
        TableOp::ReadType(of) => return Some(TableAnswer::Type(*front.tables.types.get(of.0 as usize)?)),
        TableOp::SetNeeds(of, needs) => front.set_needs(of, needs)?,
        TableOp::SetSlice(slice, row) => {
            let before = front.set_slice(slice, row)?;
            program.slice_set(slice, &before, &row);
        }
        TableOp::ReadSlice(slice) => return read_slice(program, slice).map(TableAnswer::Slice),
        TableOp::SetWorker(worker, row) => {
            front.set_worker(worker, row)?;
            program.worker_set(worker, row.as_ref());
        }
        TableOp::ReadWorker(worker) => return front.read_worker(worker).map(TableAnswer::Worker),
        TableOp::RaiseGeneration(worker, generation) => {
            let index = front.known_worker(worker)?;
            front.memory.gen_out.poke(index, generation.0);
            program.grants_ended(worker);
        }
        TableOp::ResetCounters(worker, start) => {
            front.reset_counters(worker, start)?;
            program.grants_ended(worker);
        }
        TableOp::SetClient(client, row) => front.set_client(client, row)?,
        TableOp::SetServer(..)
        | TableOp::ReadServer(_)
        | TableOp::SetRing(..)
        | TableOp::ReadRing(..)
        | TableOp::SetCopies(..) => return program.engine()?.table(op),
        TableOp::SetSpine(slice, row) => return program.spine_set(slice, row),
        TableOp::ReadClient(client) => {
            return Some(TableAnswer::Client(*front.tables.clients.get(client.0 as usize)?));
        }
        // The driver passes a SWEEP to the program as `Arrival::Control`; nothing is written here.
        TableOp::Inject(sweep) => return (sweep.slice.0 < front.config.slices).then_some(TableAnswer::Done),
        // A pass is one call, so no pass is under way now and there is nothing to wait for.
        TableOp::Drain => {}
    }
    Some(TableAnswer::Done)
}

fn read_slice<S: Scheduler>(program: &S, slice: SliceId) -> Option<SliceState> {
    let index = slice.0 as usize;
    let row = *program.front().tables.slices.get(index)?;
    let refused_late = program.front().refused_late[index];
    Some(SliceState { row, refused_late, ..program.slice_state(index) })
}

impl Front {
    fn set_type(&mut self, of: TaskType, slice: Option<SliceId>) -> Option<()> {
        if slice.is_some_and(|slice| slice.0 >= self.config.slices) {
            return None;
        }
        *self.tables.types.get_mut(of.0 as usize)? = slice;
        Some(())
    }

    fn set_needs(&mut self, of: TaskType, needs: Labels) -> Option<()> {
        let of = self.tables.needs.get_mut(of.0 as usize).filter(|_| self.kinds > 1)?;
        *of = needs;
        Some(())
    }

    /// Writes a slice's row; returns the row before.
    fn set_slice(&mut self, slice: SliceId, row: SliceRow) -> Option<SliceRow> {
        if row.limit > self.config.tasks_per_slice {
            return None;
        }
        let held = self.tables.slices.get_mut(slice.0 as usize)?;
        Some(core::mem::replace(held, row))
    }

    fn set_worker(&mut self, worker: WorkerId, row: Option<WorkerRow>) -> Option<()> {
        if row.is_some_and(|row| row.slice.0 >= self.config.slices || row.kind >= self.kinds) {
            return None;
        }
        *self.tables.workers.get_mut(worker.0 as usize)? = row;
        Some(())
    }

    fn read_worker(&self, worker: WorkerId) -> Option<WorkerState> {
        let index = self.known_worker(worker)?;
        Some(WorkerState {
            row: self.tables.workers[index],
            generation_out: Generation(self.memory.gen_out.peek(index)),
            seen: Serial(self.memory.seen.peek(index)),
            sent: Serial(self.memory.sent.peek(index)),
        })
    }

    fn reset_counters(&mut self, worker: WorkerId, start: Serial) -> Option<()> {
        let index = self.known_worker(worker)?;
        self.memory.seen.poke(index, start.0);
        self.memory.seen_out.poke(index, start.0);
        self.memory.sent.poke(index, start.0);
        Some(())
    }

    /// Writes or removes a client's row. A new row sets its replay cells to the try before the first that
    /// may come.
    fn set_client(&mut self, client: ClientId, row: Option<(ClientRow, Serial)>) -> Option<()> {
        let held = self.tables.clients.get_mut(client.0 as usize)?;
        let before = core::mem::replace(held, row.map(|(row, _)| row));
        self.tables.registered += u32::from(row.is_some());
        self.tables.registered -= u32::from(before.is_some());
        if let Some((_, floor)) = row {
            let cells = self.config.replay_cells as usize;
            let before = replay_word(Serial(floor.0.wrapping_sub(1)), Attempt(u16::MAX));
            self.memory.replay.fill(client.0 as usize * cells, cells, before);
        }
        Some(())
    }

    fn known_worker(&self, worker: WorkerId) -> Option<usize> {
        (worker.0 < self.config.workers).then_some(worker.0 as usize)
    }
}
