//! The servers' rows, and what follows from them for each slice: the members of its group, and the longest
//! payload that fits all of them.

use sluice_switch::Config;
use sluice_wire::tables::{RingRow, ServerRow};
use sluice_wire::{INLINE_BYTES, SLOT_HEAD_BYTES, ServerId, SliceId};

/// The longest payload of which the program parses the bytes.
const BODY_BYTES_MAX: u32 = 4_084;

/// Servers, their rings, and how many copies of a task each slice allows.
#[derive(Debug)]
pub(crate) struct WriteGroups {
    rows: Vec<Option<ServerRow>>,
    /// For each slice a row of servers.
    rings: Vec<Vec<Option<RingRow>>>,
    copies: Vec<u16>,
}

impl WriteGroups {
    pub(crate) fn new(config: &Config) -> Self {
        let (slices, servers) = (usize::from(config.slices), usize::from(config.servers));
        Self { rows: vec![None; servers], rings: vec![vec![None; servers]; slices], copies: vec![0; slices] }
    }

    /// Whether the row is in range and was set.
    pub(crate) fn set_server(&mut self, server: ServerId, row: Option<ServerRow>) -> bool {
        let is_plain = row.is_none_or(|row| !row.reliable && !row.icrc);
        let Some(held) = self.rows.get_mut(usize::from(server.0)).filter(|_| is_plain) else { return false };
        *held = row;
        true
    }

    /// Whether the ring is in range and was set.
    pub(crate) fn set_ring(&mut self, slice: SliceId, server: ServerId, row: Option<RingRow>) -> bool {
        let is_sound =
            row.is_none_or(|row| row.slots.is_power_of_two() && longest(&row) > INLINE_BYTES as u32);
        let rings = self.rings.get_mut(usize::from(slice.0)).filter(|_| is_sound);
        let Some(held) = rings.and_then(|rings| rings.get_mut(usize::from(server.0))) else { return false };
        *held = row;
        true
    }

    /// Whether the slice is in range and its number was set.
    pub(crate) fn set_copies(&mut self, slice: SliceId, copies: u16) -> bool {
        let Some(held) = self.copies.get_mut(usize::from(slice.0)) else { return false };
        *held = copies;
        true
    }

    pub(crate) fn copies(&self, slice: SliceId) -> u16 {
        self.copies[usize::from(slice.0)]
    }

    /// The servers that have a row and a ring for the slice, by index.
    pub(crate) fn members(&self, slice: SliceId) -> Vec<(ServerId, RingRow)> {
        let rings = self.rings[usize::from(slice.0)].iter().zip(&self.rows).zip(0..);
        let members = rings.filter_map(|((ring, row), server)| Some((ServerId(server), (*ring)?, (*row)?)));
        members.map(|(server, ring, _)| (server, ring)).collect()
    }

    /// The length of the shortest payload that does not fit a slot of every member; 0 without members.
    pub(crate) fn beyond(&self, slice: SliceId) -> u16 {
        let shortest = self.members(slice).iter().map(|(_, ring)| longest(ring)).min();
        shortest.map_or(0, |bytes| bytes.min(BODY_BYTES_MAX) as u16 + 1)
    }
}

/// The longest payload that fits a ring's slot.
fn longest(ring: &RingRow) -> u32 {
    ring.slot_bytes.saturating_sub(SLOT_HEAD_BYTES as u32)
}
