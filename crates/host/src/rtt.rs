//! How long a round trip takes, as RFC 6298 estimates it (§2), without its floor of one second: these
//! networks answer in microseconds.

use sluice_wire::Nanos;

/// Longest sample taken: an hour. Keeps the arithmetic far from overflow.
const SAMPLE_MAX: Nanos = Nanos::from_millis(3_600_000);

/// A smoothed round-trip time and its variation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// Zero until the first sample.
    smoothed: Nanos,
    variation: Nanos,
}

impl Rtt {
    /// Nothing measured yet.
    pub const fn new() -> Self {
        Self { smoothed: Nanos(0), variation: Nanos(0) }
    }

    /// Takes one measured round trip of a packet that was sent once.
    pub fn sample(&mut self, span: Nanos) {
        let span = span.clamp(Nanos(1), SAMPLE_MAX);
        if self.smoothed == Nanos(0) {
            *self = Self { smoothed: span, variation: Nanos(span.0 / 2) };
            return;
        }
        let error = self.smoothed.0.abs_diff(span.0);
        self.variation = Nanos((3 * self.variation.0 + error) / 4);
        self.smoothed = Nanos(((7 * self.smoothed.0 + span.0) / 8).max(1));
    }

    /// The smoothed round trip, once one was measured.
    pub fn smoothed(&self) -> Option<Nanos> {
        (self.smoothed != Nanos(0)).then_some(self.smoothed)
    }

    /// What few round trips exceed: smoothed + 4 × variation; `first` until one was measured.
    #[must_use]
    pub fn bound(&self, first: Nanos) -> Nanos {
        self.smoothed().map_or(first, |smoothed| smoothed + self.variation.times(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_holds_until_a_round_trip_was_measured() {
        let mut rtt = Rtt::new();
        assert_eq!(rtt.bound(Nanos(700)), Nanos(700));
        rtt.sample(Nanos(100));
        assert_eq!(rtt.smoothed(), Some(Nanos(100)));
        assert_eq!(rtt.bound(Nanos(700)), Nanos(300));
        rtt.sample(Nanos(200));
        assert_eq!((rtt.smoothed(), rtt.bound(Nanos(700))), (Some(Nanos(112)), Nanos(112 + 4 * 62)));
    }

    #[test]
    fn steady_round_trips_shrink_the_bound_to_the_round_trip() {
        let mut rtt = Rtt::new();
        (0..100).for_each(|_| rtt.sample(Nanos(1_000)));
        assert!(rtt.bound(Nanos(0)) < Nanos(1_020));
    }

    #[test]
    fn one_long_round_trip_raises_the_bound_above_itself_only_slowly() {
        let mut rtt = Rtt::new();
        (0..100).for_each(|_| rtt.sample(Nanos(1_000)));
        rtt.sample(Nanos(9_000));
        assert_eq!(rtt.smoothed(), Some(Nanos(2_000)));
        assert!(rtt.bound(Nanos(0)) > Nanos(9_000));
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut rtt = Rtt::new();
        rtt.sample(Nanos(u64::MAX));
        rtt.sample(Nanos(0));
        rtt.sample(Nanos(u64::MAX));
        assert!(rtt.bound(Nanos(0)) > Nanos(0));
    }
}
