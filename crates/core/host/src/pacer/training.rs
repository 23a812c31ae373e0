//! What a host learns of its gaps before it makes any of them longer.

use core::{fmt, mem};

use alloc::vec::Vec;

use sluice_wire::Nanos;

/// So many gaps are to be above T when it is chosen: fewer say little about where the tail begins.
pub(super) const TAIL_MIN: u32 = 10;

/// So many gaps fit into 128 MiB of memory, which are free again once T is known.
pub(super) const GAPS_MAX: u32 = 1 << 24;

/// A share of the gaps, in hundredths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GapShare(u16);

/// All of the gaps.
const ALL: u64 = 10_000;

impl GapShare {
    /// The least that T is chosen by.
    pub const P97_5: Self = Self(9_750);
    /// The most.
    pub const P99: Self = Self(9_900);

    /// So many hundredths of a percent: 9,900 are 99 %. More than all are all.
    pub const fn of_hundredths(hundredths: u16) -> Self {
        Self(if hundredths as u64 > ALL { ALL as u16 } else { hundredths })
    }

    /// Reads a percentage, such as `97.5`.
    pub fn read(percent: &str) -> Option<Self> {
        let share = percent.parse::<f64>().ok().filter(|share| (0.0..=100.0).contains(share))?;
        Some(Self::of_hundredths((share * 100.0 + 0.5) as u16))
    }

    /// How many gaps there have to be for so many to lie above this share of them.
    pub(super) fn gaps_with_above(self, above: u32) -> u32 {
        let rest = (ALL - u64::from(self.0)).max(1);
        (u64::from(above) * ALL).div_ceil(rest) as u32
    }

    /// The place, from 0, of the gap that so many of all `gaps` do not exceed.
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

/// The gaps so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Training {
    gaps: Vec<Nanos>,
    wanted: u32,
}

impl Training {
    /// Ends after so many gaps, at least one.
    pub(super) fn new(wanted: u32) -> Self {
        Self { gaps: Vec::with_capacity(wanted as usize), wanted }
    }

    pub(super) fn missing(&self) -> u32 {
        self.wanted - self.gaps.len() as u32
    }

    /// A gap comes. Once there are enough, gives the one at this share of them.
    pub(super) fn learn(&mut self, gap: Nanos, share: GapShare) -> Option<Nanos> {
        self.gaps.push(gap);
        (self.missing() == 0).then(|| {
            let mut gaps = mem::take(self).gaps;
            let rank = share.rank(gaps.len());
            *gaps.select_nth_unstable(rank).1
        })
    }
}
