//! A time in which a core takes longer for everything, since another program runs beside it (interference).
//!
//! The simulator's cores and the emulated processors of live racks follow this rule alike. Left out: the
//! cause, and effects on caches and memory beyond that time.

use sluice_wire::Nanos;

/// From one moment to another, work takes `factor` times as long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowTime {
    /// How many times as long work takes; at least 1.
    pub factor: f64,
    pub from: Nanos,
    /// The end of the slow time.
    pub until: Nanos,
}

impl SlowTime {
    /// How long `work` takes if it begins at `at`: only the part inside the slow time is stretched.
    pub fn takes(&self, at: Nanos, work: Nanos) -> Nanos {
        let before = if at < self.from { self.from.since(at).min(work) } else { Nanos(0) };
        let left = work - before;
        let starts = at + before;
        let room = (self.until.since(starts).0 as f64 / self.factor) as u64;
        let within = left.min(Nanos(room));
        let within_takes = Nanos((within.0 as f64 * self.factor) as u64);
        before + within_takes + (left - within)
    }

    /// The slow time with all times multiplied by `factor`.
    #[must_use]
    pub const fn dilated(self, factor: u64) -> Self {
        Self { from: self.from.times(factor), until: self.until.times(factor), ..self }
    }

    /// The slow time moved so that its times count from `start`.
    #[must_use]
    pub fn counted_from(self, start: Nanos) -> Self {
        Self { from: start + self.from, until: start + self.until, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    #[test]
    fn only_what_falls_into_the_slow_time_takes_longer() {
        let slow = SlowTime { factor: 3.0, from: us(100), until: us(130) };
        for (at, work, takes) in [
            (80, 20, 20),
            (130, 10, 10),
            (100, 5, 15),
            (95, 10, 5 + 15),
            (124, 10, 6 + 8),
            (90, 40, 10 + 30 + 20),
        ] {
            assert_eq!(slow.takes(us(at), us(work)), us(takes), "{work} us from {at} us on");
        }
    }

    #[test]
    fn a_slow_time_that_is_dilated_and_counted_from_elsewhere_is_as_slow() {
        let slow =
            SlowTime { factor: 3.0, from: us(100), until: us(130) }.dilated(10).counted_from(us(7_000));
        assert_eq!((slow.from, slow.until), (us(8_000), us(8_300)));
        assert_eq!(slow.takes(us(7_950), us(100)), us(50 + 150));
    }
}
