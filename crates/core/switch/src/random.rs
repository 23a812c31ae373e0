//! The chip's random unit, seeded so that a run can be repeated.

use alloc::boxed::Box;

/// A stream of pseudo-random words: a counter through a mixing function (SplitMix64).
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream for each pool. No stream depends on another, so a pool draws the same numbers whatever
    /// other pools there are.
    pub(crate) fn of_pools(seed: u64, pools: u16) -> Box<[Self]> {
        (0..u64::from(pools)).map(|pool| Self(seed ^ pool.wrapping_mul(0xD1B5_4A32_D192_ED03))).collect()
    }

    /// A number below `bound`, uniform as far as 32 bits allow.
    #[inline]
    pub const fn below(&mut self, bound: u16) -> u16 {
        self.below_wide(bound as u32) as u16
    }

    /// A number below a larger `bound`, uniform as far as 32 bits allow.
    #[inline]
    pub(crate) const fn below_wide(&mut self, bound: u32) -> u32 {
        (((self.word() >> 32) * bound as u64) >> 32) as u32
    }

    const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_words_that_it_gives_everywhere() {
        assert_eq!(Random::new(0).word(), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn every_number_below_the_bound_comes_about_as_often() {
        let mut random = Random::new(1);
        let mut counts = [0; 10];
        (0..100_000).for_each(|_| counts[random.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }
}
