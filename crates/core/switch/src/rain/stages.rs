//! The stages of Rain's memory, which depend on how many ranks and classes it tells apart.

use sluice_wire::Serial;
use sluice_wire::tables::RingCounts;

use super::entry_table::{EntryTable, HALF, PAPER};
use super::halves::Halves;
use crate::front::BackStages;
use crate::pipeline::Register;

/// How many kinds of tokens and tasks a slice tells apart: each a power of two, at most 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Ranks of tokens.
    pub ranks: u8,
    /// Classes of tasks.
    pub classes: u8,
}

impl Kinds {
    /// One rank and one class, as in Rain's paper.
    pub const ONE: Self = Self { ranks: 1, classes: 1 };

    /// Where the columns of entries of so many kinds stand.
    pub(super) fn entry_table(self) -> EntryTable {
        if self == Self::ONE { PAPER } else { HALF }
    }
}

/// The stages of those arrays that come later, the more ranks or classes are counted before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stages {
    /// The stage of the counts of ranks and classes, if the program counts them. Heads and tails are in later
    /// stages.
    pub(super) counts: u8,
    pub(super) heads: u8,
    /// The first stage of the rings.
    pub(super) rings: u8,
    /// What stands there and behind.
    pub(super) table: EntryTable,
}

impl Stages {
    /// The stage of the balance, which decides each arrival.
    pub(super) const BALANCE: u8 = 2;

    /// A packet passes the counts of ranks or those of classes, never both; so they share stages.
    pub(super) fn of(kinds: Kinds, table: EntryTable) -> Self {
        let counts = Self::BALANCE + 1;
        let heads = counts + Halves::levels(kinds.ranks).max(Halves::levels(kinds.classes));
        Self { counts, heads, rings: heads + 1, table }
    }

    /// The stages behind so many stages of counts, with tokens of several kinds.
    pub(super) const fn behind(counts: u8) -> Self {
        let heads = Self::BALANCE + counts;
        Self { counts: Self::BALANCE, heads, rings: heads + 1, table: HALF }
    }

    /// The stages of the front's registers behind the queue.
    pub(super) const fn back(&self) -> BackStages {
        BackStages { gen_out: self.rings + self.table.gen_out, sent: self.rings + self.table.sent }
    }

    /// The stage of the servers' rows.
    pub(super) const fn servers(&self) -> u8 {
        self.rings + self.table.servers
    }
}

/// The heads or the tails of a slice, one for each of its rings.
pub(super) fn ring_counts(pointer: &Register<u32>, slice: usize, rings: u8) -> RingCounts {
    let mut counts = RingCounts::default();
    for (ring, count) in counts.0.iter_mut().enumerate().take(rings.into()) {
        *count = Serial(pointer.peek(slice * usize::from(rings) + ring));
    }
    counts
}
