//! Parked tokens, by rank: a task takes the token before which the fewest tasks stand (ours; in no paper).
//!
//! Each rank of a slice has a ring, and the tokens in each ring are counted (module `halves`). The last
//! rank stands for all beyond it. With one rank there is one ring and no count.

use sluice_wire::tables::RingCounts;
use sluice_wire::{Generation, Rank, SliceId, WorkerId};

use super::halves::{Found, Halves};
use super::rings::{RingSet, Sort};
use super::stages::Stages;
use crate::config::Config;
use crate::pipeline::{Layout, Pass};

/// A token as an entry of its ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ParkedToken {
    pub(super) worker: WorkerId,
    pub(super) generation: Generation,
}

/// The rings of parked tokens of all slices.
#[derive(Debug)]
pub(super) struct ParkedTokens {
    counts: Halves,
    rings: RingSet<ParkedToken>,
}

/// The rings of parked tokens, so many per slice, from this stage on.
pub(super) fn rings_of(
    layout: &mut Layout,
    config: &Config,
    each: u8,
    stages: Stages,
) -> RingSet<ParkedToken> {
    let columns = stages.table.tokens(stages.rings);
    let (head, tail, ring) = ("token head", "token tail", "token ring");
    let sort = Sort { head, tail, ring, each, cells: config.tokens_per_slice };
    RingSet::new(layout, config, sort, stages.heads, &columns)
}

impl ParkedTokens {
    pub(super) fn new(layout: &mut Layout, config: &Config, ranks: u8, stages: Stages) -> Self {
        let slices = config.slices as usize;
        let counts = Halves::new(layout, ["rank halves", "ranks"], stages.counts, slices, ranks);
        Self { counts, rings: rings_of(layout, config, ranks, stages) }
    }

    /// The last rank, which stands for all beyond it.
    pub(super) const fn last(&self) -> u8 {
        self.rings.each() - 1
    }

    /// Parks a token; the balance has counted it. Returns how many tokens of the first rank are parked
    /// then, if there are two ranks.
    #[inline]
    pub(super) fn park(
        &mut self,
        pass: &mut Pass,
        slice: SliceId,
        rank: Rank,
        token: ParkedToken,
    ) -> Option<u32> {
        let (ring, first) =
            if self.rings.each() == 1 { (slice.0 as usize, None) } else { self.count(pass, slice, rank) };
        let ticket = self.rings.join(pass, ring);
        self.rings.write(pass, ring, ticket, token);
        first
    }

    /// Counts a parked token under its rank. Returns the ring, and how many tokens of the first rank are
    /// parked then, if there are two ranks.
    #[inline(always)]
    fn count(&mut self, pass: &mut Pass, slice: SliceId, rank: Rank) -> (usize, Option<u32>) {
        let rank = rank.get().min(self.last());
        let first = self.counts.add(pass, slice, rank);
        (self.rings.of(slice, rank), first)
    }

    /// Takes the token of the least rank. The balance has told that there is one. Returns also how many of
    /// the first rank are left, if there are two ranks.
    #[inline]
    pub(super) fn take(&mut self, pass: &mut Pass, slice: SliceId) -> (ParkedToken, Option<u32>) {
        if self.rings.each() == 1 {
            return (self.rings.pop(pass, slice.0 as usize).0, None);
        }
        self.take_ranked(pass, slice)
    }

    #[inline(always)]
    fn take_ranked(&mut self, pass: &mut Pass, slice: SliceId) -> (ParkedToken, Option<u32>) {
        let (token, found) = self.take_from(pass, slice, 0);
        (token, Some(if found.ring == 0 { found.of - 1 } else { 0 }))
    }

    /// Takes a token of this rank if there is one, else of another. The balance has told that there is one.
    /// Returns also its rank, and how many tokens that rank had.
    #[inline]
    pub(super) fn take_from(&mut self, pass: &mut Pass, slice: SliceId, rank: u8) -> (ParkedToken, Found) {
        let found = self.counts.take(pass, slice, rank);
        (self.rings.pop(pass, self.rings.of(slice, found.ring)).0, found)
    }

    /// Called by the control software: how many tokens of the first rank are parked, if there are two
    /// ranks.
    pub(super) fn first(&self, slice: SliceId) -> Option<u32> {
        self.counts.first(slice)
    }

    /// How many tokens ever entered each ring of a slice, and how many left it.
    pub(super) fn counts(&self, slice: usize) -> (RingCounts, RingCounts) {
        self.rings.counts(slice)
    }

    /// The tokens of a slice in the order in which they leave, if no token arrives meanwhile.
    pub(super) fn parked(&self, slice: SliceId) -> impl Iterator<Item = ParkedToken> {
        self.rings.listed(slice)
    }
}
