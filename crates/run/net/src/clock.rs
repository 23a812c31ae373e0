//! The clock of all drivers: nanoseconds of `CLOCK_MONOTONIC`, which all processes of a machine share.
//!
//! The kernel stamps datagrams with the wall clock only. [`Clock::from_realtime`] converts these stamps,
//! even if the wall clock is set in between.

use sluice_wire::Nanos;

use crate::sys;
pub use crate::sys::{monotonic, thread_cpu};

/// How long a comparison of the wall clock with the monotonic clock is used.
const RESYNC: Nanos = Nanos::from_millis(100);

/// Two readings of one clock around a reading of the other give a good difference if they are this close.
const CLOSE_ENOUGH: Nanos = Nanos::from_micros(1);
const COMPARISONS_MAX: u32 = 8;
/// The wall clock was set if it moved against the monotonic clock by more than this, and by more than
/// slewing explains.
const STEP_MIN_NS: i128 = 1_000_000;
/// Linux slews a clock by at most one part in this many.
const SLEW_MAX: i128 = 10;
/// The longest time from the kernel's stamp of a datagram until the datagram is in its socket.
const ON_ITS_WAY: Nanos = Nanos::from_millis(1);

/// Tells the time, and converts wall-clock stamps to it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The wall clock minus the monotonic clock, in ns.
    ahead: i128,
    /// The wall clock minus the monotonic clock, in ns, before the wall clock was last set.
    ahead_before: i128,
    compared: Nanos,
}

impl Clock {
    /// A clock; all clocks show the same time.
    pub fn start() -> Self {
        let compared = monotonic();
        let ahead = ahead();
        Self { ahead, ahead_before: ahead, compared }
    }

    /// Now.
    pub fn now(&self) -> Nanos {
        monotonic()
    }

    /// Compares with the wall clock again if the last comparison is old. Returns by how many ns the wall
    /// clock was set meanwhile, forward or back; `None` if it only drifted.
    pub fn keep(&mut self, now: Nanos) -> Option<i64> {
        if now.since(self.compared) > RESYNC { self.compare(now) } else { None }
    }

    /// Converts a wall-clock stamp, in ns since 1970. The result is not after `now`, and not before
    /// `earliest`, the earliest time at which the datagram can have come. It is right if [`Clock::keep`]
    /// was called.
    pub fn from_realtime(&self, stamp: u64, (earliest, now): (Nanos, Nanos)) -> Nanos {
        let at = brought_over(stamp, self.ahead);
        let fits = can_be(at, earliest) && at.since(now) <= ON_ITS_WAY;
        if fits { at.clamp(earliest.min(now), now) } else { self.of_another_time(stamp, earliest, now) }
    }

    /// A time of this clock as the wall clock shows it, in ns since 1970.
    pub fn to_realtime(self, at: Nanos) -> u64 {
        u64::try_from(i128::from(at.0) + self.ahead).unwrap_or(0)
    }

    /// Compares at once if a stamp is impossible, which happens if the wall clock was set since the last
    /// comparison.
    pub(crate) fn check_stamp(&mut self, stamp: u64, (earliest, now): (Nanos, Nanos)) -> Option<i64> {
        let at = brought_over(stamp, self.ahead);
        let fits = can_be(at, earliest) && at.since(now) <= ON_ITS_WAY;
        if fits { None } else { self.compare(now) }
    }

    /// Converts a stamp from before the wall clock was set, or from between two settings.
    #[cold]
    fn of_another_time(&self, stamp: u64, earliest: Nanos, now: Nanos) -> Nanos {
        let at = brought_over(stamp, self.ahead_before);
        let fits = can_be(at, earliest) && at <= now;
        if fits { at } else { brought_over(stamp, self.ahead).clamp(earliest.min(now), now) }
    }

    #[cold]
    fn compare(&mut self, now: Nanos) -> Option<i64> {
        let (found, since) = (ahead(), i128::from(now.since(self.compared).0));
        self.compared = now;
        let moved = found - std::mem::replace(&mut self.ahead, found);
        let is_step = moved.abs() > STEP_MIN_NS + since / SLEW_MAX;
        is_step.then(|| {
            self.ahead_before = found - moved;
            i64::try_from(moved).unwrap_or(i64::MAX)
        })
    }
}

