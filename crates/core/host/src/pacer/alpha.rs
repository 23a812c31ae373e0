//! The factor α by which T is multiplied, depending on the flowlet's length so far (HF²T §4.3, equation 1).

use sluice_wire::Nanos;

/// α as a function of x, the packets since the last hold: `short`/x up to `short`, then 1, and `long`/x
/// from `long` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alpha {
    /// A flowlet with fewer packets is short: only a longer gap may end it.
    pub short: u32,
    /// A flowlet with more packets is long: a shorter gap may end it.
    pub long: u32,
}

impl Default for Alpha {
    /// The paper's (§5.1).
    fn default() -> Self {
        Self { short: 20, long: 80 }
    }
}

impl Alpha {
    /// Reads both bounds, written as `20/80`.
    pub fn read(text: &str) -> Option<Self> {
        let (short, long) = text.split_once('/')?;
        Some(Self { short: short.parse().ok()?, long: long.parse().ok()? })
    }

    /// α for a flowlet of `packets` packets; 0 packets count as 1.
    #[inline]
    pub const fn factor(self, packets: u32) -> AlphaFactor {
        let packets = if packets == 0 { 1 } else { packets };
        if packets <= self.short {
            AlphaFactor { times: self.short, over: packets }
        } else if packets < self.long {
            AlphaFactor::ONE
        } else {
            AlphaFactor { times: self.long, over: packets }
        }
    }
}

/// A ratio of two counts, compared without rounding.
#[derive(Clone, Copy, Debug)]
pub struct AlphaFactor {
    times: u32,
    over: u32,
}

impl AlphaFactor {
    /// Changes nothing.
    pub const ONE: Self = Self { times: 1, over: 1 };

    /// The ratio.
    pub fn get(self) -> f64 {
        f64::from(self.times) / f64::from(self.over)
    }

    /// Whether this factor times `span` is at most `gap`.
    #[inline]
    pub(super) fn times_is_within(self, span: Nanos, gap: Nanos) -> bool {
        u128::from(span.0) * u128::from(self.times) <= u128::from(gap.0) * u128::from(self.over)
    }
}
