//! Parked tokens, by rank: a task takes the one before which the fewest tasks stand (ours; in no paper).
//!
//! Each rank of a slice has a ring, and how many tokens lie in each is counted (module `halves`). The last
//! rank stands for all beyond it. With one rank there is one ring and nothing to count.

use alloc::vec::Vec;

use sluice_wire::tables::RingCounts;
use sluice_wire::{Generation, Rank, SliceId, WorkerId};

use super::halves::{Found, Halves};
use super::stages::{Stages, ring_counts};
use crate::config::Config;
use crate::entry::cell;
use crate::pipeline::{Column, Layout, Pass, Register, Ring};

/// A token in its ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ParkedToken {
    pub(super) worker: WorkerId,
    pub(super) generation: Generation,
}

/// A token in one word.
const TOGETHER: &[Column] = &[Column { name: "token", stage: 0, bits: 16 + 32 }];

/// A token of one of many rings, which leave its word no room in one stage. The generation is looked up by
/// its worker, and compared where it lies.
const BY_RANK: &[Column] = &[
    Column { name: "token: worker", stage: 0, bits: 16 },
    Column { name: "token: generation", stage: 2, bits: 32 },
];

/// The rings of parked tokens of all slices.
#[derive(Debug)]
pub(super) struct ParkedTokens {
    counts: Halves,
    head: Register<u32>,
    tail: Register<u32>,
    ring: Ring<ParkedToken>,
    ranks: u8,
    /// Cells of each ring.
    cells: u32,
}

impl ParkedTokens {
    pub(super) fn new(layout: &mut Layout, config: &Config, ranks: u8, stages: Stages) -> Self {
        let (slices, cells) = (config.slices as usize, config.tokens_per_slice);
        let rings = slices * ranks as usize;
        let counts = Halves::new(layout, ["rank halves", "ranks"], stages.counts, slices, ranks);
        let pointer = |layout: &mut Layout, name| {
            Register::new(layout, name, stages.heads, 32, rings, config.counters_start.0)
        };
        let (head, tail) = (pointer(layout, "token head"), pointer(layout, "token tail"));
        let columns = if ranks > 1 { BY_RANK } else { TOGETHER };
        let columns: Vec<Column> =
            columns.iter().map(|of| Column { stage: stages.rings + of.stage, ..*of }).collect();
        let ring = Ring::new(layout, "token ring", &columns, rings * cells as usize, ParkedToken::default());
        Self { counts, head, tail, ring, ranks, cells }
    }

    /// The last rank, which stands for all beyond it.
    pub(super) const fn last(&self) -> u8 {
        self.ranks - 1
    }

    /// A token parks; the balance has counted it.
    #[inline]
    pub(super) fn park(&mut self, pass: &mut Pass, slice: SliceId, rank: Rank, token: ParkedToken) {
        let ring = if self.ranks == 1 { slice.0 as usize } else { self.count(pass, slice, rank) };
        let ticket = self.tail.update(pass, ring, |tail| tail.wrapping_add(1));
        self.ring.write(pass, cell(ring, ticket, self.cells), token);
    }

    /// Counts a token that parks under its rank; says in which ring.
    #[inline(never)]
    fn count(&mut self, pass: &mut Pass, slice: SliceId, rank: Rank) -> usize {
        let rank = rank.get().min(self.last());
        self.counts.add(pass, slice, rank);
        self.ring_of(slice, rank)
    }

    /// Takes the token of the least rank. The balance has told that there is one.
    #[inline]
    pub(super) fn take(&mut self, pass: &mut Pass, slice: SliceId) -> ParkedToken {
        if self.ranks == 1 {
            return self.pop(pass, slice.0 as usize);
        }
        self.take_ranked(pass, slice)
    }

    #[inline(never)]
    fn take_ranked(&mut self, pass: &mut Pass, slice: SliceId) -> ParkedToken {
        self.take_from(pass, slice, 0).0
    }

    /// Takes a token of this rank if there is one, else of another. The balance has told that there is one;
    /// says of which rank, and how many that had.
    #[inline]
    pub(super) fn take_from(&mut self, pass: &mut Pass, slice: SliceId, rank: u8) -> (ParkedToken, Found) {
        let found = self.counts.take(pass, slice, rank);
        (self.pop(pass, self.ring_of(slice, found.ring)), found)
    }

    #[inline]
    fn pop(&mut self, pass: &mut Pass, ring: usize) -> ParkedToken {
        let ticket = self.head.update(pass, ring, |head| head.wrapping_add(1));
        self.ring.read(pass, cell(ring, ticket, self.cells))
    }

    /// How many tokens ever entered each ring of a slice, and how many left it.
    pub(super) fn counts(&self, slice: usize) -> (RingCounts, RingCounts) {
        let of = |pointer| ring_counts(pointer, slice, self.ranks);
        (of(&self.tail), of(&self.head))
    }

    /// The tokens of a slice in the order in which they leave, if none comes meanwhile.
    pub(super) fn parked(&self, slice: SliceId) -> impl Iterator<Item = ParkedToken> {
        let rings = (0..self.ranks).map(move |rank| self.ring_of(slice, rank));
        rings.flat_map(move |ring| {
            let (head, tail) = (self.head.peek(ring), self.tail.peek(ring));
            let lie = tail.wrapping_sub(head).min(self.cells);
            let tickets = (0..lie).map(move |step| head.wrapping_add(step));
            tickets.map(move |ticket| self.ring.peek(cell(ring, ticket, self.cells)))
        })
    }

    const fn ring_of(&self, slice: SliceId, rank: u8) -> usize {
        slice.0 as usize * self.ranks as usize + rank as usize
    }
}
