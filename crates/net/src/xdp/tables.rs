//! The controller's steps on the program's maps.

use sluice_wire::tables::{ClientRow, Feed, Shape, SliceState, TableAnswer, TableOp, WorkerRow, WorkerState};
use sluice_wire::{ClientId, Generation, Serial, SliceId, WorkerId};
use zerocopy::transmute;

use super::XdpSwitch;
use super::layout::{Client, Rows, Slice, Way, Worker, WorkerCounters};
use crate::NetError;

/// A worker's counters where they start.
pub(super) const fn counters_at(start: u32) -> [u8; 16] {
    let counters = WorkerCounters { seen: start, seen_out: start, sent: start, unused: 0 };
    transmute!(counters)
}

/// One step. What it says of indices and values is what the model says.
pub(super) fn table(switch: &mut XdpSwitch, op: TableOp) -> Result<TableAnswer, NetError> {
    let size = switch.config.size;
    let out_of_range = match op {
        TableOp::SetType(of, slice) => {
            of.0 >= size.types || slice.is_some_and(|slice| slice.0 >= size.slices)
        }
        TableOp::ReadType(of) => of.0 >= size.types,
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
        TableOp::ReadShape | TableOp::Drain => false,
        // No server has a ring here yet.
        TableOp::SetServer(..)
        | TableOp::ReadServer(_)
        | TableOp::SetRing(..)
        | TableOp::ReadRing(..)
        | TableOp::SetCopies(..) => true,
    };
    if out_of_range { Ok(TableAnswer::OutOfRange) } else { step(switch, op) }
}

fn step(switch: &mut XdpSwitch, op: TableOp) -> Result<TableAnswer, NetError> {
    match op {
        TableOp::ReadShape => return Ok(TableAnswer::Shape(shape(switch))),
        TableOp::SetType(of, slice) => {
            switch.set("types", of.0.into(), slice.map_or(0, |slice| u32::from(slice.0) + 1))?;
        }
        TableOp::ReadType(of) => {
            let held: u32 = switch.get("types", of.0.into())?;
            return Ok(TableAnswer::Type(held.checked_sub(1).map(|slice| SliceId(slice as u16))));
        }
        TableOp::SetSlice(slice, row) => {
            let [before, now] = slices(switch, slice)?.changed(Slice::from(row));
            switch.set::<[u8; 40]>("slices", slice.0.into(), before.to_bytes())?;
            switch.set::<[u8; 40]>("slices", slice.0.into(), now.to_bytes())?;
        }
        TableOp::ReadSlice(slice) => return read_slice(switch, slice).map(TableAnswer::Slice),
        TableOp::SetWorker(worker, row) => set_worker(switch, worker, row)?,
        TableOp::ReadWorker(worker) => return read_worker(switch, worker).map(TableAnswer::Worker),
        TableOp::RaiseGeneration(worker, generation) => {
            let mut rows = workers(switch, worker)?;
            rows.gen_out = generation.0;
            switch.set::<[u8; 136]>("workers", worker.0.into(), rows.to_bytes())?;
        }
        TableOp::ResetCounters(worker, start) => {
            switch.set("worker_counters", worker.0.into(), counters_at(start.0))?;
        }
        TableOp::SetClient(client, row) => set_client(switch, client, row)?,
        TableOp::ReadClient(client) => {
            return Ok(TableAnswer::Client(clients(switch, client)?.holds().row()));
        }
        // SWEEPs have a call of their own; a test run has ended before the next step is taken.
        _ => {}
    }
    Ok(TableAnswer::Done)
}

fn shape(switch: &XdpSwitch) -> Shape {
    let size = &switch.config.size;
    Shape {
        epoch: size.epoch,
        workers: size.workers,
        clients: size.clients,
        slices: size.slices,
        types: size.types,
        servers: 0,
        tasks_per_slice: size.tasks_per_slice,
        tokens_per_slice: size.tokens_per_slice,
        replay_cells: size.replay_cells,
        feed: Feed::Tokens,
    }
}

fn set_worker(switch: &mut XdpSwitch, worker: WorkerId, row: Option<WorkerRow>) -> Result<(), NetError> {
    let row = row.map_or_else(Worker::default, |row| Worker::new(&row, Way::default()));
    for rows in workers(switch, worker)?.changed(row) {
        switch.set::<[u8; 136]>("workers", worker.0.into(), rows.to_bytes())?;
    }
    Ok(())
}

/// A new row starts its replay cells one try before the first that may come.
fn set_client(
    switch: &mut XdpSwitch,
    client: ClientId,
    row: Option<(ClientRow, Serial)>,
) -> Result<(), NetError> {
    if let Some((_, floor)) = row {
        let cells = switch.config.size.replay_cells;
        let before = u64::from(floor.0.wrapping_sub(1)) << 32 | 0xffff_0000;
        for cell in 0..cells {
            switch.set("replay", u32::from(client.0) * cells + cell, before)?;
        }
    }
    let row = row.map_or_else(Client::default, |(row, _)| Client::new(&row, Way::default()));
    for rows in clients(switch, client)?.changed(row) {
        switch.set::<[u8; 120]>("clients", client.0.into(), rows.to_bytes())?;
    }
    Ok(())
}

fn read_slice(switch: &XdpSwitch, slice: SliceId) -> Result<SliceState, NetError> {
    let queue = switch.queue(slice)?;
    let [tokens_in, tokens_out] = queue.tokens().map(Serial);
    Ok(SliceState {
        row: slices(switch, slice)?.holds().into(),
        balance: queue.balance(),
        tokens_in,
        tokens_out,
    })
}

fn read_worker(switch: &XdpSwitch, worker: WorkerId) -> Result<WorkerState, NetError> {
    let rows = workers(switch, worker)?;
    let counters: [u8; 16] = switch.get("worker_counters", worker.0.into())?;
    let counters: WorkerCounters = transmute!(counters);
    Ok(WorkerState {
        row: rows.holds().row(),
        generation_out: Generation(rows.gen_out),
        seen: Serial(counters.seen),
        sent: Serial(counters.sent),
    })
}

fn workers(switch: &XdpSwitch, worker: WorkerId) -> Result<Rows<Worker>, NetError> {
    let bytes: [u8; 136] = switch.get("workers", worker.0.into())?;
    Ok(Rows::from_bytes(&bytes))
}

fn clients(switch: &XdpSwitch, client: ClientId) -> Result<Rows<Client>, NetError> {
    let bytes: [u8; 120] = switch.get("clients", client.0.into())?;
    Ok(Rows::from_bytes(&bytes))
}

fn slices(switch: &XdpSwitch, slice: SliceId) -> Result<Rows<Slice>, NetError> {
    let bytes: [u8; 40] = switch.get("slices", slice.0.into())?;
    Ok(Rows::from_bytes(&bytes))
}
