//! The program's maps as shared memory: tables and registers, read and written in whole words while packets
//! pass.
//!
//! A table's row consists of two copies and a word that says which one is valid. A change writes the
//! invalid copy and then the word, so a pass sees the old row or the new one, never a mixture. Before the
//! same row is changed again, all passes that may still read the old copy must have ended. This module
//! waits for them, unless a drain has done so meanwhile.

use std::collections::HashSet;
use std::mem::offset_of;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use aya::Ebpf;
use aya::maps::{Array, ArrayOfMaps, Map, MapData};
use sluice_net::rdma::SharedMemory;
use sluice_switch::Config;
use sluice_switch::rain::TargetChange;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::failing::{chain, failed};
use super::layout::{Client, Queue, Rows, Slice, Worker, WorkerCounters};
use super::server_rows::{Group, Ring, Server};
use crate::KernelError;

/// A map without useful contents: changing it makes the kernel wait for running passes.
const DRAINS: &str = "drains";

/// An array map of the kernel, mapped into memory.
#[derive(Debug)]
pub(super) struct Values {
    memory: SharedMemory,
    stride: usize,
    count: u32,
}

/// The tables whose rows have two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Table {
    Slices,
    Workers,
    Clients,
    Servers,
    Rings,
}

/// All arrays.
pub(super) struct Maps {
    pub(super) layout: Values,
    pub(super) lives: Values,
    pub(super) types: Values,
    pub(super) worker_counters: Values,
    pub(super) replay: Values,
    pub(super) queues: Values,
    pub(super) cells: Values,
    slices: Values,
    workers: Values,
    clients: Values,
    servers: Values,
    rings: Values,
    pub(super) groups: Values,
    pub(super) psns: Values,
    /// Rows whose invalid copy may still be read by a pass.
    changed: HashSet<(Table, u32)>,
    drains: ArrayOfMaps<MapData, Array<MapData, u32>>,
    drained: Array<MapData, u32>,
    waits: bool,
}

impl Values {
    pub(super) fn get<V: FromBytes>(&self, index: u32) -> V {
        let mut bytes = vec![0; size_of::<V>()];
        self.memory.read(index as usize * self.stride, &mut bytes);
        V::read_from_bytes(&bytes).expect("as many bytes as it has")
    }

    /// Replaces a value, word by word.
    pub(super) fn set<V: IntoBytes + Immutable + Copy>(&self, index: u32, value: V) {
        self.memory.write(index as usize * self.stride, value.as_bytes());
    }

    /// Replaces all.
    pub(super) fn fill<V: IntoBytes + Immutable + Copy>(&self, value: V) {
        (0..self.count).for_each(|index| self.set(index, value));
    }

    fn open(ebpf: &Ebpf, name: &'static str) -> Result<Self, KernelError> {
        let found = ebpf.map(name).ok_or_else(|| failed("find the map", name))?;
        let Map::Array(map) = found else { return Err(failed("map an array", name)) };
        Self::of(map)
    }

    /// The array that is pinned at this path.
    pub(super) fn pinned(path: &Path) -> Result<Self, KernelError> {
        let map = MapData::from_pin(path).map_err(|why| failed("open a pinned map", &chain(&why)))?;
        Self::of(&map)
    }

    /// The array's size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    fn of(map: &MapData) -> Result<Self, KernelError> {
        let info = map.info().map_err(|why| failed("ask about a map", &chain(&why)))?;
        let stride = info.value_size().next_multiple_of(8) as usize;
        let count = info.max_entries();
        let memory = SharedMemory::of_map(map.fd().as_fd(), stride * count as usize)
            .map_err(|why| failed("map an array", &why))?;
        Ok(Self { memory, stride, count })
    }
}

impl Maps {
    /// Opens the maps of a loaded program. In test mode (`waits` false), changes do not wait for passes: a
    /// test run has ended by then.
    pub(super) fn open(ebpf: &mut Ebpf, waits: bool) -> Result<Self, KernelError> {
        let drains = ebpf.take_map(DRAINS).ok_or_else(|| failed("find the map", DRAINS))?;
        let drains = ArrayOfMaps::try_from(drains).map_err(|why| failed("open a map", &chain(&why)))?;
        let drained = Array::create(1, 0).map_err(|why| failed("make a map", &chain(&why)))?;
        let values = |name| Values::open(ebpf, name);
        Ok(Self {
            layout: values("layout")?,
            lives: values("lives")?,
            types: values("types")?,
            worker_counters: values("worker_counters")?,
            replay: values("replay")?,
            queues: values("queues")?,
            cells: values("cells")?,
            slices: values("slices")?,
            workers: values("workers")?,
            clients: values("clients")?,
            servers: values("servers")?,
            rings: values("rings")?,
            groups: values("groups")?,
            psns: values("psns")?,
            changed: HashSet::new(),
            drains,
            drained,
            waits,
        })
    }

