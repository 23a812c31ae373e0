//! The cores with room, sorted by rank, so that the lowest rank is found without looking at every core.
//!
//! The NIC has a reduction tree over the cores for each priority (RingLeader §5.1). In software each
//! dispatch would have to climb a tree for each priority, since it changes all ranks. But only ranks below
//! the bound matter, and they are few. So there is one set of cores for each rank: a change moves a core
//! from one set to another, and two bit scans find the first core of the lowest rank.

use alloc::vec;
use alloc::vec::Vec;

use super::ids::{CORES_MAX, CoreSet, PRIORITIES, bits};

/// The largest number of ranks below the bound: one bit of a word for each set.
const RANKS_MAX: u32 = 64;
/// With fewer cores for each row, scanning the registers is faster (`benches/orchestrator.rs`): the cost of
/// a change grows with the rows, the cost of a scan with the cores.
const CORES_A_ROW_MIN: usize = 16;

type Ranks = [u32; PRIORITIES];

#[derive(Clone, Debug)]
pub(super) struct Levels {
    /// One set of cores for each register row and rank.
    sets: Vec<CoreSet>,
    /// For each row, the ranks that may have cores. Where a bit is clear, the set is empty.
    present: [u64; PRIORITIES],
    bound: u32,
    /// The rows that some service uses; the others are not kept up to date.
    rows: u64,
}

impl Levels {
    /// Empty sets for `cores` cores; `None` if there are too few cores or too many ranks for sets to be
    /// faster.
    pub(super) fn for_cores(cores: usize, bound: u32) -> Option<Self> {
        (cores >= CORES_A_ROW_MIN && bound <= RANKS_MAX).then(|| Self::new(bound))
    }

    /// Whether sets are still faster with so many cores.
    pub(super) fn pays(&self, cores: usize) -> bool {
        cores >= CORES_A_ROW_MIN * self.rows.count_ones() as usize
    }

    /// Empty sets; no row is kept up to date yet.
    pub(super) fn new(bound: u32) -> Self {
        let sets = vec![CoreSet::default(); PRIORITIES * bound as usize];
        Self { sets, present: [0; PRIORITIES], bound, rows: 0 }
    }

    /// Keeps a row up to date from now on; repeating the call changes nothing.
    pub(super) fn keep(&mut self, row: usize, ranks: &[Ranks]) {
        if self.rows >> row & 1 == 1 {
            return;
        }
        self.rows |= 1 << row;
        for (core, ranks) in ranks.iter().enumerate() {
            if ranks[row] < self.bound {
                self.insert(row, ranks[row], core);
            }
        }
    }

    /// Moves a core from its old ranks' sets to its new ranks' sets.
    pub(super) fn moved(&mut self, core: usize, from: &Ranks, to: &Ranks) {
        for row in bits(self.rows) {
            let (from, to) = (from[row], to[row]);
            if from == to {
                continue;
            }
            if from < self.bound {
                self.sets[row * self.bound as usize + from as usize].remove(core);
            }
            if to < self.bound {
                self.insert(row, to, core);
            }
        }
    }

    /// The core with the lowest rank among the allowed cores with room; the first of equals.
    #[inline]
    pub(super) fn least(&mut self, row: usize, allowed: &CoreSet) -> Option<usize> {
        let base = row * self.bound as usize;
        for rank in bits(self.present[row]) {
            let set = &self.sets[base + rank];
            for word in 0..CORES_MAX / 64 {
                let there = set.0[word] & allowed.0[word];
                if there != 0 {
                    return Some(word * 64 + there.trailing_zeros() as usize);
                }
            }
            if set.is_empty() {
                self.present[row] &= !(1 << rank);
            }
        }
        None
    }

    #[inline]
    fn insert(&mut self, row: usize, rank: u32, core: usize) {
        self.sets[row * self.bound as usize + rank as usize].insert(core);
        self.present[row] |= 1 << rank;
    }
}
