//! Counts the entries of each of a slice's rings, so that one pass finds a ring with an entry.
//!
//! Up to four rings form a small tree. One word counts the entries in either half of the rings, and the
//! next word those in either ring of a half. Each level is one array in a stage of its own, and a pass
//! chooses a side at each level by what it reads there. `balance` has told the pass that there is an entry,
//! and every earlier packet has passed all levels before. So the chosen side always has an entry, and no
//! count is ever taken back.

use sluice_wire::SliceId;

use crate::pipeline::{Layout, Pass, Register};

/// The entry counts of two sides. They are one word on the chip and one word here, so that no read waits
/// for a write of the other half.
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

    /// This side if it has entries, else the other.
    #[inline]
    const fn filled(self, side: usize) -> usize {
        side ^ (self.of(side) == 0) as usize
    }

    /// Subtracts an entry from this side, which has one.
    #[inline]
    const fn without(self, side: usize) -> Self {
        Self(self.0.wrapping_sub(1 << (32 * side)))
    }

    /// Subtracts an entry from this side; zero stays zero.
    #[inline]
    pub(super) const fn less(self, side: usize) -> Self {
        Self(self.0 - (((self.of(side) > 0) as u64) << (32 * side)))
    }
}

/// A ring that has an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The ring's number in its slice.
    pub(super) ring: u8,
    /// How many entries it had, with the one that is taken.
    pub(super) of: u32,
}

/// The counts of all slices, one level per stage.
#[derive(Debug)]
pub(super) struct Halves {
    /// Entries in either half of a slice's rings; `None` with one ring.
    halves: Option<Register<TwoCounts>>,
    /// Entries in either ring of a half; `None` with fewer than four rings.
    rings: Option<Register<TwoCounts>>,
}

impl Halves {
    /// How many levels so many rings need; there are 1, 2 or 4 rings.
    pub(super) const fn levels(rings: u8) -> u8 {
        rings.trailing_zeros() as u8
    }

    /// The counts of each slice's rings, from this stage on; the names are those of the levels.
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

    /// Counts an entry into this ring. Returns how many entries the first ring has then; with four rings a
    /// pass sees one half only and returns `None`.
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

    /// Called by the control software: how many entries the first of two rings has.
    pub(super) fn first(&self, slice: SliceId) -> Option<u32> {
        let halves = self.halves.as_ref().filter(|_| self.rings.is_none())?;
        Some(halves.peek(slice.0.into()).of(0))
    }

    /// Counts an entry out: from the wished ring if it has one, else from the first ring with an entry that
    /// the pass finds.
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

/// Subtracts an entry from this side, or from the other if this side is empty. Returns the side, and how
/// many entries it had.
#[inline(always)]
fn leave(counts: &mut Register<TwoCounts>, pass: &mut Pass, at: usize, side: usize) -> (usize, u32) {
    let old = counts.update(pass, at, |pair| pair.without(pair.filled(side)));
    let side = old.filled(side);
    debug_assert!(old.of(side) > 0, "rain: entry {at} has fewer than its balance says");
    (side, old.of(side))
}