    /// Waits until every pass that had begun has ended.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub(super) fn drain(&mut self) -> Result<(), KernelError> {
        self.changed.clear();
        if !self.waits {
            return Ok(());
        }
        self.drains.set(0, &self.drained, 0).map_err(|why| failed("wait for all passes", &chain(&why)))
    }

    /// A table's row, with its two copies.
    pub(super) fn rows<R: FromBytes + Copy>(&self, table: Table, index: u32) -> Rows<R>
    where
        Rows<R>: FromBytes,
    {
        self.table(table).get(index)
    }

    /// Changes a row.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub(super) fn change<R>(&mut self, table: Table, index: u32, row: R) -> Result<(), KernelError>
    where
        R: IntoBytes + Immutable + Copy,
    {
        if !self.changed.insert((table, index)) {
            self.drain()?;
            self.changed.insert((table, index));
        }
        let values = self.table(table);
        let other = values.get::<u32>(index) & 1 ^ 1;
        let at = index as usize * values.stride;
        values.memory.write(at + Rows::<R>::HEAD + other as usize * size_of::<R>(), row.as_bytes());
        fence(Ordering::Release);
        values.memory.write(at, other.as_bytes());
        Ok(())
    }

    /// Sets the generation that a worker's popped tokens must have.
    pub(super) fn set_gen_out(&self, worker: u32, generation: u32) {
        let at = worker as usize * self.workers.stride + size_of::<u32>();
        self.workers.memory.write(at, generation.as_bytes());
    }

    /// Writes what a slice's target needs while packets pass.
    pub(super) fn set_target(&self, slice: u32, change: TargetChange) {
        let words = &self.queues.memory;
        let at = |field: usize| slice as usize * self.queues.stride + field;
        if let Some(window) = change.window {
            words.write(at(offset_of!(Queue, window)), window.as_bytes());
        }
        if let Some(limit) = change.limit {
            words.write(at(offset_of!(Queue, limit)), limit.as_bytes());
        }
        words.write(at(offset_of!(Queue, span)), change.span.as_bytes());
    }

    /// Empties the tables and resets counters and queues. Must not be called while packets pass.
    pub(super) fn clear(&self, counters: WorkerCounters, queue: Queue) {
        self.types.fill(0u32);
        self.slices.fill([0u8; size_of::<Rows<Slice>>()]);
        self.workers.fill([0u8; size_of::<Rows<Worker>>()]);
        self.clients.fill([0u8; size_of::<Rows<Client>>()]);
        // Also forgets the learned addresses.
        self.worker_counters.fill([0u64; 4]);
        self.worker_counters.fill(counters);
        self.replay.fill(0u64);
        self.servers.fill([0u8; size_of::<Rows<Server>>()]);
        self.rings.fill([0u8; size_of::<Rows<Ring>>()]);
        self.groups.fill(Group::default());
        self.psns.fill(0u32);
        self.queues.fill(queue);
        self.cells.fill([0u64; 8]);
    }

    fn table(&self, table: Table) -> &Values {
        match table {
            Table::Slices => &self.slices,
            Table::Workers => &self.workers,
            Table::Clients => &self.clients,
            Table::Servers => &self.servers,
            Table::Rings => &self.rings,
        }
    }
}

/// The size of each map's values in bytes, in the order of [`entries`].
const VALUE_BYTES: [u64; 12] = [8, 72, 104, 32, 88, 8, 64, 64, 104, 72, 8, 64];

/// How many values each map has.
pub(super) fn entries(size: &Config, ring_bits: u32) -> [(&'static str, u32); 12] {
    let (workers, clients, slices) = (size.workers.into(), size.clients.into(), size.slices.into());
    // The kernel allows no empty map.
    let servers = size.servers.max(1).into();
    [
        ("types", size.types.into()),
        ("slices", slices),
        ("workers", workers),
        ("worker_counters", workers),
        ("clients", clients),
        ("replay", clients * size.replay_cells),
        ("queues", slices),
        ("cells", slices << ring_bits),
        ("servers", servers),
        ("rings", servers * slices),
        ("groups", slices),
        ("psns", servers),
    ]
}

/// The size of all maps together, in bytes.
pub(super) fn bytes(size: &Config, ring_bits: u32) -> u64 {
    let counts = entries(size, ring_bits).map(|(_, count)| u64::from(count));
    counts.iter().zip(VALUE_BYTES).map(|(count, bytes)| count * bytes).sum()
}
