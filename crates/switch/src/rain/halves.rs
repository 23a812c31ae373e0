//! How many entries lie in each of a slice's rings, counted so that one pass finds a ring that has some.
//!
//! Up to four rings make a small tree: a word says how many lie in either half of the rings, the next how
//! many in either ring of a half. Each level is one array in a stage of its own, and whoever passes chooses a
//! side at each by what it reads there. `balance` has told before that there is an entry, and who came before
//! has passed all levels before; so whichever side is chosen has one, and nothing is ever taken back.

use alloc::boxed::Box;

use sluice_wire::SliceId;

use crate::pipeline::{Layout, Pass, Register};

/// How many entries lie on two sides: one word of the chip, and one here, so that neither half waits for the
/// other to be written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TwoCounts(u64);

impl TwoCounts {
    #[inline]
    pub(super) const fn of(self, side: usize) -> u32 {
        (self.0 >> (32 * side)) as u32
    }

    #[inline]
    pub(super) const fn sum(self) -> u32 {
        self.of(0) + self.of(1)
    }

    #[inline]
    pub(super) const fn plus(self, side: usize) -> Self {
        Self(self.0 + (1 << (32 * side)))
    }

    /// One less on this side; none stays none.
    #[inline]
    pub(super) const fn less(self, side: usize) -> Self {
        Self(self.0 - (((self.of(side) > 0) as u64) << (32 * side)))
    }
}

/// A ring that has an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Which of the slice's.
    pub(super) ring: u8,
    /// How many entries it had, the one that is taken included.
    pub(super) of: u32,
}

/// The counts of all slices, a level a stage.
#[derive(Debug)]
pub(super) struct Halves {
    levels: Box<[Register<TwoCounts>]>,
}

impl Halves {
    /// How many levels tell so many rings apart: 1, 2 or 4.
    pub(super) const fn levels(rings: u8) -> u8 {
        rings.trailing_zeros() as u8
    }

    /// Fill of a slice's rings from this stage on; the names are those of its levels.
    pub(super) fn new(
        layout: &mut Layout,
        names: [&'static str; 2],
        stage: u8,
        slices: usize,
        rings: u8,
    ) -> Self {
        let level = |(level, name)| {
            Register::new(layout, name, stage + level, 64, slices << level, TwoCounts::default())
        };
        Self { levels: (0..Self::levels(rings)).zip(names).map(level).collect() }
    }

    /// An entry comes into this ring.
    #[inline]
    pub(super) fn add(&mut self, pass: &mut Pass, slice: SliceId, ring: u8) {
        let levels = self.levels.len();
        for (level, counts) in self.levels.iter_mut().enumerate() {
            let way = ring as usize >> (levels - 1 - level);
            counts.update(pass, (slice.0 as usize) << level | way >> 1, |pair| pair.plus(way & 1));
        }
    }

    /// An entry leaves: from the ring that is wished for if it has one, else from one that has, the first of
    /// those that are found beside its way.
    #[inline]
    pub(super) fn take(&mut self, pass: &mut Pass, slice: SliceId, wished: u8) -> Found {
        let levels = self.levels.len();
        let mut found = Found { ring: 0, of: u32::MAX };
        let mut wished = wished as usize;
        for (level, counts) in self.levels.iter_mut().enumerate() {
            let first = wished >> (levels - 1 - level) & 1;
            let old = counts.branch(
                pass,
                (slice.0 as usize) << level | found.ring as usize,
                |pair| pair.of(first) > 0,
                |pair| pair.less(first),
                |pair| pair.less(1 - first),
            );
            let side = if old.of(first) > 0 { first } else { 1 - first };
            debug_assert!(old.of(side) > 0, "rain: slice {slice} has fewer entries than its balance");
            if side != first {
                wished = 0;
            }
            found = Found { ring: found.ring << 1 | side as u8, of: old.of(side) };
        }
        found
    }
}
