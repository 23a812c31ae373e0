//! The values of the servers' maps, as `targets/ebpf/servers.h` lays them out.

use std::collections::{BTreeMap, BTreeSet};

use sluice_wire::tables::{RingRow, ServerRow};
use sluice_wire::{Endpoint, Qpn, Rkey};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::layout::{At, WorkerCounters};

/// The way to a host: out of which link, between which Ethernet addresses; link 0: none is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Way {
    pub link: u32,
    /// The next hop's address on it.
    pub to: [u8; 6],
    /// Our own.
    pub from: [u8; 6],
}

/// What the loader remembers of servers. All else stands in the maps.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// Which server is behind each link, as the program finds it.
    pub(super) behind: BTreeMap<u32, u16>,
    /// Servers of which was said that they share a link.
    pub(super) told: BTreeSet<u16>,
}

/// A worker's counters, and the way that its packets came last.
#[derive(Clone, Copy, Debug, FromBytes)]
#[repr(C)]
pub(super) struct WorkerLine {
    counters: WorkerCounters,
    pub(super) way: Way,
}

#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Server {
    there: u32,
    qpn: u32,
    pub(super) way: Way,
    at: At,
    unused: [u8; 6],
}

impl Server {
    pub(super) fn new(row: &ServerRow, way: Way) -> Self {
        Self { there: 1, qpn: row.qpn.0, way, at: row.at.into(), unused: [0; 6] }
    }

    pub(super) const fn by(self, way: Way) -> Self {
        Self { way, ..self }
    }

    pub(super) fn at(&self) -> Option<Endpoint> {
        (self.there != 0).then(|| self.at.into())
    }

    /// Its pair is unreliable and without an iCRC, as all here.
    pub(super) fn row(&self) -> Option<ServerRow> {
        self.at().map(|at| ServerRow { at, qpn: Qpn(self.qpn), reliable: false, icrc: false })
    }
}

#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Ring {
    there: u32,
    rkey: u32,
    address: u64,
    slots: u32,
    slot_bytes: u32,
    /// How many members of the slice's group have a lower index.
    pub(super) rank: u32,
    unused: u32,
}

impl From<RingRow> for Ring {
    fn from(row: RingRow) -> Self {
        let RingRow { rkey, address, slots, slot_bytes } = row;
        Self { there: 1, rkey: rkey.0, address, slots, slot_bytes, rank: 0, unused: 0 }
    }
}

impl Ring {
    pub(super) const fn ranked(self, rank: u32) -> Self {
        Self { rank, ..self }
    }

    pub(super) fn row(&self) -> Option<RingRow> {
        let Self { rkey, address, slots, slot_bytes, .. } = *self;
        (self.there != 0).then_some(RingRow { rkey: Rkey(rkey), address, slots, slot_bytes })
    }
}

/// The servers that a slice's tasks are written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Group {
    pub(super) members: u16,
    pub(super) copies: u16,
    pub(super) fits: u16,
    pub(super) wants_check: u16,
}

#[cfg(test)]
mod tests {
    use super::super::layout::Rows;
    use super::*;

    #[test]
    fn values_are_as_long_as_in_the_program() {
        assert_eq!((size_of::<Rows<Server>>(), size_of::<Rows<Ring>>()), (104, 72));
        assert_eq!((size_of::<Group>(), size_of::<WorkerLine>()), (8, 32));
    }
}
