//! The values in the servers' maps, laid out as in `targets/ebpf/servers.h`.

use std::collections::{BTreeMap, BTreeSet};

use sluice_wire::tables::{RingRow, ServerRow};
use sluice_wire::{Endpoint, Qpn, Rkey};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::layout::{NetAddress, WorkerCounters};

/// The path to a host: the outgoing link and the Ethernet addresses. Link 0 means that no path is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct HostPath {
    pub link: u32,
    /// The Ethernet address of the next hop.
    pub to: [u8; 6],
    /// Our own.
    pub from: [u8; 6],
}

/// What the loader remembers about servers. Everything else is in the maps.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// The server behind each link, as the program finds it.
    pub(super) behind: BTreeMap<u32, u16>,
    /// Servers for which a warning about a shared link was logged.
    pub(super) told: BTreeSet<u16>,
}

/// A worker's counters, and the path by which its last packet came.
#[derive(Clone, Copy, Debug, FromBytes)]
#[repr(C)]
pub(super) struct WorkerLine {
    counters: WorkerCounters,
    pub(super) way: HostPath,
}

#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Server {
    there: u32,
    qpn: u32,
    pub(super) way: HostPath,
    at: NetAddress,
    unused: [u8; 6],
}

impl Server {
    pub(super) fn new(row: &ServerRow, way: HostPath) -> Self {
        Self { there: 1, qpn: row.qpn.0, way, at: row.at.into(), unused: [0; 6] }
    }

    pub(super) const fn by(self, way: HostPath) -> Self {
        Self { way, ..self }
    }

    pub(super) fn at(&self) -> Option<Endpoint> {
        (self.there != 0).then(|| self.at.into())
    }

    /// The row as tables describe it. All pairs here are unreliable and without iCRC.
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
    /// How many servers in the slice's group have a lower index.
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

/// The servers to which a slice's tasks are written.
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
