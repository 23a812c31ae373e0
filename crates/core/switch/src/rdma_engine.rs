//! The RDMA engine: a large task that has to wait is written ahead into the memory of its slice's servers
//! (Rain §3.2.2).
//!
//! The switch keeps no payload. For each such task one WRITE leaves, multicast to the servers that keep a
//! ring for the slice, or to as many of them as the slice allows. A worker on another server asks the
//! client for the bytes. All copies go to the same slot, the task's ticket modulo the ring's length, so the
//! queue entry needs no room for a place. At egress each copy gets the fields that its server checks: queue
//! pair, key, address, packet number.
//!
//! A server with a reliable queue pair says by a NAK which packet number it misses. The switch then goes on
//! from that number with the next WRITE. It sends nothing again: the worker of a task whose WRITE was lost
//! asks the client, one round trip.
//!
//! Which NAKs count? A NAK counts if its number was sent and comes after the last NAK's; an older NAK would
//! make the switch use numbers twice. The same number may be missed twice, because the next packet under
//! that number may be lost too. So a repeated NAK counts as well, but only after more packets than a late
//! copy of the first NAK could have seen ([`AGAIN_AFTER`]). The last NAK is kept within 2^23 of the next
//! number, so that the two can be compared.
//!
//! Left out: acknowledgements (the switch waits for none), congestion control, WRITEs of more than one
//! packet.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use sluice_wire::sizes::TICKET_MASK;
use sluice_wire::tables::{RingRow, ServerRow, ServerState, TableAnswer, TableOp};
use sluice_wire::{Endpoint, INLINE_BYTES, Psn, SLOT_HEAD_BYTES, ServerId, SliceId, Submit};

use crate::config::Config;
use crate::pipeline::{Layout, Pass, Register};
use crate::program::{Replica, Verdict, WriteAhead};
use crate::refusal::Refusal;

/// A NAK of the same number as the last one is a new NAK after so many more packets. A server asks again
/// after 32.
const AGAIN_AFTER: u32 = 16;
/// How far the last NAK may lie behind the next number.
const BEHIND_MAX: u32 = 1 << 23;

/// The servers, their rings, and the packet numbers sent to them.
#[derive(Debug)]
pub(crate) struct RdmaEngine {
    servers: Box<[Option<ServerRow>]>,
    /// For each slice a row of servers.
    rings: Box<[Option<RingRow>]>,
    groups: Box<[Group]>,
    /// The number of task classes; their tickets interleave.
    classes: u8,
    numbers: Register<Numbers>,
}

/// The servers that a slice's tasks are written to. The controller programs them as multicast groups.
#[derive(Clone, Debug, Default)]
struct Group {
    members: Vec<ServerId>,
    /// The most copies of each task; zero means no limit.
    copies: u16,
    /// The longest payload, in bytes, that fits a slot of every member.
    fits: u16,
}

/// A queue pair's packet numbers: one word of the chip.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    last_nak: Psn,
    next: Psn,
}

impl Numbers {
    /// A new queue pair, whose first packet may be missed like any other.
    const fn starting(at: Psn) -> Self {
        Self { last_nak: at.plus(u32::MAX), next: at }
    }

    const fn back_at(missing: Psn) -> Self {
        Self { last_nak: missing, next: missing }
    }

    const fn advanced(self) -> Self {
        let full = self.next.past(self.last_nak) >= BEHIND_MAX;
        let last_nak = if full { self.last_nak.plus(1) } else { self.last_nak };
        Self { last_nak, next: self.next.plus(1) }
    }

    const fn admits(self, expected: Psn) -> bool {
        let (past, sent) = (expected.past(self.last_nak), self.next.past(self.last_nak));
        if past == 0 { sent >= AGAIN_AFTER } else { past <= sent }
    }
}

impl RdmaEngine {
    /// The tables stand in this stage, the packet numbers in the next.
    pub(crate) fn new(layout: &mut Layout, config: &Config, classes: u8, stage: u8) -> Self {
        let (slices, servers) = (config.slices as usize, config.servers as usize);
        // Bits of a row: copies and the longest payload; then the queue pair's two ends; then a ring's key,
        // address, length and slot.
        layout.table("rdma: slices", 0, 16 + 16, slices);
        layout.table("rdma: servers", stage, 144 + 48 + 24 + 1 + 1, servers);
        layout.table("rdma: rings", stage, 32 + 64 + 5 + 16, slices * servers);
        Self {
            servers: vec![None; servers].into_boxed_slice(),
            rings: vec![None; slices * servers].into_boxed_slice(),
            groups: vec![Group::default(); slices].into_boxed_slice(),
            classes,
            numbers: Register::new(layout, "rdma: numbers", stage + 1, 64, servers, Numbers::default()),
        }
    }

