//! A controller's steps as entries of the program's tables.
//!
//! A row of the controller is an entry in each of several tables: one entry lets the host's packets in, the
//! others say why a packet is not let in, or where packets go. The entry that lets packets in is removed
//! first and added last, so a packet between two entries finds the host less open than it is, never more.

use std::collections::BTreeMap;

use sluice_switch::Config;
use sluice_wire::tables::{ClientRow, RingRow, ServerRow, SliceRow, WorkerRow};
use sluice_wire::{ClientId, Endpoint, Generation, Incarnation, ServerId, SliceId, TaskType, WorkerId};

use crate::error::Bmv2Error;
use crate::program::{OWN, P4Program};
use crate::registers::{egress, of};
use crate::runtime::{ActionCall, EntryChange, EntryName, Runtime};
use crate::seats::{SeatChange, SeatPlace, SeatTable, share};
use crate::servers::WriteGroups;
use crate::sizes::{bits, draw_bits};

/// The way to a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// The switch's link that leads there.
    pub(crate) link: u16,
    /// The Ethernet addresses on that link: the receiver's, the switch's.
    pub(crate) macs: [[u8; 6]; 2],
}

/// Where hosts are.
pub(crate) trait Ways: Send {
    /// The way to a host; `None` if none is known.
    fn to(&self, at: &Endpoint) -> Option<Way>;
}

/// All hosts are behind link 0.
#[derive(Debug)]
pub(crate) struct OneLink;

impl Ways for OneLink {
    fn to(&self, _: &Endpoint) -> Option<Way> {
        Some(Way { link: 0, macs: [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]] })
    }
}

/// The rows that the switch holds, and the names of their entries.
pub(crate) struct Entries {
    program: P4Program,
    config: Config,
    ways: Box<dyn Ways>,
    /// The entries that stay.
    begun: BTreeMap<EntryName, ActionCall>,
    /// The entries of rows.
    held: BTreeMap<EntryName, ActionCall>,
    pub(crate) slices: Vec<SliceRow>,
    pub(crate) types: Vec<Option<SliceId>>,
    pub(crate) workers: Vec<Option<WorkerRow>>,
    /// The generations that tokens must have to be used.
    pub(crate) generations: Vec<Generation>,
    pub(crate) seats: SeatTable,
    pub(crate) clients: Vec<Option<ClientRow>>,
    pub(crate) servers: WriteGroups,
}

