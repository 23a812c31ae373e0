//! The one clock of the drivers: nanoseconds of `CLOCK_MONOTONIC`, which every process of a machine shares.
//!
//! The kernel stamps datagrams with the wall clock; [`Clock::from_realtime`] brings those stamps over.

use sluice_wire::Nanos;

use crate::udp::sys;

/// How long one comparison of the wall clock with ours is believed.
const RESYNC: Nanos = Nanos::from_millis(100);

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
        sys::monotonic()
    }

    /// Compares with the wall clock again if the last comparison is old.
    pub fn keep(&mut self, now: Nanos) {
        if now.since(self.compared) > RESYNC {
            self.compare(now);
        }
    }

    /// The time of a wall-clock stamp in ns since 1970, never after `now`; right if [`Clock::keep`] was called.
    pub fn from_realtime(&self, stamp: u64, now: Nanos) -> Nanos {
        let ours = i128::from(stamp) - self.ahead;
        Nanos(u64::try_from(ours).unwrap_or(0)).min(now)
    }

    fn compare(&mut self, now: Nanos) {
        self.ahead = i128::from(sys::realtime()) - i128::from(sys::monotonic().0);
        self.compared = now;
    }
}

/// CPU time that the calling thread has used.
pub fn thread_cpu() -> Nanos {
    sys::thread_cpu()
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