    /// The WRITE of a task that waits under this ticket, if its slice has servers whose slots it fits.
    pub(crate) fn ahead(&self, slice: SliceId, ticket: u32, submit: &Submit) -> Option<WriteAhead> {
        let group = &self.groups[slice.0 as usize];
        let len = submit.payload.len;
        if len as usize <= INLINE_BYTES || len > group.fits {
            return None;
        }
        let members = group.members.len() as u16;
        let copies = if group.copies == 0 { members } else { members.min(group.copies) };
        let ticket = ticket & TICKET_MASK;
        Some(WriteAhead { slice, ticket, task: submit.task, payload: submit.payload, copies })
    }

    /// One copy's pass at egress; `None` if its server has left meanwhile.
    pub(crate) fn replica(&mut self, pass: &mut Pass, write: &WriteAhead, copy: u16) -> Option<Replica> {
        let members = &self.groups[write.slice.0 as usize].members;
        let turn = (self.turn(write.ticket) % (members.len().max(1) as u32)) as usize + copy as usize;
        let server = *members.get(turn % members.len().max(1))?;
        let ring = self.rings[self.ring_index(write.slice, server)?]?;
        let row = self.servers[server.0 as usize]?;
        let numbers = self.numbers.update(pass, server.0 as usize, Numbers::advanced);
        let slot = u64::from(write.ticket & (ring.slots - 1)) * u64::from(ring.slot_bytes);
        Some(Replica {
            server,
            to: row.at,
            qpn: row.qpn,
            psn: numbers.next,
            rkey: ring.rkey,
            address: ring.address.wrapping_add(slot),
            reliable: row.reliable,
            icrc: row.icrc,
        })
    }

    /// The servers' turn for this ticket. The tickets of a class are `classes` apart, and each class
    /// spreads its tasks over the servers in turns.
    const fn turn(&self, ticket: u32) -> u32 {
        let class = ticket & (self.classes - 1) as u32;
        (ticket >> self.classes.trailing_zeros()).wrapping_add(class)
    }

    /// A server says which packet number it expects.
    pub(crate) fn nak(
        &mut self,
        pass: &mut Pass,
        from: Endpoint,
        server: ServerId,
        expected: Psn,
    ) -> Verdict {
        self.turn_back(pass, from, server, expected).map_or_else(Verdict::Drop, |()| Verdict::Parked)
    }

    fn turn_back(
        &mut self,
        pass: &mut Pass,
        from: Endpoint,
        server: ServerId,
        expected: Psn,
    ) -> Result<(), Refusal> {
        let row = self.servers.get(server.0 as usize).copied().flatten().ok_or(Refusal::UnknownSource)?;
        if row.at != from {
            return Err(Refusal::WrongAddress);
        }
        if !row.reliable {
            return Err(Refusal::Unexpected);
        }
        let takes = |numbers: Numbers| numbers.admits(expected);
        let back = |_| Numbers::back_at(expected);
        let numbers = self.numbers.branch(pass, server.0 as usize, takes, back, |numbers| numbers);
        if takes(numbers) { Ok(()) } else { Err(Refusal::OldNak) }
    }

    /// Carries out the controller's step about servers and their rings; `None` if an index is out of range.
    pub(crate) fn table(&mut self, op: TableOp) -> Option<TableAnswer> {
        match op {
            TableOp::SetServer(server, row) => self.set_server(server, row)?,
            TableOp::ReadServer(server) => return self.read_server(server).map(TableAnswer::Server),
            TableOp::SetRing(slice, server, row) => self.set_ring(slice, server, row)?,
            TableOp::ReadRing(slice, server) => return self.read_ring(slice, server),
            TableOp::SetCopies(slice, copies) => self.set_copies(slice, copies)?,
            _ => return None,
        }
        Some(TableAnswer::Done)
    }

