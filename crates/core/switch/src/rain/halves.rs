//! How many entries lie in each of a slice's rings, counted so that one pass finds a ring that has some.
//!
//! Up to four rings make a small tree: a word says how many lie in either half of the rings, the next how
//! many in either ring of a half. Each level is one array in a stage of its own, and whoever passes chooses a
//! side at each by what it reads there. `balance` has told before that there is an entry, and who came before
//! has passed all levels before; so whichever side is chosen has one, and nothing is ever taken back.

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

    /// This side if it has any, else the other.
    #[inline]
    const fn filled(self, side: usize) -> usize {
        side ^ (self.of(side) == 0) as usize
    }

    /// One less on this side, which has some.
    #[inline]
    const fn without(self, side: usize) -> Self {
        Self(self.0.wrapping_sub(1 << (32 * side)))
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
    /// How many lie in either half of a slice's rings; there if there are two rings at least.
    halves: Option<Register<TwoCounts>>,
    /// How many lie in either ring of a half; there if there are four.
    rings: Option<Register<TwoCounts>>,
}

impl Halves {
    /// How many levels tell so many rings apart: 1, 2 or 4.
    pub(super) const fn levels(rings: u8) -> u8 {
        rings.trailing_zeros() as u8
    }

    /// Counts of a slice's rings from this stage on; the names are those of the levels.
    pub(super) fn new(
        layout: &mut Layout,
        names: [&'static str; 2],
        stage: u8,
        slices: usize,
        rings: u8,
    ) -> Self {
        let mut level = |level: u8| {
            let name = names[usize::from(level)];
            let is_there = level < Self::levels(rings);
            is_there.then(|| {
                Register::new(layout, name, stage + level, 64, slices << level, TwoCounts::default())
            })
        };
        Self { halves: level(0), rings: level(1) }
    }

    /// An entry comes into this ring. Says how many the first one has then; of four, it sees one half only.
    #[inline]
    pub(super) fn add(&mut self, pass: &mut Pass, slice: SliceId, ring: u8) -> Option<u32> {
        let (slice, ring) = (usize::from(slice.0), usize::from(ring));
        let halves = self.halves.as_mut()?;
        let Some(rings) = &mut self.rings else {
            let old = halves.update(pass, slice, |pair| pair.plus(ring));
            return Some(old.plus(ring).of(0));
        };
        halves.update(pass, slice, |pair| pair.plus(ring >> 1));
        rings.update(pass, slice << 1 | ring >> 1, |pair| pair.plus(ring & 1));
        None
    }

    /// The control software's look: how many the first of two rings has.
    pub(super) fn first(&self, slice: SliceId) -> Option<u32> {
        let halves = self.halves.as_ref().filter(|_| self.rings.is_none())?;
        Some(halves.peek(slice.0.into()).of(0))
    }

    /// An entry leaves: from the ring that is wished for if it has one, else from one that has, the first of
    /// those that are found beside its way.
    #[inline(always)]
    pub(super) fn take(&mut self, pass: &mut Pass, slice: SliceId, wished: u8) -> Found {
        let (slice, wished) = (usize::from(slice.0), usize::from(wished));
        let Some(halves) = &mut self.halves else { return Found { ring: 0, of: u32::MAX } };
        let Some(rings) = &mut self.rings else {
            let (ring, of) = leave(halves, pass, slice, wished);
            return Found { ring: ring as u8, of };
        };
        let (half, _) = leave(halves, pass, slice, wished >> 1);
        let wished = if half == wished >> 1 { wished & 1 } else { 0 };
        let (ring, of) = leave(rings, pass, slice << 1 | half, wished);
        Found { ring: (half << 1 | ring) as u8, of }
    }
}

/// One less on this side, or on the other if this one has none; says on which, and how many that had.
#[inline(always)]
fn leave(counts: &mut Register<TwoCounts>, pass: &mut Pass, at: usize, side: usize) -> (usize, u32) {
    let old = counts.update(pass, at, |pair| pair.without(pair.filled(side)));
    let side = old.filled(side);
    debug_assert!(old.of(side) > 0, "rain: entry {at} has fewer than its balance says");
    (side, old.of(side))
}
