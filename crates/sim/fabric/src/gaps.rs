//! The pauses of flows between frames, at their hosts (HF²T §3).

use hdrhistogram::Histogram;
use sluice_wire::Nanos;

/// The longest gap that is told apart is one second, with a precision of a thousandth.
const NS_MAX: u64 = 1_000_000_000;
const DIGITS: u8 = 3;

/// The times between the departures of two frames of one flow, for all flows.
#[derive(Clone, Debug)]
pub struct Gaps(Histogram<u64>);

impl Gaps {
    pub(crate) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, NS_MAX, DIGITS).expect("the bounds are in order"))
    }

    #[inline]
    pub(crate) fn record(&mut self, gap: Nanos) {
        self.0.saturating_record(gap.0);
    }

    /// How many gaps there were.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The share of gaps that are at least so long.
    pub fn share_from(&self, gap: Nanos) -> f64 {
        self.0.count_between(gap.0.clamp(1, NS_MAX), NS_MAX) as f64 / self.count().max(1) as f64
    }

    /// The gap that this share of all gaps does not exceed.
    pub fn quantile(&self, share: f64) -> Nanos {
        Nanos(self.0.value_at_quantile(share))
    }
}
