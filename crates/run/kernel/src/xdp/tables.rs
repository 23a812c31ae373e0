//! Carries out the controller's steps on the program's maps.

use sluice_switch::rain::TargetChange;
use sluice_wire::tables::{ClientRow, RingCounts, SliceState, TableAnswer, TableOp, WorkerState};
use sluice_wire::{ClientId, Generation, Nanos, Serial, SliceId, Term, WorkerId};

use super::XdpSwitch;
use super::layout::{Client, Life, Queue, Slice, Worker, WorkerCounters};
use super::maps::{Maps, Table};
use crate::KernelError;

impl XdpSwitch {
    /// Carries out one of the controller's steps; SWEEPs go through [`XdpSwitch::sweep`]. Indices and
    /// values are checked as in the model.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn table(&mut self, op: TableOp) -> Result<TableAnswer, KernelError> {
        let size = self.config.size;
        let out_of_range = match op {
            TableOp::SetType(of, slice) => {
                of.0 >= size.types || slice.is_some_and(|slice| slice.0 >= size.slices)
            }
            TableOp::ReadType(of) => of.0 >= size.types,
            TableOp::SetNeeds(..) | TableOp::SetSpine(..) => true,
            TableOp::SetSlice(slice, row) => slice.0 >= size.slices || row.limit > size.tasks_per_slice,
            TableOp::ReadSlice(slice) => slice.0 >= size.slices,
            TableOp::SetWorker(worker, row) => {
                worker.0 >= size.workers || row.is_some_and(|row| row.slice.0 >= size.slices)
            }
            TableOp::ReadWorker(worker)
            | TableOp::RaiseGeneration(worker, _)
            | TableOp::ResetCounters(worker, _) => worker.0 >= size.workers,
            TableOp::SetClient(client, _) | TableOp::ReadClient(client) => client.0 >= size.clients,
            TableOp::Inject(sweep) => sweep.slice.0 >= size.slices,
            TableOp::ReadShape | TableOp::Claim(_) | TableOp::Drain => false,
            TableOp::SetServer(..)
            | TableOp::ReadServer(_)
            | TableOp::SetRing(..)
            | TableOp::ReadRing(..)
            | TableOp::SetCopies(..) => return self.server_step(op),
        };
        if out_of_range { Ok(TableAnswer::OutOfRange) } else { step(self, op) }
    }
}

fn step(switch: &mut XdpSwitch, op: TableOp) -> Result<TableAnswer, KernelError> {
    let cells = switch.config.size.replay_cells;
    let size = switch.config.size.shape_of_plain_rain(Term(switch.maps.lives.get::<Life>(0).term));
    let maps = &mut switch.maps;
    match op {
        TableOp::ReadShape => return Ok(TableAnswer::Shape(size)),
        TableOp::Claim(claimed) => {
            let mut life: Life = maps.lives.get(0);
            let mut term = Term(life.term);
            let answer = term.claim(claimed);
            life.term = term.0;
            maps.lives.set(0, life);
            return Ok(answer);
        }
        TableOp::SetType(of, slice) => {
            maps.types.set(of.0.into(), slice.map_or(0, |slice| u32::from(slice.0) + 1));
        }
        TableOp::ReadType(of) => {
            let held: u32 = maps.types.get(of.0.into());
            return Ok(TableAnswer::Type(held.checked_sub(1).map(|slice| SliceId(slice as u16))));
        }
        TableOp::SetSlice(slice, row) => {
            let index = slice.0.into();
            let before = maps.rows::<Slice>(Table::Slices, index).holds().into();
            maps.change(Table::Slices, index, Slice::from(row))?;
            let held = maps.queues.get::<Queue>(index).limit;
            maps.set_target(index, TargetChange::of(&before, &row, held, Nanos(0)));
        }
        TableOp::ReadSlice(slice) => return Ok(TableAnswer::Slice(read_slice(maps, slice))),
        TableOp::SetWorker(worker, row) => {
            let row = row.map_or_else(Worker::default, |row| Worker::new(&row));
            maps.change(Table::Workers, worker.0.into(), row)?;
        }
        TableOp::ReadWorker(worker) => return Ok(TableAnswer::Worker(read_worker(maps, worker))),
        TableOp::RaiseGeneration(worker, generation) => {
            maps.set_gen_out(worker.0.into(), generation.0);
        }
        TableOp::ResetCounters(worker, start) => {
            maps.worker_counters.set(worker.0.into(), WorkerCounters::starting(start.0));
        }
        TableOp::SetClient(client, row) => set_client(maps, cells, client, row)?,
        TableOp::ReadClient(client) => {
            let rows = maps.rows::<Client>(Table::Clients, client.0.into());
            return Ok(TableAnswer::Client(rows.holds().row()));
        }
        TableOp::Drain => maps.drain()?,
        // SWEEPs have a call of their own; steps on servers are handled elsewhere.
        _ => {}
    }
    Ok(TableAnswer::Done)
}

/// Sets a client's row. The replay cells of a new row start one attempt before the first that may come.
fn set_client(
    maps: &mut Maps,
    cells: u32,
    client: ClientId,
    row: Option<(ClientRow, Serial)>,
) -> Result<(), KernelError> {
    if let Some((_, floor)) = row {
        let before = u64::from(floor.0.wrapping_sub(1)) << 32 | 0xffff_0000;
        for cell in 0..cells {
            maps.replay.set(u32::from(client.0) * cells + cell, before);
        }
    }
    let before = maps.rows::<Client>(Table::Clients, client.0.into()).holds().row();
    let mut life: Life = maps.lives.get(0);
    life.clients = life.clients + u32::from(row.is_some()) - u32::from(before.is_some());
    maps.lives.set(0, life);
    let row = row.map_or_else(Client::default, |(row, _)| Client::new(&row));
    maps.change(Table::Clients, client.0.into(), row)
}

fn read_slice(maps: &Maps, slice: SliceId) -> SliceState {
    let queue: Queue = maps.queues.get(slice.0.into());
    let [tokens_in, tokens_out] = queue.tokens().map(|count| RingCounts::of_one(Serial(count)));
    let waiting = queue.balance().min(0).unsigned_abs();
    let tasks_out = Serial(queue.tasks_out());
    let [tasks_in, tasks_out] = [tasks_out.plus(waiting), tasks_out].map(RingCounts::of_one);
    SliceState {
        row: maps.rows::<Slice>(Table::Slices, slice.0.into()).holds().into(),
        balance: queue.balance(),
        tokens_in,
        tokens_out,
        tasks_in,
        tasks_out,
        measured_limit: TargetChange::tasks(queue.limit),
        refused_busy: queue.refused_busy,
        // The kernel's switch leaves late tasks to their workers.
        refused_late: 0,
    }
}

fn read_worker(maps: &Maps, worker: WorkerId) -> WorkerState {
    let rows = maps.rows::<Worker>(Table::Workers, worker.0.into());
    let counters: WorkerCounters = maps.worker_counters.get(worker.0.into());
    WorkerState {
        row: rows.holds().row(),
        generation_out: Generation(rows.gen_out),
        seen: Serial(counters.seen),
        sent: Serial(counters.sent),
    }
}
