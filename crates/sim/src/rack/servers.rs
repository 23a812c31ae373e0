//! Servers that workers share: their links, and the memory that large tasks are written ahead into (Rain
//! §3.2.2).
//!
//! Workers belong to servers in equal blocks. What the switch sends to a server takes its link's bandwidth,
//! one packet after the other, WRITEs too. A server keeps a ring for each slice that one of its workers
//! serves, and from then on; a task that was written before, its worker fetches from the client. A worker
//! copies a written task before it does anything else. Left out: the bytes themselves (the fault runs are
//! about them) and what a NIC takes to place a WRITE.

use sluice_switch::{Program, WriteAhead};
use sluice_wire::roce::write_len;
use sluice_wire::tables::{RingRow, ServerRow, TableOp};
use sluice_wire::{Dispatch, Endpoint, Nanos, Place, Psn, Qpn, Rkey, SLOT_HEAD_BYTES, ServerId, SliceId};

use super::stage::Places;
use crate::testbed::Testbed;
use crate::world::Links;

/// Ethernet, IPv4 and UDP in front of a WRITE, and what a frame takes beside its bytes: preamble, check, gap.
const FRAME_BYTES: u32 = 14 + 20 + 8 + 24;

/// All servers of a rack.
#[derive(Debug)]
pub(super) struct Servers {
    places: Places,
    workers_each: u32,
    count: usize,
    copy_ps_a_byte: f64,
    /// Whether the program writes tasks ahead.
    writes: bool,
    /// For each slice and server, the first ticket that was written to its ring.
    since: Vec<Option<u32>>,
    ring: RingRow,
}

impl Servers {
    /// `slots` and `largest` are what rings have to hold: so many tasks, so long each.
    pub(super) fn new(
        places: Places,
        testbed: &Testbed,
        writes: bool,
        slices: usize,
        slots: u32,
        largest: u16,
    ) -> Self {
        let count = u32::from(testbed.servers.count);
        let slot_bytes = SLOT_HEAD_BYTES as u32 + u32::from(largest);
        Self {
            places,
            workers_each: testbed.workers / count.max(1),
            count: count as usize,
            copy_ps_a_byte: testbed.servers.copy_gbps.map_or(0.0, |gbps| 8_000.0 / gbps),
            writes: writes && count > 0,
            since: vec![None; slices * count as usize],
            ring: RingRow { rkey: Rkey(1), address: 0, slots, slot_bytes },
        }
    }

    /// Whether tasks that wait are written ahead.
    pub(super) const fn write(&self) -> bool {
        self.writes
    }

    /// What the rings of one server take, if it keeps one for each slice.
    pub(super) fn ring_bytes(&self) -> u64 {
        let slices = (self.since.len() / self.count.max(1)) as u64;
        slices * u64::from(self.ring.slots) * u64::from(self.ring.slot_bytes)
    }

    /// The servers' queue pairs enter the switch's tables.
    pub(super) fn set_up(&self, switch: &mut dyn Program) {
        for server in (0..self.count).filter(|_| self.writes) {
            let row = ServerRow { at: Endpoint::default(), qpn: Qpn(1), reliable: false, icrc: true };
            switch.table(TableOp::SetServer(ServerId(server as u16), Some((row, Psn::new(0)))));
        }
    }

    /// A worker serves a slice: its server keeps a ring for it.
    pub(super) fn serves(&self, switch: &mut dyn Program, worker: u32, slice: SliceId) {
        if self.writes {
            let server = ServerId(self.server(worker) as u16);
            switch.table(TableOp::SetRing(slice, server, Some(self.ring)));
        }
    }

    /// A task that waits is written ahead: so many copies leave.
    pub(super) fn write_ahead(
        &mut self,
        switch: &mut dyn Program,
        network: &mut Links,
        leaves: Nanos,
        write: &WriteAhead,
    ) -> u32 {
        let bytes = FRAME_BYTES + write_len(SLOT_HEAD_BYTES + usize::from(write.payload.len)) as u32;
        let mut copies = 0;
        for copy in 0..write.copies {
            let Some(replica) = switch.replica(write, copy) else { continue };
            let server = usize::from(replica.server.0);
            let worker = self.places.workers.at(server as u32 * self.workers_each);
            network.takes(self.places.switch, worker, leaves, bytes);
            let ring = self.ring_of(write.slice, server);
            self.since[ring].get_or_insert(write.ticket);
            copies += 1;
        }
        copies
    }

    /// What a worker does about a task's bytes when it comes: nothing, or it copies them for so long, or it
    /// has to fetch them (`None`).
    #[inline]
    pub(super) fn takes(&self, worker: u32, dispatch: &Dispatch) -> Option<Nanos> {
        let Place::Ahead { slice, ticket } = dispatch.place else { return Some(Nanos(0)) };
        let since = self.since[self.ring_of(slice, self.server(worker))]?;
        let is_there = ticket.wrapping_sub(since) <= u32::MAX / 2;
        is_there.then(|| Nanos((f64::from(dispatch.payload.len) * self.copy_ps_a_byte / 1e3) as u64))
    }

    fn server(&self, worker: u32) -> usize {
        (worker / self.workers_each) as usize
    }

    fn ring_of(&self, slice: SliceId, server: usize) -> usize {
        usize::from(slice.0) * self.count + server
    }
}