/// Whether a datagram can have come at `at`, if nothing was there at `earliest`.
fn can_be(at: Nanos, earliest: Nanos) -> bool {
    at + ON_ITS_WAY >= earliest
}

fn brought_over(stamp: u64, ahead: i128) -> Nanos {
    Nanos(u64::try_from(i128::from(stamp) - ahead).unwrap_or(0))
}

/// How far the wall clock is ahead of the monotonic clock. Reads both again if this thread was interrupted
/// in between.
fn ahead() -> i128 {
    let (mut closest, mut ahead) = (Nanos(u64::MAX), 0);
    for _ in 0..COMPARISONS_MAX {
        let (before, there, after) = (monotonic(), sys::realtime(), monotonic());
        let apart = after.since(before);
        if apart < closest {
            closest = apart;
            ahead = i128::from(there) - i128::from(before.0 + apart.0 / 2);
        }
        if closest < CLOSE_ENOUGH {
            break;
        }
    }
    ahead
}

#[cfg(test)]
impl Clock {
    /// A clock that assumes the wall clock to be further ahead than it is, by `ahead`.
    pub(crate) fn wrong_by(ahead: Nanos) -> Self {
        let clock = Self::start();
        Self { ahead: clock.ahead + i128::from(ahead.0), ..clock }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: Nanos = Nanos(0);
    const HOUR: i128 = 3_600_000_000_000;

    #[test]
    fn a_wall_clock_stamp_of_this_moment_is_now() {
        let clock = Clock::start();
        let (before, stamp, now) = (clock.now(), sys::realtime(), clock.now());
        let converted = clock.from_realtime(stamp, (ALWAYS, now));
        assert!(before.since(converted) < Nanos::from_millis(5), "{before:?} {converted:?}");
        assert!(converted <= now, "{converted:?} {now:?}");
    }

    #[test]
    fn a_stamp_from_the_future_becomes_now() {
        let clock = Clock::start();
        let now = clock.now();
        assert_eq!(clock.from_realtime(sys::realtime() + 1_000_000_000, (ALWAYS, now)), now);
    }

    /// A clock whose last comparison was made when the wall clock was `by` ahead of its present setting.
    fn set_since(by: i128) -> (Clock, Nanos) {
        let clock = Clock::start();
        let now = clock.now();
        (Clock { ahead: clock.ahead + by, ahead_before: clock.ahead + by, compared: now }, now)
    }

    #[test]
    fn a_wall_clock_that_is_set_makes_no_stamp_older_than_it_can_be() {
        for by in [HOUR, -HOUR] {
            let (mut clock, now) = set_since(by);
            let (earliest, came) = (Nanos(now.0 - 50_000_000), Nanos(now.0 - 20_000_000));
            let before = Clock { ahead: clock.ahead - by, ..clock };
            let stamp = |ahead: i128| u64::try_from(i128::from(came.0) + ahead).expect("after 1970");
            let (old, new) = (stamp(clock.ahead), stamp(before.ahead));
            let unaware = clock.from_realtime(new, (earliest, now));
            assert!((earliest..=now).contains(&unaware), "set by {by}: {unaware:?}");
            let step = clock.check_stamp(new, (earliest, now)).expect("that cannot be");
            assert!((i128::from(step) + by).abs() < 1_000_000_000, "{step}");
            let near = |at: Nanos| at.since(came) < Nanos(5_000_000) && came.since(at) < Nanos(5_000_000);
            for stamp in [old, new] {
                let at = clock.from_realtime(stamp, (earliest, now));
                assert!(near(at), "set by {by}: {at:?} for {came:?}");
            }
            assert_eq!(clock.check_stamp(new, (earliest, now)), None, "it is known now");
        }
    }

    #[test]
    fn a_clock_that_is_slewed_was_not_set() {
        let (mut clock, now) = set_since(5_000_000);
        clock.compared = Nanos(now.0 - 200_000_000);
        assert_eq!(clock.keep(now), None);
        let (mut clock, now) = set_since(HOUR);
        assert_eq!(clock.keep(now), None, "the comparison is fresh");
        clock.compared = Nanos(now.0 - 200_000_000);
        assert!(clock.keep(now).is_some_and(|step| step < 0));
    }
}
