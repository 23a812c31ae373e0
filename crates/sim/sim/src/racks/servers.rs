//! Servers that workers share: their links, and the memory into which large tasks are written ahead (Rain
//! §3.2.2).
//!
//! Workers belong to servers in equal blocks. All packets from the switch to a server take its link's
//! bandwidth, one after the other, WRITEs too. A server keeps a ring for each slice that one of its workers
//! serves, from the time when that worker begins. A worker fetches a task that was written before from the
//! client. A worker copies a written task before it does anything else. Left out: the bytes themselves (the
//! fault runs test them), and the time of a NIC to place a WRITE.

use sluice_control::{RingOffer, ServerHello};
use sluice_events::Address;
use sluice_nodes::names;
use sluice_switch::{Program, WriteAhead};
use sluice_testbed::Testbed;
use sluice_wire::sizes::TICKET_MASK;
use sluice_wire::tables::RingRow;
use sluice_wire::{Dispatch, Nanos, Place, Psn, Qpn, SliceId};

use super::places::{LEAVES, RackLinks, WORKERS};
use super::setup::RackSetup;
use crate::fabric::write_bytes;

/// All servers of a rack.
#[derive(Debug, Default)]
pub(super) struct Servers {
    workers_each: u32,
    copy_ps_a_byte: f64,
    /// The rings of each server; empty if the program writes nothing ahead.
    rings: Vec<Vec<RingOffer>>,
    ring: RingRow,
    /// For each slice and server, the first ticket that was written to its ring.
    since: Vec<Option<u32>>,
    /// By ring and slot, the ticket of the task that lies there, if WRITEs take time to arrive.
    landed: Vec<Vec<Option<u32>>>,
    /// Tasks that arrived after they were written ahead, and how many of them arrived before their bytes.
    awaited: u64,
    late: u64,
}

/// A copy of a waiting task on its way to a server's ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WrittenCopy {
    pub(super) server: usize,
    ring: usize,
    ticket: u32,
}

impl Servers {
    /// Servers without rings.
    pub(super) fn new(plan: &RackSetup, testbed: &Testbed) -> Self {
        let count = usize::from(plan.servers());
        Self {
            workers_each: testbed.workers / u32::from(testbed.servers.count).max(1),
            copy_ps_a_byte: testbed.servers.copy_gbps.map_or(0.0, |gbps| 8_000.0 / gbps),
            rings: vec![Vec::new(); count],
            ring: plan.ring(),
            since: vec![None; plan.slices() * count],
            landed: Vec::new(),
            awaited: 0,
            late: 0,
        }
    }

    /// From now on a task counts as written when its WRITE has arrived ([`Servers::on_write`]).
    pub(super) fn wait_for_writes(&mut self) {
        self.landed = vec![vec![None; self.ring.slots as usize]; self.since.len()];
    }

    /// How many servers tasks are written ahead to.
    pub(super) const fn count(&self) -> usize {
        self.rings.len()
    }

    /// The bytes of one server's rings, if tasks are written ahead and it keeps one for each slice.
    pub(super) fn ring_bytes(&self) -> Option<u64> {
        let slices = self.since.len().checked_div(self.count())? as u64;
        Some(slices * u64::from(self.ring.slots) * u64::from(self.ring.slot_bytes))
    }

    /// The registration request of a server.
    pub(super) fn hello(&self, server: usize) -> ServerHello {
        ServerHello {
            name: names::server(server),
            life: server as u64 + 1,
            at: self.place(server).endpoint(),
            qpn: Qpn(1),
            first: Psn::new(0),
            mtu: u32::MAX,
            reliable: false,
            icrc: true,
            rings: self.rings[server].clone(),
        }
    }

    /// The server of a worker that has to serve a slice, if the server keeps no ring for it yet.
    pub(super) fn without_ring(&self, worker: u32, slice: SliceId) -> Option<usize> {
        self.of(worker).filter(|server| self.rings[*server].iter().all(|ring| ring.slice != slice))
    }

    /// From now on a server keeps a ring for a slice.
    pub(super) fn keep(&mut self, server: usize, slice: SliceId) {
        self.rings[server].push(RingOffer { slice, row: self.ring });
    }

    /// The name of the server with which a worker shares memory; empty if nothing is written ahead.
    pub(super) fn name_for(&self, worker: u32) -> String {
        self.of(worker).map_or_else(String::new, names::server)
    }

    fn of(&self, worker: u32) -> Option<usize> {
        worker.checked_div(self.workers_each).map(|server| server as usize).filter(|_| self.count() > 0)
    }

    /// Writes a waiting task ahead, and calls `send` for each copy.
    pub(super) fn write_ahead(
        &mut self,
        switch: &mut dyn Program,
        write: &WriteAhead,
        mut send: impl FnMut(&Self, WrittenCopy),
    ) -> u32 {
        let mut copies = 0;
        for copy in 0..write.copies {
            let Some(replica) = switch.replica(write, copy) else { continue };
            let server = usize::from(replica.server.0);
            let ring = self.ring_of(write.slice, server);
            self.since[ring].get_or_insert(write.ticket);
            send(self, WrittenCopy { server, ring, ticket: write.ticket });
            copies += 1;
        }
        copies
    }

    /// A copy takes the bandwidth of its server's link, and has arrived.
    pub(super) fn takes_link(
        &self,
        network: &mut RackLinks,
        leaves: Nanos,
        written: WrittenCopy,
        write: &WriteAhead,
    ) {
        let to = self.place(written.server);
        network.takes(LEAVES, to, leaves, write_bytes(write.payload.len));
    }

    /// A WRITE has arrived: its task lies in its slot.
    pub(super) fn on_write(&mut self, WrittenCopy { ring, ticket, .. }: WrittenCopy) {
        let slot = self.slot_of(ticket);
        self.landed[ring][slot] = Some(ticket);
    }

    /// How many tasks arrived after they were written ahead, and how many of them before their bytes.
    pub(super) const fn awaited(&self) -> (u64, u64) {
        (self.awaited, self.late)
    }

    /// How long a worker copies a task's bytes when the task arrives, possibly 0; `None` if it has to fetch
    /// them.
    #[inline]
    pub(super) fn bytes_at(&mut self, worker: u32, dispatch: &Dispatch) -> Option<Nanos> {
        let Place::Ahead { slice, ticket } = dispatch.place else { return Some(Nanos(0)) };
        let ring = self.ring_of(slice, self.of(worker)?);
        let since = self.since[ring]?;
        let passed = ticket.wrapping_sub(since) & TICKET_MASK;
        let is_there = passed <= TICKET_MASK / 2 && self.has_come(ring, ticket);
        is_there.then(|| Nanos((f64::from(dispatch.payload.len) * self.copy_ps_a_byte / 1e3) as u64))
    }

    /// Whether a task that was written to a ring has arrived there.
    fn has_come(&mut self, ring: usize, ticket: u32) -> bool {
        let slot = self.slot_of(ticket);
        let Some(slots) = self.landed.get(ring) else { return true };
        let has_come = slots[slot] == Some(ticket);
        self.awaited += 1;
        self.late += u64::from(!has_come);
        has_come
    }

    const fn slot_of(&self, ticket: u32) -> usize {
        (ticket % self.ring.slots) as usize
    }

    /// The address of the server's first worker.
    pub(super) fn place(&self, server: usize) -> Address {
        WORKERS.at(server as u32 * self.workers_each)
    }

    fn ring_of(&self, slice: SliceId, server: usize) -> usize {
        usize::from(slice.0) * self.count() + server
    }
}
