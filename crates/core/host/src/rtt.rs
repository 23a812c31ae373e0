//! Round-trip time, smoothed as in RFC 6298 (§2). We add one rule: a sample of less than half the smoothed
//! value halves the smoothed value. Without this rule, a switch that stood still for milliseconds would
//! count as slow for dozens of round trips, each measured as rarely as a slow switch allows.

use sluice_wire::Nanos;

/// The longest sample that counts: an hour. Keeps the arithmetic far from overflow.
const SAMPLE_MAX: Nanos = Nanos::from_millis(3_600_000);

/// A smoothed round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// Zero until the first sample.
    smoothed: Nanos,
}

impl Rtt {
    /// Nothing measured yet.
    pub const fn new() -> Self {
        Self { smoothed: Nanos(0) }
    }

    /// Adds the measured round trip of a packet that was sent once.
    pub fn sample(&mut self, span: Nanos) {
        let span = span.clamp(Nanos(1), SAMPLE_MAX);
        if self.smoothed == Nanos(0) {
            self.smoothed = span;
            return;
        }
        let parts = if span.0 < self.smoothed.0 / 2 { 2 } else { 8 };
        self.smoothed = Nanos((((parts - 1) * self.smoothed.0 + span.0) / parts).max(1));
    }

    /// The smoothed round trip, once one was measured.
    pub fn smoothed(&self) -> Option<Nanos> {
        (self.smoothed != Nanos(0)).then_some(self.smoothed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_trip_is_believed_and_each_later_one_moves_it_by_an_eighth() {
        let mut rtt = Rtt::new();
        assert_eq!(rtt.smoothed(), None);
        let samples = [100, 200, 56, 1_001].map(|span| {
            rtt.sample(Nanos(span));
            rtt.smoothed()
        });
        assert_eq!(samples, [100, 112, 105, 217].map(|span| Some(Nanos(span))));
    }

    #[test]
    fn what_was_thought_while_the_switch_stood_still_is_forgotten_within_few_round_trips() {
        let mut rtt = Rtt::new();
        rtt.sample(Nanos::from_millis(8));
        (0..12).for_each(|_| rtt.sample(Nanos(4_000)));
        assert!(rtt.smoothed() < Some(Nanos(8_000)), "{rtt:?}");
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut rtt = Rtt::new();
        rtt.sample(Nanos(u64::MAX));
        rtt.sample(Nanos(0));
        rtt.sample(Nanos(u64::MAX));
        assert!(rtt.smoothed() > Some(Nanos(0)));
    }
}
