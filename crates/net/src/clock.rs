//! The one clock of the drivers: nanoseconds of `CLOCK_MONOTONIC`, which every process of a machine shares.
//!
//! The kernel stamps datagrams with the wall clock; [`Clock::from_realtime`] brings those stamps over.

use sluice_wire::Nanos;

use crate::udp::sys;
pub use crate::udp::sys::{monotonic, thread_cpu};

/// How long one comparison of the wall clock with ours is believed.
const RESYNC: Nanos = Nanos::from_millis(100);

/// Two readings of a clock around one of the other show the difference well when they are so close.
const CLOSE_ENOUGH: Nanos = Nanos::from_micros(1);
const COMPARISONS_MAX: u32 = 8;

/// Tells the time, and what a wall-clock stamp means on it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Wall clock minus ours, ns.
    ahead: i128,
    compared: Nanos,
}

impl Clock {
    /// A clock; all of them show the same time.
    pub fn start() -> Self {
        let mut clock = Self { ahead: 0, compared: Nanos(0) };
        clock.compare(clock.now());
        clock
    }

    /// Now.
    pub fn now(&self) -> Nanos {
        monotonic()
    }

    /// Compares with the wall clock again if the last comparison is old.
    pub fn keep(&mut self, now: Nanos) {
        if now.since(self.compared) > RESYNC {
            self.compare(now);
        }
    }

    /// The time of a wall-clock stamp in ns since 1970, never after `now`; right if [`Clock::keep`] was
    /// called.
    pub fn from_realtime(&self, stamp: u64, now: Nanos) -> Nanos {
        let ours = i128::from(stamp) - self.ahead;
        Nanos(u64::try_from(ours).unwrap_or(0)).min(now)
    }

    /// Reads both clocks again if this thread was interrupted between them.
    fn compare(&mut self, now: Nanos) {
        let mut closest = Nanos(u64::MAX);
        for _ in 0..COMPARISONS_MAX {
            let (before, there, after) = (monotonic(), sys::realtime(), monotonic());
            let apart = after.since(before);
            if apart < closest {
                closest = apart;
                self.ahead = i128::from(there) - i128::from(before.0 + apart.0 / 2);
            }
            if closest < CLOSE_ENOUGH {
                break;
            }
        }
        self.compared = now;
    }
}

#[cfg(test)]
impl Clock {
    /// One that takes the wall clock for so much further ahead than it is.
    pub(crate) fn wrong_by(ahead: Nanos) -> Self {
        let clock = Self::start();
        Self { ahead: clock.ahead + i128::from(ahead.0), ..clock }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_stamp_of_this_moment_is_now() {
        let clock = Clock::start();
        let stamp = sys::realtime();
        let now = clock.now();
        let converted = clock.from_realtime(stamp, now);
        assert!(now.since(converted) < Nanos::from_millis(5));
    }

    #[test]
    fn a_stamp_from_the_future_becomes_now() {
        let clock = Clock::start();
        let now = clock.now();
        assert_eq!(clock.from_realtime(sys::realtime() + 1_000_000_000, now), now);
    }
}
