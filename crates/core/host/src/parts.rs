//! Which parts of a long task or reply have arrived, if it did not fit into one packet.
//!
//! Bytes travel in parts of [`PART_BYTES`] at fixed offsets, of which only the last may be shorter; so 64
//! KiB need 64 bits. Parts may come in any order and more than once; each counts once.

use sluice_wire::{Nanos, TASK_BYTES_MAX};

/// The size of a part in bytes; each part starts at a multiple of it.
pub const PART_BYTES: u32 = 1_024;

/// A task or reply of which some bytes are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    missing: u64,
    total: u32,
    /// When the missing bytes are asked for again.
    pub(crate) due: Nanos,
    /// How often the missing bytes were asked for.
    pub(crate) tries: u8,
}

/// The length exceeds [`TASK_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Parts {
    /// The first `have` of `total` bytes are there; `total` may be at most [`TASK_BYTES_MAX`].
    pub(crate) const fn new(total: u32, have: u32) -> Result<Self, TooLong> {
        if total > TASK_BYTES_MAX {
            return Err(TooLong);
        }
        let count = total.div_ceil(PART_BYTES);
        let there = if have >= total { count } else { have / PART_BYTES };
        Ok(Self { missing: ones(count) & !ones(there), total, due: Nanos(0), tries: 0 })
    }

    /// Marks everything as missing again.
    pub(crate) const fn restart(&mut self) {
        self.missing = ones(self.total.div_ceil(PART_BYTES));
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Takes bytes at this offset and of this length, which must be whole parts. Returns whether at least
    /// one part was missing.
    pub(crate) fn take(&mut self, offset: u32, length: u32) -> bool {
        let Some(end) = offset.checked_add(length).filter(|end| *end <= self.total) else { return false };
        let is_whole =
            offset.is_multiple_of(PART_BYTES) && (end == self.total || end.is_multiple_of(PART_BYTES));
        if !is_whole || length == 0 {
            return false;
        }
        let brought = ones(end.div_ceil(PART_BYTES)) & !ones(offset / PART_BYTES);
        let is_news = self.missing & brought != 0;
        self.missing &= !brought;
        is_news
    }

    /// The runs of missing bytes, as offset and length.
    pub(crate) fn runs(self) -> impl Iterator<Item = (u32, u32)> {
        let mut left = self.missing;
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            left &= !(ones(first + count));
            let offset = first * PART_BYTES;
            Some((offset, (count * PART_BYTES).min(self.total - offset)))
        })
    }
}

/// The lowest `count` bits.
const fn ones(count: u32) -> u64 {
    if count >= u64::BITS { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn runs(parts: &Parts) -> Vec<(u32, u32)> {
        parts.runs().collect()
    }

    #[test]
    fn what_the_first_packet_brought_is_not_asked_for_except_its_torn_end() {
        assert_eq!(runs(&Parts::new(5_000, 2_100).unwrap()), vec![(2_048, 2_952)]);
        assert!(Parts::new(640, 640).unwrap().is_whole());
        assert_eq!(runs(&Parts::new(65_536, 0).unwrap()), vec![(0, 65_536)]);
        assert_eq!(Parts::new(65_537, 0), Err(TooLong));
    }

    #[test]
    fn holes_are_asked_for_one_by_one() {
        let mut parts = Parts::new(10_000, 0).unwrap();
        assert!(parts.take(1_024, 2_048));
        assert!(!parts.take(1_024, 1_024), "it came before");
        assert!(parts.take(9_216, 784));
        assert_eq!(runs(&parts), vec![(0, 1_024), (3_072, 6_144)]);
    }

    #[test]
    fn torn_or_impossible_parts_are_not_taken() {
        let mut parts = Parts::new(5_000, 0).unwrap();
        for (offset, length) in [(1, 1_024), (0, 1_000), (4_096, 1_024), (u32::MAX, 1), (5_120, 0), (0, 0)] {
            assert!(!parts.take(offset, length), "{offset} {length}");
        }
        assert_eq!(runs(&parts), vec![(0, 5_000)]);
    }

    proptest! {
        #[test]
        fn whatever_comes_in_whatever_order_it_is_whole_when_the_runs_that_are_left_came(
            total in 9_u32..=TASK_BYTES_MAX,
            have in 0_u32..=TASK_BYTES_MAX,
            came in prop::collection::vec((0_u32..70, 1_u32..5), 0..80),
        ) {
            let mut parts = Parts::new(total, have.min(total)).unwrap();
            for (first, count) in came {
                let offset = first * PART_BYTES;
                parts.take(offset, (count * PART_BYTES).min(total.saturating_sub(offset)));
            }
            for (offset, length) in runs(&parts) {
                prop_assert!(parts.take(offset, length));
            }
            prop_assert!(parts.is_whole());
        }
    }
}