/// An entry's action and its arguments.
type Action = (&'static str, Vec<Vec<u8>>);

impl Entries {
    /// An empty switch of this size.
    pub(crate) fn new(program: P4Program, config: Config, ways: Box<dyn Ways>) -> Self {
        Self {
            program,
            config,
            ways,
            begun: BTreeMap::new(),
            held: BTreeMap::new(),
            slices: vec![SliceRow::default(); config.slices.into()],
            types: vec![None; config.types.into()],
            workers: vec![None; config.workers.into()],
            generations: vec![Generation(0); config.workers.into()],
            seats: SeatTable::new(&config),
            clients: vec![None; config.clients.into()],
            servers: WriteGroups::new(&config),
        }
    }

    /// Writes what no controller changes: the epoch, the switch's addresses, and a multicast group for each
    /// slice.
    pub(crate) fn begin(&mut self, runtime: &mut Runtime, own: &[Endpoint]) -> Result<(), Bmv2Error> {
        let epoch = vec![self.config.epoch.0.to_be_bytes().to_vec()];
        let this_epoch = ActionCall { name: egress("replies", "this_epoch"), data: epoch.clone() };
        runtime.set_default(&egress("replies", "life"), &this_epoch)?;
        let life = EntryName { table: of("sources", "life"), key: epoch };
        let is_this = ActionCall { name: of("sources", "is_this_epoch"), data: Vec::new() };
        let mut begun = BTreeMap::from([(life, is_this)]);
        for at in own {
            let words = words_of(at);
            let (is_v4, action, data) = if is_ipv4(at) {
                (1, "leave_by_ipv4", words[3..].to_vec())
            } else {
                (0, "leave_by_ipv6", words.to_vec())
            };
            let entry = EntryName { table: egress("addresses", "own_addresses"), key: vec![vec![is_v4]] };
            begun.insert(entry, ActionCall { name: egress("addresses", action), data });
        }
        begun.iter().try_for_each(|(entry, action)| runtime.write(entry, EntryChange::Insert(action)))?;
        self.begun = begun;
        // A server without a row has copies that go nowhere.
        let slices = if self.program.has_servers() { self.config.slices } else { 0 };
        runtime.make_groups(slices, self.config.servers)
    }

    /// Removes all rows' entries; what [`Entries::begin`] wrote stays.
    pub(crate) fn clear(&mut self, runtime: &mut Runtime) -> Result<(), Bmv2Error> {
        (0..self.config.servers).try_for_each(|server| runtime.lead_copies(server, None))?;
        let (begun, held) = (std::mem::take(&mut self.begun), std::mem::take(&mut self.held));
        let ways = std::mem::replace(&mut self.ways, Box::new(OneLink));
        *self = Self { begun, ..Self::new(self.program, self.config, ways) };
        held.keys().try_for_each(|entry| runtime.write(entry, EntryChange::Delete))?;
        (0..self.config.slices).try_for_each(|slice| self.write_slice(runtime, SliceId(slice)))
    }

    /// All entries that were written.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&EntryName, &ActionCall)> {
        self.begun.iter().chain(&self.held)
    }

    /// Maps a type; `None` if there is no such type or slice.
    pub(crate) fn set_type(
        &mut self,
        runtime: &mut Runtime,
        of: TaskType,
        slice: Option<SliceId>,
    ) -> Result<Option<()>, Bmv2Error> {
        if of.0 >= self.config.types || slice.is_some_and(|slice| slice.0 >= self.config.slices) {
            return Ok(None);
        }
        self.types[usize::from(of.0)] = slice;
        self.write_type(runtime, of).map(Some)
    }

    /// The slice of a type's tasks.
    pub(crate) fn slice_of(&self, of: TaskType) -> Option<SliceId> {
        self.types.get(usize::from(of.0)).copied().flatten()
    }

    /// Sets a slice's row, in all its types' entries; `None` if it is out of range.
    pub(crate) fn set_slice(
        &mut self,
        runtime: &mut Runtime,
        slice: SliceId,
        row: SliceRow,
    ) -> Result<Option<()>, Bmv2Error> {
        if slice.0 >= self.config.slices || row.limit > self.config.tasks_per_slice {
            return Ok(None);
        }
        self.slices[usize::from(slice.0)] = row;
        self.write_slice(runtime, slice)?;
        self.write_types_of(runtime, slice).map(Some)
    }

    fn write_types_of(&mut self, runtime: &mut Runtime, slice: SliceId) -> Result<(), Bmv2Error> {
        for of in 0..self.config.types {
            if self.types[usize::from(of)] == Some(slice) {
                self.write_type(runtime, TaskType(of))?;
            }
        }
        Ok(())
    }

    /// Sets or clears a server's row; `None` if it is out of range. WRITEs go over unreliable pairs without
    /// an iCRC only.
    pub(crate) fn set_server(
        &mut self,
        runtime: &mut Runtime,
        server: ServerId,
        row: Option<ServerRow>,
    ) -> Result<Option<()>, Bmv2Error> {
        if !self.servers.set_server(server, row) {
            return Ok(None);
        }
        let index = bytes(server.0);
        let pair = row.map(|row| ("is_pair", vec![row.qpn.get().to_be_bytes()[1..].to_vec()]));
        self.write_at(runtime, &egress("write", "pairs"), vec![index.clone()], pair, |name| {
            egress("write", name)
        })?;
        let way = row.and_then(|row| self.ways.to(&row.at));
        let end = row.zip(way).map(|(row, way)| ("goes_to", way_to(&row.at, &way)));
        self.write_at(runtime, &egress("hosts", "server_hosts"), vec![index], end, |name| {
            egress("hosts", name)
        })?;
        runtime.lead_copies(server.0, way.map(|way| way.link))?;
        self.write_groups(runtime).map(Some)
    }

    /// Sets or clears the ring that a server keeps for a slice; `None` if it is out of range.
    pub(crate) fn set_ring(
        &mut self,
        runtime: &mut Runtime,
        slice: SliceId,
        server: ServerId,
        row: Option<RingRow>,
    ) -> Result<Option<()>, Bmv2Error> {
        if !self.servers.set_ring(slice, server, row) {
            return Ok(None);
        }
        self.write_groups(runtime).map(Some)
    }

    /// Limits the copies of a slice's tasks; `None` if it is out of range.
    pub(crate) fn set_copies(
        &mut self,
        runtime: &mut Runtime,
        slice: SliceId,
        copies: u16,
    ) -> Result<Option<()>, Bmv2Error> {
        if !self.servers.set_copies(slice, copies) {
            return Ok(None);
        }
        self.write_groups(runtime).map(Some)
    }

    /// Writes all slices' groups and rings, and the longest payload that fits, anew.
    fn write_groups(&mut self, runtime: &mut Runtime) -> Result<(), Bmv2Error> {
        for slice in (0..self.config.slices).map(SliceId) {
            let members = self.servers.members(slice);
            for server in (0..self.config.servers).map(ServerId) {
                let rank = members.iter().position(|(member, _)| *member == server);
                let ring = rank.map(|rank| ("is_ring", ring_data(&members[rank].1, rank as u32)));
                let key = vec![bytes(slice.0), bytes(server.0)];
                self.write_at(runtime, &slots("rings"), key, ring, slots)?;
            }
            let group = [members.len() as u32, self.servers.copies(slice).into()];
            let group = ("is_group", group.map(|number: u32| number.to_be_bytes().to_vec()).to_vec());
            self.write_at(runtime, &slots("groups"), vec![bytes(slice.0)], Some(group), slots)?;
            self.write_types_of(runtime, slice)?;
        }
        Ok(())
    }

    fn write_slice(&mut self, runtime: &mut Runtime, slice: SliceId) -> Result<(), Bmv2Error> {
        let open = self.slices[usize::from(slice.0)].open;
        let is_slice = ("is_slice", vec![bytes(slice.0), vec![u8::from(open)]]);
        self.write(runtime, "sources", "slices", vec![bytes(slice.0)], Some(is_slice))
    }

    fn write_type(&mut self, runtime: &mut Runtime, of: TaskType) -> Result<(), Bmv2Error> {
        let slice = self.types[usize::from(of.0)];
        let row = slice.map(|slice| (slice, self.slices[usize::from(slice.0)]));
        let in_slice = row.map(|(slice, row)| {
            let full = (self.most(slice, row.limit) as i32).wrapping_neg().to_be_bytes().to_vec();
            let beyond = self.servers.beyond(slice);
            ("in_slice", vec![bytes(slice.0), vec![u8::from(row.open)], full, bytes(beyond)])
        });
        self.write(runtime, "sources", "types", vec![bytes(of.0)], in_slice)?;
        let hint = row.map(|(_, row)| {
            let span = u32::try_from(row.retry_after.0).unwrap_or(u32::MAX);
            ("retry_after", vec![span.to_be_bytes().to_vec()])
        });
        self.write_at(runtime, &egress("replies", "retry_hints"), vec![bytes(of.0)], hint, |name| {
            egress("replies", name)
        })
    }

    /// What a slice's row says that fits it, as the program counts it: tasks, tickets or turns.
    fn most(&self, slice: SliceId, limit: u32) -> u32 {
        match self.program {
            P4Program::Rain => limit,
            P4Program::Draconis => limit << bits(self.config.slices.into()),
            P4Program::Pallas => self.seats.of(slice).len() as u32,
            P4Program::RackSched => 0,
        }
    }

    /// Sets or clears a worker's row; `None` if it is out of range.
    pub(crate) fn set_worker(
        &mut self,
        runtime: &mut Runtime,
        worker: WorkerId,
        row: Option<WorkerRow>,
    ) -> Result<Option<SeatChange>, Bmv2Error> {
        let is_out = row.is_some_and(|row| row.slice.0 >= self.config.slices);
        if worker.0 >= self.config.workers || is_out {
            return Ok(None);
        }
        let before = std::mem::replace(&mut self.workers[usize::from(worker.0)], row);
        let index = bytes(worker.0);
        if let Some(before) = before {
            let shown = self.admission(&index, &before);
            self.write(runtime, "sources", "admitted_tokens", shown, None)?;
            runtime.settle()?;
            self.write(runtime, "sources", "worker_keys", key_of(&index, before.key.0), None)?;
            self.write(runtime, "sources", "worker_addresses", at_of(&index, &before.at), None)?;
        }
        let data = row.map(|row| {
            let open = vec![u8::from(row.open)];
            ("is_worker", vec![bytes(row.slice.0), row.generation.0.to_be_bytes().to_vec(), open])
        });
        self.write(runtime, "sources", "workers", vec![index.clone()], data)?;
        let way = row.and_then(|row| self.ways.to(&row.at));
        if self.program == P4Program::Rain {
            let link = way.map(|way| ("is_there", vec![bytes(way.link)]));
            self.write(runtime, "tokens", "worker_links", vec![index.clone()], link)?;
        }
        let end = row.zip(way).map(|(row, way)| ("goes_to", way_to(&row.at, &way)));
        self.write_at(runtime, &egress("hosts", "worker_hosts"), vec![index.clone()], end, |name| {
            egress("hosts", name)
        })?;
        if let Some(row) = row {
            let is_key = ("is_key", Vec::new());
            self.write(runtime, "sources", "worker_keys", key_of(&index, row.key.0), Some(is_key))?;
            let is_address = ("is_address", Vec::new());
            self.write(runtime, "sources", "worker_addresses", at_of(&index, &row.at), Some(is_address))?;
            if row.open {
                let (shown, admit) = (self.admission(&index, &row), ("admit_token", Vec::new()));
                runtime.settle()?;
                self.write(runtime, "sources", "admitted_tokens", shown, Some(admit))?;
            }
        }
        let change = self.seats.set(worker, row.as_ref());
        self.write_seats(runtime, worker, change)?;
        Ok(Some(change))
    }

    /// Writes what follows from a worker's row and seat.
    fn write_seats(
        &mut self,
        runtime: &mut Runtime,
        worker: WorkerId,
        change: SeatChange,
    ) -> Result<(), Bmv2Error> {
        if !self.program.has_seats() {
            return Ok(());
        }
        let seat = self.seats.seat(worker);
        let slices = [change.left.map(|(seat, _)| seat), seat].into_iter().flatten();
        for slice in slices.map(|seat| seat.slice) {
            if self.program == P4Program::Pallas {
                self.write_schedule(runtime, slice)?;
            } else {
                self.write_choices(runtime, slice)?;
            }
        }
        // Another worker may have taken the seat.
        let moved = change.left.and_then(|(seat, _)| self.seats.worker(seat));
        let reported = if self.program == P4Program::RackSched { [Some(worker), moved] } else { [None; 2] };
        for worker in reported.into_iter().flatten() {
            let seat = self.seats.seat(worker).map(|seat| ("sits_at", vec![bytes(self.seats.index(seat))]));
            self.write(runtime, OWN, "seats_of_workers", vec![bytes(worker.0)], seat)?;
        }
        Ok(())
    }

    /// Writes a slice's schedule: its workers take turns by their indices.
    fn write_schedule(&mut self, runtime: &mut Runtime, slice: SliceId) -> Result<(), Bmv2Error> {
        let mut workers = self.seats.of(slice).to_vec();
        workers.sort_unstable();
        for turn in 0..self.config.workers {
            let worker = workers.get(usize::from(turn));
            let data = worker.map(|worker| ("is_turn_of", self.pushed_to(*worker)));
            let key = vec![bytes(slice.0), u32::from(turn).to_be_bytes().to_vec()];
            self.write(runtime, OWN, "schedule", key, data)?;
        }
        self.write_types_of(runtime, slice)
    }

    /// Shares the draws of the random unit out to a slice's seats.
    fn write_choices(&mut self, runtime: &mut Runtime, slice: SliceId) -> Result<(), Bmv2Error> {
        let (workers, draw_bits) = (self.seats.of(slice).to_vec(), draw_bits(&self.config));
        let seats = workers.len() as u16;
        let index = |position| self.seats.index(SeatPlace { slice, position });
        let first = |draw| {
            let position = share(draw, seats, draw_bits);
            ("first_is", vec![bytes(index(position)), bytes(position.wrapping_sub(seats))])
        };
        let second = |draw| {
            let step = if seats > 1 { 1 + share(draw, seats - 1, draw_bits) } else { 0 };
            ("second_is_further", vec![bytes(step), bytes(step.wrapping_sub(seats))])
        };
        let shared: Vec<_> = (0..1 << draw_bits).map(|draw| (draw, first(draw), second(draw))).collect();
        let seated: Vec<_> = (0..self.config.workers)
            .map(|position| {
                let worker = workers.get(usize::from(position));
                (index(position), worker.map(|worker| ("goes_to", self.pushed_to(*worker))))
            })
            .collect();
        for (draw, first, second) in shared {
            let key = vec![bytes(slice.0), draw_key(draw, draw_bits)];
            self.write(runtime, OWN, "firsts", key.clone(), Some(first).filter(|_| seats > 0))?;
            self.write(runtime, OWN, "seconds", key, Some(second).filter(|_| seats > 0))?;
        }
        seated.into_iter().try_for_each(|(seat, data)| {
            self.write(runtime, OWN, "workers_of_seats", vec![bytes(seat)], data)
        })
    }

    /// What a task takes along that is pushed to a worker: whom to, in which generation, by which link.
    fn pushed_to(&self, worker: WorkerId) -> Vec<Vec<u8>> {
        let row = self.workers[usize::from(worker.0)];
        let generation = row.map_or(Generation(0), |row| row.generation);
        let link = row.and_then(|row| self.ways.to(&row.at)).map_or(0, |way| way.link);
        vec![bytes(worker.0), generation.0.to_be_bytes().to_vec(), bytes(link)]
    }

    /// What a TOKEN of this worker has to show.
    fn admission(&self, index: &[u8], row: &WorkerRow) -> Vec<Vec<u8>> {
        let mut shown = vec![self.config.epoch.0.to_be_bytes().to_vec(), index.to_vec()];
        shown.extend([row.generation.0.to_be_bytes().to_vec(), row.key.0.to_be_bytes().to_vec()]);
        shown.extend(end_of(&row.at));
        shown
    }

    /// Sets or clears a client's row; `None` if it is out of range.
    pub(crate) fn set_client(
        &mut self,
        runtime: &mut Runtime,
        client: ClientId,
        row: Option<ClientRow>,
    ) -> Result<Option<()>, Bmv2Error> {
        if client.0 >= self.config.clients {
            return Ok(None);
        }
        let before = std::mem::replace(&mut self.clients[usize::from(client.0)], row);
        let index = bytes(client.0);
        if let Some(before) = before {
            let shown = self.submission(&index, &before);
            self.write(runtime, "sources", "admitted_tasks", shown, None)?;
            runtime.settle()?;
            self.write(runtime, "sources", "client_keys", key_of(&index, before.key.0), None)?;
            self.write(runtime, "sources", "client_addresses", at_of(&index, &before.at), None)?;
        }
        let known = row.map(|_| ("is_client", Vec::new()));
        self.write(runtime, "sources", "clients", vec![index.clone()], known)?;
        let way = row.and_then(|row| self.ways.to(&row.at));
        if let Some(part) = self.program.client_links() {
            let link = way.map(|way| ("leads_to", vec![bytes(way.link)]));
            self.write(runtime, part, "client_links", vec![index.clone()], link)?;
        }
        let swept = row.zip(way).map(|(row, way)| ("goes_to", way_to(&row.at, &way)));
        self.write_at(runtime, &egress("hosts", "client_hosts"), vec![index.clone()], swept, |name| {
            egress("hosts", name)
        })?;
        let end = row.map(|row| {
            let life = ((row.incarnation.0 >> 32) as u32).to_be_bytes().to_vec();
            ("client_is", end_of(&row.at).into_iter().chain([life]).collect())
        });
        self.write_at(runtime, &egress("replies", "client_ends"), vec![index.clone()], end, |name| {
            egress("replies", name)
        })?;
        if let Some(row) = row {
            let is_key = ("is_key", Vec::new());
            self.write(runtime, "sources", "client_keys", key_of(&index, row.key.0), Some(is_key))?;
            let is_address = ("is_address", Vec::new());
            self.write(runtime, "sources", "client_addresses", at_of(&index, &row.at), Some(is_address))?;
            let (shown, admit) = (self.submission(&index, &row), ("admit_task", Vec::new()));
            runtime.settle()?;
            self.write(runtime, "sources", "admitted_tasks", shown, Some(admit))?;
        }
        Ok(Some(()))
    }

    /// The incarnation of a waiting task, of which the entry has the lower half, and the client's row the
    /// other.
    pub(crate) fn incarnation(&self, client: ClientId, low: u32) -> Incarnation {
        let row = self.clients.get(usize::from(client.0)).and_then(Option::as_ref);
        Incarnation(row.map_or(0, |row| row.incarnation.0 >> 32 << 32) | u64::from(low))
    }

    /// What a SUBMIT of this client has to show.
    fn submission(&self, index: &[u8], row: &ClientRow) -> Vec<Vec<u8>> {
        let mut shown = vec![self.config.epoch.0.to_be_bytes().to_vec(), index.to_vec()];
        shown.push(row.key.0.to_be_bytes().to_vec());
        shown.extend(end_of(&row.at));
        shown
    }

    /// Sets or removes an entry of a part of ingress.
    fn write(
        &mut self,
        runtime: &mut Runtime,
        part: &str,
        table: &str,
        key: Vec<Vec<u8>>,
        action: Option<Action>,
    ) -> Result<(), Bmv2Error> {
        self.write_at(runtime, &of(part, table), key, action, |name| of(part, name))
    }

    fn write_at(
        &mut self,
        runtime: &mut Runtime,
        table: &str,
        key: Vec<Vec<u8>>,
        action: Option<Action>,
        full: impl Fn(&str) -> String,
    ) -> Result<(), Bmv2Error> {
        let entry = EntryName { table: table.to_owned(), key };
        let action = action.map(|(name, data)| ActionCall { name: full(name), data });
        let change = match (self.held.get(&entry), &action) {
            (Some(held), Some(action)) if held == action => return Ok(()),
            (Some(_), Some(action)) => EntryChange::Modify(action),
            (None, Some(action)) => EntryChange::Insert(action),
            (Some(_), None) => EntryChange::Delete,
            (None, None) => return Ok(()),
        };
        runtime.write(&entry, change)?;
        match action {
            Some(action) => drop(self.held.insert(entry, action)),
            None => drop(self.held.remove(&entry)),
        }
        Ok(())
    }
}

