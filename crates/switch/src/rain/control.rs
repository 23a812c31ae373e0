//! The controller's steps on Rain's tables and registers.

use sluice_wire::tables::{ClientRow, SliceRow, SliceState, TableAnswer, TableOp, WorkerState};
use sluice_wire::{Attempt, ClientId, Nanos, Packet, Serial, SliceId, TaskType, WorkerId};

use super::memory::replay_word;
use super::{Arrival, Rain, Verdict};

impl Rain {
    pub(super) fn control(&mut self, op: TableOp) -> TableAnswer {
        self.step(op).unwrap_or(TableAnswer::OutOfRange)
    }

    /// `None`: the index or value lies outside the shape.
    fn step(&mut self, op: TableOp) -> Option<TableAnswer> {
        match op {
            TableOp::ReadShape => return Some(TableAnswer::Shape(self.shape())),
            TableOp::SetType(of, slice) => self.set_type(of, slice)?,
            TableOp::ReadType(of) => return Some(TableAnswer::Type(*self.tables.types.get(of.0 as usize)?)),
            TableOp::SetSlice(slice, row) => self.set_slice(slice, row)?,
            TableOp::ReadSlice(slice) => return self.read_slice(slice).map(TableAnswer::Slice),
            TableOp::SetWorker(worker, row) => {
                if row.is_some_and(|row| row.slice.0 >= self.config.slices) {
                    return None;
                }
                *self.tables.workers.get_mut(worker.0 as usize)? = row;
            }
            TableOp::ReadWorker(worker) => return self.read_worker(worker).map(TableAnswer::Worker),
            TableOp::RaiseGeneration(worker, generation) => {
                self.memory.gen_out.poke(self.known_worker(worker)?, generation.0);
            }
            TableOp::ResetCounters(worker, start) => self.reset_counters(worker, start)?,
            TableOp::SetClient(client, row) => self.set_client(client, row)?,
            TableOp::ReadClient(client) => {
                return Some(TableAnswer::Client(*self.tables.clients.get(client.0 as usize)?));
            }
            // A SWEEP takes its first pass from whoever drives the switch, as `Arrival::Control`.
            TableOp::Inject(sweep) => {
                return (sweep.slice.0 < self.config.slices).then_some(TableAnswer::Done);
            }
            // A pass is one call: none is under way now.
            TableOp::Drain => {}
        }
        Some(TableAnswer::Done)
    }

    fn set_type(&mut self, of: TaskType, slice: Option<SliceId>) -> Option<()> {
        if slice.is_some_and(|slice| slice.0 >= self.config.slices) {
            return None;
        }
        *self.tables.types.get_mut(of.0 as usize)? = slice;
        Some(())
    }

    fn set_slice(&mut self, slice: SliceId, row: SliceRow) -> Option<()> {
        if row.limit > self.config.tasks_per_slice {
            return None;
        }
        *self.tables.slices.get_mut(slice.0 as usize)? = row;
        Some(())
    }

    fn read_slice(&self, slice: SliceId) -> Option<SliceState> {
        let index = slice.0 as usize;
        Some(SliceState {
            row: *self.tables.slices.get(index)?,
            balance: self.memory.balance.peek(index),
            tokens_in: Serial(self.memory.token_tail.peek(index)),
            tokens_out: Serial(self.memory.token_head.peek(index)),
        })
    }

    fn read_worker(&self, worker: WorkerId) -> Option<WorkerState> {
        let index = self.known_worker(worker)?;
        Some(WorkerState {
            row: self.tables.workers[index],
            generation_out: sluice_wire::Generation(self.memory.gen_out.peek(index)),
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

    /// A new row starts its replay cells one try before the first that may come.
    fn set_client(&mut self, client: ClientId, row: Option<(ClientRow, Serial)>) -> Option<()> {
        *self.tables.clients.get_mut(client.0 as usize)? = row.map(|(row, _)| row);
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

    /// The first pass of an injected SWEEP; for drivers, beside [`Rain::table`].
    pub fn inject(&mut self, now: Nanos, sweep: sluice_wire::Sweep) -> Verdict {
        self.pass(now, Arrival::Control(Packet::Sweep(sweep)))
    }
}
