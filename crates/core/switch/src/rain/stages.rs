//! Where the parts of Rain's memory live on the chip, which depends on how much it tells apart.

use sluice_wire::Serial;
use sluice_wire::tables::RingCounts;

use super::halves::Halves;
use crate::pipeline::Register;

/// What a slice's tokens and tasks are told apart by: each a power of two, at most 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Ranks of tokens.
    pub ranks: u8,
    /// Classes of tasks.
    pub classes: u8,
}

impl Kinds {
    /// All tokens are alike, and all tasks: Rain of the paper.
    pub const ONE: Self = Self { ranks: 1, classes: 1 };
}

/// Where the parts of the memory live that come later the more ranks or classes are counted before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stages {
    /// Counts of ranks and of classes, if there are any, and behind them heads and tails.
    pub(super) counts: u8,
    pub(super) heads: u8,
    /// The first of the rings.
    pub(super) rings: u8,
    /// The workers' counters: behind the generation of a token that was taken.
    pub(super) sent: u8,
}

impl Stages {
    /// Where arrivals meet.
    pub(super) const BALANCE: u8 = 2;

    /// A packet passes the counts of ranks or those of classes, never both: they share stages.
    pub(super) fn of(kinds: Kinds) -> Self {
        let counts = Self::BALANCE + 1;
        let heads = counts + Halves::levels(kinds.ranks).max(Halves::levels(kinds.classes));
        let rings = heads + 1;
        Self { counts, heads, rings, sent: rings + if kinds.ranks > 1 { 3 } else { 2 } }
    }

    /// Where arrivals meet at so many stages of counts, and their tokens are told apart.
    pub(super) const fn behind(counts: u8) -> Self {
        let heads = Self::BALANCE + counts;
        let rings = heads + 1;
        Self { counts: Self::BALANCE, heads, rings, sent: rings + 3 }
    }
}

/// What a slice's heads or tails stand at, one for each of its rings.
pub(super) fn ring_counts(pointer: &Register<u32>, slice: usize, rings: u8) -> RingCounts {
    let mut counts = RingCounts::default();
    for (ring, count) in counts.0.iter_mut().enumerate().take(rings.into()) {
        *count = Serial(pointer.peek(slice * usize::from(rings) + ring));
    }
    counts
}