    fn set_server(&mut self, server: ServerId, row: Option<(ServerRow, Psn)>) -> Option<()> {
        let index = server.0 as usize;
        *self.servers.get_mut(index)? = row.map(|(row, _)| row);
        if let Some((_, start)) = row {
            self.numbers.poke(index, Numbers::starting(start));
        }
        self.regroup();
        Some(())
    }

    fn read_server(&self, server: ServerId) -> Option<ServerState> {
        let index = server.0 as usize;
        let row = *self.servers.get(index)?;
        Some(ServerState { row, next: self.numbers.peek(index).next })
    }

    fn set_ring(&mut self, slice: SliceId, server: ServerId, row: Option<RingRow>) -> Option<()> {
        let index = self.ring_index(slice, server)?;
        if row.is_some_and(|row| !row.slots.is_power_of_two() || longest(&row) as usize <= INLINE_BYTES) {
            return None;
        }
        self.rings[index] = row;
        self.regroup();
        Some(())
    }

    fn read_ring(&self, slice: SliceId, server: ServerId) -> Option<TableAnswer> {
        Some(TableAnswer::Ring(self.rings[self.ring_index(slice, server)?]))
    }

    fn set_copies(&mut self, slice: SliceId, copies: u16) -> Option<()> {
        self.groups.get_mut(slice.0 as usize)?.copies = copies;
        Some(())
    }

    fn ring_index(&self, slice: SliceId, server: ServerId) -> Option<usize> {
        let servers = self.servers.len();
        let is_known = (server.0 as usize) < servers && (slice.0 as usize) < self.groups.len();
        is_known.then(|| slice.0 as usize * servers + server.0 as usize)
    }

    /// Computes the members of each slice's multicast group anew.
    fn regroup(&mut self) {
        let Self { servers, rings, groups, .. } = self;
        for (group, rings) in groups.iter_mut().zip(rings.chunks(servers.len())) {
            let rows = rings.iter().enumerate().filter(|(server, _)| servers[*server].is_some());
            let rows = rows.filter_map(|(server, ring)| ring.map(|ring| (ServerId(server as u16), ring)));
            (group.members, group.fits) = (Vec::new(), u16::MAX);
            for (server, ring) in rows {
                group.members.push(server);
                group.fits = group.fits.min(longest(&ring));
            }
            if group.members.is_empty() {
                group.fits = 0;
            }
        }
    }
}

/// The longest payload, in bytes, that fits a ring's slot.
fn longest(ring: &RingRow) -> u16 {
    let room = ring.slot_bytes.saturating_sub(SLOT_HEAD_BYTES as u32);
    if room > u16::MAX as u32 { u16::MAX } else { room as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nak_takes_the_number_back_once_and_never_before_the_last_one() {
        let mut numbers = Numbers::starting(Psn::new(0xff_fffe));
        (0..5).for_each(|_| numbers = numbers.advanced());
        assert_eq!(numbers.next, Psn::new(3));
        assert!(numbers.admits(Psn::new(1)) && numbers.admits(Psn::new(3)));
        assert!(!numbers.admits(Psn::new(4)), "it was not sent");
        assert!(numbers.admits(Psn::new(0xff_fffe)), "the very first may be lost");
        assert!(!numbers.admits(Psn::new(0xff_fffd)), "it was not sent");
        numbers = Numbers::back_at(Psn::new(1)).advanced();
        assert!(!numbers.admits(Psn::new(1)), "it came already");
        assert!(!numbers.admits(Psn::new(0)));
        assert!(numbers.admits(Psn::new(2)));
    }

    #[test]
    fn a_number_that_is_missing_again_is_admitted_again_once_so_many_were_sent() {
        let mut numbers = Numbers::back_at(Psn::new(7));
        for _ in 0..AGAIN_AFTER {
            assert!(!numbers.admits(Psn::new(7)), "a copy of the last");
            numbers = numbers.advanced();
        }
        assert!(numbers.admits(Psn::new(7)));
        assert!(!numbers.admits(Psn::new(6)));
    }

    #[test]
    fn a_nak_counts_however_many_were_sent_since_the_last() {
        let mut numbers = Numbers::starting(Psn::new(0));
        for _ in 0..(1 << 24) + 5 {
            numbers = numbers.advanced();
        }
        assert!(numbers.admits(numbers.next));
        assert!(numbers.admits(Psn::new(0)), "five behind the next");
        assert!(!numbers.admits(numbers.next.plus(1)));
    }
}
