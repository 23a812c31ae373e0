//! Counts the entries of each of a slice's rings, for packets that may take from some of the rings only.
//!
//! A word holds the counts of two rings, and each word has a stage. A pass that looks for an entry reads
//! the words in order, and decrements the first ring that it may take from and that has an entry. It only
//! reads the words behind.

use alloc::boxed::Box;

use sluice_wire::SliceId;

use super::halves::TwoCounts;
use crate::pipeline::{Layout, Pass, Register};

/// The counts of all slices.
#[derive(Debug)]
pub(super) struct Fill {
    words: Box<[Register<TwoCounts>]>,
}

impl Fill {
    /// How many stages the counts of so many rings take.
    pub(super) const fn words(rings: u8) -> u8 {
        rings / 2
    }

    /// The counts of four rings of each slice, from this stage on.
    pub(super) fn new(layout: &mut Layout, names: [&'static str; 2], stage: u8, slices: usize) -> Self {
        let word = |(at, name)| Register::new(layout, name, stage + at, 64, slices, TwoCounts::default());
        Self { words: (0..).zip(names).map(word).collect() }
    }

    /// Counts an entry into this ring, if the ring has fewer than `most`; returns whether it had.
    #[inline]
    pub(super) fn add(&mut self, pass: &mut Pass, slice: SliceId, ring: u8, most: u32) -> bool {
        let (word, side) = (usize::from(ring / 2), usize::from(ring % 2));
        let fits = |pair: TwoCounts| pair.of(side) < most;
        fits(self.words[word].branch(pass, slice.0.into(), fits, |pair| pair.plus(side), |pair| pair))
    }

    /// Counts an entry out of the first of these rings (a bit each) that has one. Returns that ring, if
    /// there is one, and how many entries are left in all rings.
    #[inline(always)]
    pub(super) fn take(&mut self, pass: &mut Pass, slice: SliceId, rings: u8) -> (Option<u8>, u32) {
        let (mut taken, mut left) = (None, 0);
        for (at, word) in self.words.iter_mut().enumerate() {
            let open = if taken.is_none() { rings >> (2 * at) & 0b11 } else { 0 };
            if open == 0 {
                left += word.read(pass, slice.0.into()).sum();
                continue;
            }
            // A word has one comparison, which looks at its first ring if that may be taken from. A
            // decrement of zero leaves zero.
            let first = usize::from(open & 1 == 0);
            let second = usize::from(open & 2 != 0);
            let old = word.branch(
                pass,
                slice.0.into(),
                |pair| pair.of(first) > 0,
                |pair| pair.less(first),
                |pair| pair.less(second),
            );
            let side = if old.of(first) > 0 { first } else { second };
            taken = (old.of(side) > 0).then_some((2 * at + side) as u8);
            left += old.sum() - u32::from(taken.is_some());
        }
        (taken, left)
    }

    /// Whether any of these rings (a bit each) has an entry.
    #[inline]
    pub(super) fn any(&mut self, pass: &mut Pass, slice: SliceId, rings: u8) -> bool {
        let mut any = false;
        for (at, word) in self.words.iter_mut().enumerate() {
            let open = rings >> (2 * at) & 0b11;
            if open != 0 {
                let pair = word.read(pass, slice.0.into());
                any |= (0..2).any(|side| open >> side & 1 == 1 && pair.of(side) > 0);
            }
        }
        any
    }

    /// How many entries a slice has in all its rings.
    pub(super) fn sum(&self, slice: usize) -> u32 {
        self.words.iter().map(|word| word.peek(slice).sum()).sum()
    }
}
