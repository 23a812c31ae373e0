//! The cores with room by their rank, so that the least ranked is found without looking at all of them.
//!
//! The NIC has a reduction tree over the cores for each priority (RingLeader §5.1). In software every
//! dispatch would have to climb one tree for each priority, since it changes the ranks of all. But only ranks
//! below the bound matter, and of these there are few: so a set of cores stands for each rank, a change moves
//! a core from one set to another, and the least rank's first core is two bit scans away.

use alloc::vec;
use alloc::vec::Vec;

use super::ids::{CORES_MAX, CoreSet, PRIORITIES, bits};

/// Ranks below the bound for which there are sets: the bits of a word.
const RANKS_MAX: u32 = 64;
/// With fewer cores for each row a scan of their registers is quicker (`benches/orchestrator.rs`): what a
/// change costs grows with the rows, what a scan costs with the cores.
const CORES_A_ROW_MIN: usize = 16;

type Ranks = [u32; PRIORITIES];

#[derive(Clone, Debug)]
pub(super) struct Levels {
    /// A set for each register row and rank.
    sets: Vec<CoreSet>,
    /// The ranks of a row that may have cores: where a bit is clear, the set is empty.
    present: [u64; PRIORITIES],
    bound: u32,
    /// The rows that somebody looks at: the others are not kept.
    rows: u64,
}

impl Levels {
    /// For so many cores, if there are so many of them, and so few ranks, that it pays.
    pub(super) fn for_cores(cores: usize, bound: u32) -> Option<Self> {
        (cores >= CORES_A_ROW_MIN && bound <= RANKS_MAX).then(|| Self::new(bound))
    }

    /// Whether it still pays for so many cores.
    pub(super) fn pays(&self, cores: usize) -> bool {
        cores >= CORES_A_ROW_MIN * self.rows.count_ones() as usize
    }

    /// No row is kept.
    pub(super) fn new(bound: u32) -> Self {
        let sets = vec![CoreSet::default(); PRIORITIES * bound as usize];
        Self { sets, present: [0; PRIORITIES], bound, rows: 0 }
    }

    /// Keeps a row from now on; nothing changes if it is kept.
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

    /// A core's ranks have changed.
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

    /// The least ranked core of those allowed that has room; of equals, the first.
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
