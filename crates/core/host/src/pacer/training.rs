//! The training of a pacer: it learns the distribution of gaps before any packet is held.

use core::{fmt, mem};

use alloc::vec::Vec;

use sluice_wire::Nanos;

/// How many gaps must lie above T when it is chosen: with fewer, the start of the tail is noise.
pub(super) const TAIL_MIN: u32 = 10;

/// The largest number of training gaps: they take 128 MiB, which are freed once T is known.
pub(super) const GAPS_MAX: u32 = 1 << 24;

/// A share of the gaps, in hundredths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GapShare(u16);

const ALL: u64 = 10_000;

impl GapShare {
    /// The lowest percentile for T.
    pub const P97_5: Self = Self(9_750);
    /// The most.
    pub const P99: Self = Self(9_900);

    /// A share in hundredths of a percent: 9,900 is 99 %. Larger values than 10,000 count as 10,000.
    pub const fn of_hundredths(hundredths: u16) -> Self {
        Self(if hundredths as u64 > ALL { ALL as u16 } else { hundredths })
    }

    /// Reads a percentage, such as `97.5`.
    pub fn read(percent: &str) -> Option<Self> {
        let share = percent.parse::<f64>().ok().filter(|share| (0.0..=100.0).contains(share))?;
        Some(Self::of_hundredths((share * 100.0 + 0.5) as u16))
    }

    /// How many gaps are needed so that `above` of them lie above this share.
    pub(super) fn gaps_with_above(self, above: u32) -> u32 {
        let rest = (ALL - u64::from(self.0)).max(1);
        (u64::from(above) * ALL).div_ceil(rest) as u32
    }

    /// The index, from 0, of the gap at this share among `gaps` sorted ones.
    fn rank(self, gaps: usize) -> usize {
        let rank = (gaps as u64 * u64::from(self.0)).div_ceil(ALL);
        rank.saturating_sub(1) as usize
    }
}

impl fmt::Display for GapShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&(f64::from(self.0) / 100.0), f)
    }
}

/// The gaps learnt so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Training {
    gaps: Vec<Nanos>,
    wanted: u32,
}

impl Training {
    /// A training that ends after `wanted` gaps, at least one.
    pub(super) fn new(wanted: u32) -> Self {
        Self { gaps: Vec::with_capacity(wanted as usize), wanted }
    }

    pub(super) fn missing(&self) -> u32 {
        self.wanted - self.gaps.len() as u32
    }

    /// Adds a gap. Returns the gap at this share once there are enough.
    pub(super) fn learn(&mut self, gap: Nanos, share: GapShare) -> Option<Nanos> {
        self.gaps.push(gap);
        (self.missing() == 0).then(|| {
            let mut gaps = mem::take(self).gaps;
            let rank = share.rank(gaps.len());
            *gaps.select_nth_unstable(rank).1
        })
    }
}
