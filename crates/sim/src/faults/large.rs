//! Large tasks: the memory that servers register, what the switch writes into it, and what workers copy and ask for.
//!
//! No byte is kept. What a piece of a task consists of is a number that follows from the task, and a piece is right if it
//! is its task's. The servers' processes outlive their workers', and their queue pairs drop what a later WRITE overtook.

use std::collections::HashMap;

use sluice_host::PART_BYTES;
use sluice_switch::{Arrival, Cargo, Circulating, Program, Verdict, WriteAhead};
use sluice_wire::tables::{RingRow, ServerRow, TableOp};
use sluice_wire::{
    Dispatch, Endpoint, Handle, INLINE_BYTES, Nanos, Need, Packet, Part, Payload, Place, Psn, Qpn, Rkey,
    ServerId, SliceId, TaskId,
};

use super::network::WRITES;
use super::rack::{Event, Rack};
use super::scenario::{SETTLED, Scenario};
use super::switch::{ROUND, SwitchNode};

/// Workers of a server.
const WORKERS: usize = 2;
/// Slices of the switch.
const SLICES: u16 = 2;
/// The longest first packet of a task, and what a slot holds.
pub(super) const FIRST_BYTES: u16 = 1_400;
const SLOT_BYTES: u32 = 12 + FIRST_BYTES as u32;
/// What lies between two rings' addresses.
const RING_SHIFT: u32 = 32;
/// A WRITE so far ahead of what is expected is one from the past.
const PAST: u32 = 1 << 23;
/// With so many slots nothing is written over while its task waits.
const AMPLE_SLOTS: u32 = 64;
/// A task that waited longer was overtaken by no DISPATCH of its own.
const OVERTAKEN_MAX_NS: u32 = 20_000;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    task: TaskId,
    content: Handle,
}

/// The servers' registered memory and queue pairs.
#[derive(Debug, Default)]
pub(super) struct Servers {
    slots: HashMap<(u64, u64), Slot>,
    expected: Vec<Psn>,
}

impl Servers {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let count = if scenario.writes_ahead { scenario.workers.div_ceil(WORKERS) } else { 0 };
        Self { slots: HashMap::new(), expected: vec![Psn::new(u32::MAX - 1); count] }
    }

    pub(super) fn count(&self) -> u16 {
        self.expected.len() as u16
    }
}

/// The pieces of each task in a worker's memory.
pub(super) type Pieces = HashMap<Handle, Vec<Handle>>;

/// What a task of this descriptor consists of.
pub(super) const fn content(descriptor: [u8; INLINE_BYTES]) -> Handle {
    Handle(u64::from_be_bytes(descriptor) as u32 & 0x7fff_ffff)
}

/// What a task in a worker's memory consists of, if it is of one piece.
pub(super) fn content_of(pieces: &[Handle]) -> Handle {
    let first = pieces.first().copied().unwrap_or(Handle::NONE);
    if pieces.iter().all(|piece| *piece == first) { first } else { Handle::NONE }
}

/// The pieces of a whole of which the first `have` bytes came.
pub(super) fn pieces(payload: &Payload, came: Handle, have: u16) -> Vec<Handle> {
    let count = payload.total().div_ceil(PART_BYTES);
    let is_whole = u32::from(have) >= payload.total();
    let there = if is_whole { count } else { u32::from(have) / PART_BYTES };
    (0..count).map(|index| if index < there { came } else { Handle::NONE }).collect()
}

/// A part's pieces take their places. One of a few bytes is inline, and says nothing of its whole.
pub(super) fn put(pieces: &mut [Handle], offset: u32, part: &Payload) -> Result<(), String> {
    let first = (offset / PART_BYTES) as usize;
    let count = u32::from(part.len).div_ceil(PART_BYTES) as usize;
    let room = pieces.get_mut(first..first + count).ok_or("promise 5: a part outside its whole")?;
    room.fill(part.handle);
    Ok(())
}