/// A name of the part of egress that finds a copy's slot.
fn slots(name: &str) -> String {
    egress("write.slots", name)
}

/// A ring as its entry has it; `rank` servers of its slice have a lower index.
fn ring_data(ring: &RingRow, rank: u32) -> Vec<Vec<u8>> {
    let words = [ring.slots - 1, ring.slot_bytes, rank].map(|word| word.to_be_bytes().to_vec());
    let mut data = vec![ring.rkey.0.to_be_bytes().to_vec(), ring.address.to_be_bytes().to_vec()];
    data.extend(words);
    data
}

/// A draw as a table's key has it.
fn draw_key(draw: u16, draw_bits: u32) -> Vec<u8> {
    if draw_bits > u8::BITS { bytes(draw) } else { vec![draw as u8] }
}

fn bytes(number: u16) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// An address as the program's four words.
fn words_of(at: &Endpoint) -> [Vec<u8>; 4] {
    let (words, _) = at.ip.as_chunks::<4>();
    [words[0].to_vec(), words[1].to_vec(), words[2].to_vec(), words[3].to_vec()]
}

/// An address and port.
fn end_of(at: &Endpoint) -> Vec<Vec<u8>> {
    words_of(at).into_iter().chain([bytes(at.port)]).collect()
}

fn key_of(index: &[u8], key: u32) -> Vec<Vec<u8>> {
    vec![index.to_vec(), key.to_be_bytes().to_vec()]
}

fn at_of(index: &[u8], at: &Endpoint) -> Vec<Vec<u8>> {
    [index.to_vec()].into_iter().chain(end_of(at)).collect()
}

/// Whether an address is an IPv4 address, as IPv4-mapped IPv6.
fn is_ipv4(at: &Endpoint) -> bool {
    at.ip[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]
}

/// An address and port, and the Ethernet addresses on the way there.
fn way_to(at: &Endpoint, way: &Way) -> Vec<Vec<u8>> {
    let is_ipv4 = vec![u8::from(is_ipv4(at))];
    end_of(at).into_iter().chain(way.macs.map(|mac| mac.to_vec())).chain([is_ipv4]).collect()
}
