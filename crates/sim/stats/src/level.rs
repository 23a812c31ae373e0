//! A number of things over time.

use sluice_wire::Nanos;

/// A number that rises and falls: its mean over a span of time, and its maximum.
///
/// Each step costs one addition. The area under the level is the sum of the times of all steps down minus
/// the sum of the times of all steps up, with a correction for the level at both ends of the span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    now: u64,
    max: u64,
    /// Times of the steps down minus times of the steps up, in nanoseconds. It may wrap on the way; the
    /// final sum is right.
    steps: u64,
    opened: Nanos,
    at_opening: u64,
}

impl Level {
    /// The number rises by one.
    #[inline]
    pub fn enter(&mut self, at: Nanos) {
        self.enter_many(1, at);
    }

    /// The number rises by so many.
    #[inline]
    pub fn enter_many(&mut self, many: u8, at: Nanos) {
        self.now += u64::from(many);
        self.max = self.max.max(self.now);
        self.steps = self.steps.wrapping_sub(at.0.wrapping_mul(many.into()));
    }

    /// The number falls by one; it must be above zero.
    #[inline]
    pub fn leave(&mut self, at: Nanos) {
        debug_assert!(self.now > 0, "a level cannot fall below zero");
        self.now -= 1;
        self.steps = self.steps.wrapping_add(at.0);
    }

    /// Begins the span over which the mean is taken.
    pub fn open(&mut self, at: Nanos) {
        *self = Self { now: self.now, max: self.now, steps: 0, opened: at, at_opening: self.now };
    }

    /// The present number.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The largest number since the span began.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean from the beginning of the span until `at`; 0 for an empty span.
    pub fn mean(&self, at: Nanos) -> f64 {
        let at_ends = self.now.wrapping_mul(at.0).wrapping_sub(self.at_opening.wrapping_mul(self.opened.0));
        let area = self.steps.wrapping_add(at_ends);
        let span = at.since(self.opened).0;
        if span == 0 { 0.0 } else { area as f64 / span as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_the_area_over_the_span() {
        let mut level = Level::default();
        level.enter(Nanos(10));
        level.enter(Nanos(40));
        level.open(Nanos(100));
        level.enter(Nanos(110));
        level.leave(Nanos(130));
        level.leave(Nanos(150));
        level.leave(Nanos(160));
        // The level is 2 for 10 ns, 3 for 20, 2 for 20, 1 for 10, and 0 for 40.
        assert!((level.mean(Nanos(200)) - 1.3).abs() < 1e-12);
        assert_eq!((level.now(), level.max()), (0, 3));
    }

    #[test]
    fn an_empty_span_has_the_mean_zero() {
        assert!(Level::default().mean(Nanos(0)).abs() < f64::EPSILON);
    }
}
