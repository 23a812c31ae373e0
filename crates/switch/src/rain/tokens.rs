//! Parked tokens, by rank: a task takes the one before which the fewest tasks stand (ours; in no paper).
//!
//! Each rank of a slice has a ring. How many tokens lie in each is counted two ranks a word, a word a stage,
//! so that a task finds the least rank that has one in the stages that it passes anyway: `balance` has told
//! it that there is one, and whoever came before it has passed these stages before it, too. The last rank
//! stands for all beyond it. With one rank there is one ring and nothing to count.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sluice_wire::tables::{RANKS_MAX, RingCounts};
use sluice_wire::{Generation, Rank, Serial, SliceId, WorkerId};

use crate::config::Config;
use crate::entry::cell;
use crate::pipeline::{Column, Layout, Pass, Register, Ring};

/// A token in its ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ParkedToken {
    pub(super) worker: WorkerId,
    pub(super) generation: Generation,
}

/// A token that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) token: ParkedToken,
    /// The rank that it lay under.
    pub(super) rank: u8,
    /// How many lay under this rank, itself included; the most that there can be where nobody counts.
    pub(super) of: u32,
}

/// A token in one word.
const TOGETHER: &[Column] = &[Column { name: "token", stage: 0, bits: 16 + 32 }];

/// A token of one of many rings, which leave its word no room in one stage. The generation is looked up by
/// its worker, and compared where it lies.
const BY_RANK: &[Column] = &[
    Column { name: "token: worker", stage: 0, bits: 16 },
    Column { name: "token: generation", stage: 2, bits: 32 },
];

/// How many tokens lie under two ranks: one word of the chip, and one here, so that neither half waits for
/// the other to be written.
#[derive(Clone, Copy, Debug, Default)]
struct Pair(u64);

impl Pair {
    #[inline]
    const fn of(self, half: usize) -> u32 {
        (self.0 >> (32 * half)) as u32
    }

    #[inline]
    const fn plus(self, half: usize) -> Self {
        Self(self.0 + (1 << (32 * half)))
    }

    /// One less of this half; none stays none.
    #[inline]
    const fn less(self, half: usize) -> Self {
        Self(self.0 - (((self.of(half) > 0) as u64) << (32 * half)))
    }
}

/// The rings of parked tokens of all slices.
#[derive(Debug)]
pub(super) struct ParkedTokens {
    counts: Box<[Register<Pair>]>,
    head: Register<u32>,
    tail: Register<u32>,
    ring: Ring<ParkedToken>,
    ranks: u8,
    /// Cells of each ring.
    cells: u32,
}

impl ParkedTokens {
    /// Words of counts, each with a stage of its own, behind the balance and before heads and tails.
    pub(super) const fn words(ranks: u8) -> u8 {
        if ranks > 1 { ranks.div_ceil(2) } else { 0 }
    }

    pub(super) fn new(layout: &mut Layout, config: &Config, ranks: u8, counts: u8) -> Self {
        const NAMES: [&str; RANKS_MAX / 2] = ["ranks 0, 1", "ranks 2, 3"];
        let (slices, cells) = (config.slices as usize, config.tokens_per_slice);
        let (words, rings) = (Self::words(ranks), slices * ranks as usize);
        let word = |word: u8| {
            Register::new(layout, NAMES[word as usize], counts + word, 64, slices, Pair::default())
        };
        let (counted, heads) = ((0..words).map(word).collect(), counts + words);
        let pointer = |layout: &mut Layout, name| {
            Register::new(layout, name, heads, 32, rings, config.counters_start.0)
        };
        let (head, tail) = (pointer(layout, "token head"), pointer(layout, "token tail"));
        let columns = if words > 0 { BY_RANK } else { TOGETHER };
        let columns: Vec<Column> =
            columns.iter().map(|of| Column { stage: heads + 1 + of.stage, ..*of }).collect();
        let ring = Ring::new(layout, "token ring", &columns, rings * cells as usize, ParkedToken::default());
        Self { counts: counted, head, tail, ring, ranks, cells }
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
        self.counts[word_of(rank)].update(pass, slice.0 as usize, |pair| pair.plus(half_of(rank)));
        self.ring_of(slice, rank)
    }

    /// Takes the token of the least rank. The balance has told that there is one.
    #[inline]
    pub(super) fn take(&mut self, pass: &mut Pass, slice: SliceId) -> Option<ParkedToken> {
        if self.ranks == 1 {
            return Some(self.pop(pass, slice.0 as usize));
        }
        self.take_ranked(pass, slice)
    }

    #[inline(never)]
    fn take_ranked(&mut self, pass: &mut Pass, slice: SliceId) -> Option<ParkedToken> {
        self.take_from(pass, slice, 0).map(|taken| taken.token)
    }

    /// Takes a token of this rank; if there is none, one of the other rank in its word, or the first of those
    /// behind. `None`: all that the balance told of lie before it.
    #[inline]
    pub(super) fn take_from(&mut self, pass: &mut Pass, slice: SliceId, rank: u8) -> Option<Taken> {
        let (rank, of) = self.find(pass, slice, rank)?;
        Some(Taken { token: self.pop(pass, self.ring_of(slice, rank)), rank, of })
    }

    #[inline]
    fn pop(&mut self, pass: &mut Pass, ring: usize) -> ParkedToken {
        let ticket = self.head.update(pass, ring, |head| head.wrapping_add(1));
        self.ring.read(pass, cell(ring, ticket, self.cells))
    }

    /// Which rank a token is taken from, and how many it has.
    #[inline]
    fn find(&mut self, pass: &mut Pass, slice: SliceId, from: u8) -> Option<(u8, u32)> {
        if self.counts.is_empty() {
            return Some((0, u32::MAX));
        }
        for word in word_of(from)..self.counts.len() {
            let first = if word == word_of(from) { half_of(from) } else { 0 };
            let old = self.counts[word].branch(
                pass,
                slice.0 as usize,
                |pair| pair.of(first) > 0,
                |pair| pair.less(first),
                |pair| pair.less(1 - first),
            );
            for half in [first, 1 - first] {
                if old.of(half) > 0 {
                    return Some(((2 * word + half) as u8, old.of(half)));
                }
            }
        }
        None
    }

    /// How many tokens ever entered each ring of a slice, and how many left it.
    pub(super) fn counts(&self, slice: usize) -> (RingCounts, RingCounts) {
        let of = |pointer: &Register<u32>| {
            let mut counts = RingCounts::default();
            for (rank, count) in counts.0.iter_mut().enumerate().take(self.ranks.into()) {
                *count = Serial(pointer.peek(slice * self.ranks as usize + rank));
            }
            counts
        };
        (of(&self.tail), of(&self.head))
    }

    /// The tokens of a slice in the order in which they leave, if none comes meanwhile.
    pub(super) fn parked(&self, slice: SliceId) -> impl Iterator<Item = ParkedToken> {
        let rings = (0..self.ranks).map(move |rank| self.ring_of(slice, rank));
        rings.flat_map(move |ring| {
            let (head, tail) = (self.head.peek(ring), self.tail.peek(ring));
            let tickets = (0..tail.wrapping_sub(head)).map(move |step| head.wrapping_add(step));
            tickets.map(move |ticket| self.ring.peek(cell(ring, ticket, self.cells)))
        })
    }

    const fn ring_of(&self, slice: SliceId, rank: u8) -> usize {
        slice.0 as usize * self.ranks as usize + rank as usize
    }
}

const fn word_of(rank: u8) -> usize {
    rank as usize / 2
}

const fn half_of(rank: u8) -> usize {
    rank as usize % 2
}