const fn ring_address(server: u16, slice: u16) -> u64 {
    ((server * SLICES + slice) as u64) << RING_SHIFT
}

impl Rack<'_> {
    /// The servers' rings enter the tables of a new life of the switch.
    pub(super) fn set_rings(&mut self) {
        let slots = self.scenario.ring_slots;
        let Some(rain) = &mut self.switch.rain else { return };
        for (server, expected) in (0..).zip(&self.servers.expected) {
            let row = ServerRow { at: Endpoint::default(), qpn: Qpn(1), reliable: false, icrc: true };
            rain.table(TableOp::SetServer(ServerId(server), Some((row, *expected))));
            for slice in 0..SLICES {
                let address = ring_address(server, slice);
                let ring = RingRow { rkey: Rkey(1), address, slots, slot_bytes: SLOT_BYTES };
                rain.table(TableOp::SetRing(SliceId(slice), ServerId(server), Some(ring)));
                rain.table(TableOp::SetCopies(SliceId(slice), self.scenario.copies));
            }
        }
    }

    /// One pass of a switch that keeps no bytes: `brought` is what the packet's consist of.
    pub(super) fn pass_through(&mut self, arrival: Arrival, brought: Handle) {
        let now = self.now;
        let Some(rain) = &mut self.switch.rain else { return };
        match rain.pass(now, arrival) {
            Verdict::Send { to, packet: Packet::Dispatch(mut dispatch) } => {
                if dispatch.payload.is_large() && dispatch.place == Place::Here {
                    dispatch.payload.handle = brought;
                }
                self.send(SwitchNode::AT, to, Packet::Dispatch(dispatch));
            }
            Verdict::Send { to, packet } | Verdict::Swept { to, packet, .. } => {
                self.send(SwitchNode::AT, to, packet);
            }
            Verdict::Ahead(write) => self.write_ahead(&write, brought),
            Verdict::Again(circulating) => self.keep_round(circulating, brought),
            Verdict::Parked => {}
            Verdict::Drop(refusal) => self.say(|| format!("switch drops: {}", refusal.name())),
        }
    }

    /// What goes round keeps its bytes in a pool.
    fn keep_round(&mut self, mut circulating: Circulating, brought: Handle) {
        if let Cargo::Task(submit) = &mut circulating.cargo
            && submit.payload.is_large()
        {
            submit.payload = self.switch.slab.keep(Payload { handle: brought, ..submit.payload });
        }
        let switch = self.switch.life;
        self.after(ROUND, Event::Round { switch, circulating });
    }

    /// What went round comes back, and gives its place in the pool back.
    pub(super) fn round_through(&mut self, mut circulating: Circulating) -> Result<(), String> {
        let mut brought = Handle::NONE;
        if let Cargo::Task(submit) = &mut circulating.cargo
            && submit.payload.is_large()
        {
            brought = self.switch.slab.give_back(submit.payload.handle)?.handle;
            submit.payload.handle = Handle::NONE;
        }
        self.pass_through(Arrival::Round(circulating), brought);
        Ok(())
    }

    fn write_ahead(&mut self, write: &WriteAhead, content: Handle) {
        for copy in 0..write.copies {
            let Some(rain) = &mut self.switch.rain else { return };
            let Some(replica) = rain.replica(write, copy) else { continue };
            let arrivals = self.network.arrivals(self.now, WRITES);
            self.say(|| format!("switch writes {} ahead: {replica:?}, arrives {arrivals:?}", write.task));
            let slot = Slot { task: write.task, content };
            for at in arrivals.into_iter().flatten() {
                let (server, psn, address) = (replica.server, replica.psn, replica.address);
                self.agenda.add(at, Event::Write { server, psn, address, slot });
            }
        }
    }

    /// A WRITE comes to a server's queue pair, which lets no byte outside its ring.
    pub(super) fn written(
        &mut self,
        server: ServerId,
        psn: Psn,
        address: u64,
        slot: Slot,
    ) -> Result<(), String> {
        let Some(expected) = self.servers.expected.get_mut(usize::from(server.0)) else { return Ok(()) };
        if psn.past(*expected) >= PAST {
            return Ok(());
        }
        *expected = psn.plus(1);
        let (ring, offset) = (address >> RING_SHIFT, address & ((1 << RING_SHIFT) - 1));
        let is_inside = offset < u64::from(self.scenario.ring_slots) * u64::from(SLOT_BYTES);
        if !is_inside
            || ring / u64::from(SLICES) != u64::from(server.0)
            || offset % u64::from(SLOT_BYTES) != 0
        {
            return Err(format!("a WRITE to server {server} went to {address:x}"));
        }
        self.servers.slots.insert((ring, offset / u64::from(SLOT_BYTES)), slot);
        Ok(())
    }

    /// The worker's driver copies a task's bytes, and tells the machine what it found: gives the pieces.
    pub(super) fn copy(
        &mut self,
        worker: usize,
        received: Nanos,
        dispatch: &mut Dispatch,
    ) -> Result<Vec<Handle>, String> {
        let payload = dispatch.payload;
        if !payload.is_large() {
            return Ok(Vec::new());
        }
        let found = match dispatch.place {
            Place::Here => Some(payload.handle),
            Place::AtClient => None,
            Place::Ahead { slice, ticket } => self.look(worker, received, dispatch, slice, ticket)?,
        };
        let described = content(payload.inline);
        let found = found.filter(|found| payload.has_more() || *found == described);
        dispatch.place = if found.is_some() { Place::Here } else { Place::AtClient };
        Ok(pieces(&payload, found.unwrap_or(Handle::NONE), payload.len))
    }

    /// What the task's slot holds, if it holds the task.
    fn look(
        &self,
        worker: usize,
        received: Nanos,
        dispatch: &Dispatch,
        slice: SliceId,
        ticket: u32,
    ) -> Result<Option<Handle>, String> {
        let server = (worker / WORKERS) as u16;
        let place = u64::from(ticket & (self.scenario.ring_slots - 1));
        let slot = self.servers.slots.get(&(ring_address(server, slice.0) >> RING_SHIFT, place));
        let found = slot.filter(|slot| slot.task == dispatch.task).map(|slot| slot.content);
        let is_quiet = self.now >= SETTLED && received == self.now && dispatch.wait_ns > OVERTAKEN_MAX_NS;
        let is_written = self.scenario.copies == 0 && self.scenario.ring_slots >= AMPLE_SLOTS;
        if found.is_none() && is_quiet && is_written {
            return Err(format!(
                "task {} was not where its DISPATCH says, and nothing failed",
                dispatch.task
            ));
        }
        Ok(found)
    }

    /// A part's pieces take their places.
    pub(super) fn place(
        &mut self,
        worker: usize,
        at: Handle,
        offset: u32,
        part: &Payload,
    ) -> Result<(), String> {
        let node = &mut self.workers[worker];
        let content = node.tasks.find(part.handle)?.handle;
        let pieces = node.pieces.get_mut(&at).ok_or("promise 5: a part of a task that is not there")?;
        put(pieces, offset, &Payload { handle: content, ..*part })
    }

    /// Whoever is at `from` sends the bytes of `asked` that another lacks.
    pub(super) fn send_parts(&mut self, from: Endpoint, need: &Need, asked: &Payload) {
        let end = asked.total().min(need.offset.saturating_add(need.length));
        let mut offset = need.offset;
        while offset < end {
            let len = (end - offset).min(2 * PART_BYTES) as u16;
            let payload = Payload { len, inline: asked.inline, handle: content(asked.inline) };
            let Need { of, worker, client, task, attempt, .. } = *need;
            let part = Part { of, worker, client, task, attempt, offset, payload };
            self.send(from, need.asker_at, Packet::Part(part));
            offset += u32::from(len);
        }
    }
}
