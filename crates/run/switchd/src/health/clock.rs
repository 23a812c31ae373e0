//! Notices when somebody sets the wall clock. The machine's other clock, which counts from its start, is
//! never set, so the difference of both changes only by a step: slow corrections change both alike.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};
use sluice_rpc::v1;

/// The smallest step that is told, in ns. What is smaller does no harm: certificates end by the second.
const STEP_MIN_NS: i128 = 500_000_000;
/// Both clocks are read within this time, in ns, or the reading proves nothing.
const APART_MAX_NS: i128 = 10_000_000;
/// How often a reading is repeated that took too long.
const TRIES: usize = 8;

/// Both clocks at one moment, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockReading {
    /// Since 1970.
    wall_ns: i128,
    /// Since the machine started, with the time in which it slept.
    boot_ns: i128,
}

impl ClockReading {
    /// Reads both clocks; `None` if the thread was kept from reading them together.
    pub(super) fn now() -> Option<Self> {
        (0..TRIES).find_map(|_| {
            let before = nanos(clock_gettime(ClockId::Boottime));
            let wall_ns = since_1970();
            let boot_ns = nanos(clock_gettime(ClockId::Boottime));
            (boot_ns - before <= APART_MAX_NS).then_some(Self { wall_ns, boot_ns })
        })
    }

    const fn offset_ns(self) -> i128 {
        self.wall_ns - self.boot_ns
    }
}

/// By the library that all programs ask, so that what shows a program another wall clock shows it here.
fn since_1970() -> i128 {
    let now = SystemTime::now();
    let nanos = |span: Duration| span.as_nanos() as i128;
    now.duration_since(UNIX_EPOCH).map_or_else(|before| -nanos(before.duration()), nanos)
}

const fn nanos(at: Timespec) -> i128 {
    at.tv_sec as i128 * 1_000_000_000 + at.tv_nsec as i128
}

/// The last reading, and the last step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClockWatch {
    last: Option<ClockReading>,
    step: Option<WallClockStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WallClockStep {
    by_ns: i128,
    noticed_boot_ns: i128,
}

impl ClockWatch {
    /// Compares a reading with the one before.
    pub(super) const fn look(&mut self, now: ClockReading) {
        if let Some(last) = self.last {
            let by_ns = now.offset_ns() - last.offset_ns();
            if by_ns.abs() >= STEP_MIN_NS {
                self.step = Some(WallClockStep { by_ns, noticed_boot_ns: now.boot_ns });
            }
        }
        self.last = Some(now);
    }

    /// The last step, as of the last reading.
    pub(super) fn step(&self) -> Option<v1::ClockStep> {
        let (last, step) = (self.last?, self.step?);
        let by_ns = i64::try_from(step.by_ns).unwrap_or(if step.by_ns < 0 { i64::MIN } else { i64::MAX });
        let ago_ns = u64::try_from(last.boot_ns - step.noticed_boot_ns).unwrap_or(0);
        Some(v1::ClockStep { by_ns, ago_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i128 = 1_000_000_000;
    const START: i128 = 1_790_000_000 * SECOND;

    /// The step after readings of (seconds since the start, seconds by which the wall clock is off).
    fn after(readings: &[(f64, f64)]) -> Option<(f64, f64)> {
        let mut watch = ClockWatch::default();
        for (at, off) in readings {
            let ns = |s: f64| (s * 1e9) as i128;
            watch.look(ClockReading { wall_ns: START + ns(*at) + ns(*off), boot_ns: ns(*at) });
        }
        watch.step().map(|step| (step.by_ns as f64 / 1e9, step.ago_ns as f64 / 1e9))
    }

    #[test]
    fn a_clock_that_is_set_is_noticed_with_by_how_much_and_how_long_ago() {
        assert_eq!(after(&[(1.0, 0.0), (2.0, 3_600.0)]), Some((3_600.0, 0.0)));
        assert_eq!(after(&[(1.0, 0.0), (2.0, -0.75), (5.0, -0.75)]), Some((-0.75, 3.0)));
        // Set, and set back: the last step counts.
        assert_eq!(after(&[(1.0, 0.0), (2.0, 90.0), (4.0, 0.0), (5.0, 0.0)]), Some((-90.0, 1.0)));
    }

    #[test]
    fn a_clock_that_goes_on_or_is_corrected_slowly_or_a_long_pause_is_no_step() {
        assert_eq!(after(&[]), None);
        assert_eq!(after(&[(1.0, 500.0)]), None);
        assert_eq!(after(&[(1.0, 0.0), (2.0, 0.0), (90_000.0, 0.0)]), None);
        let corrected: Vec<(f64, f64)> = (0..100).map(|s| (f64::from(s), f64::from(s) * 0.1)).collect();
        assert_eq!(after(&corrected), None);
    }

    #[test]
    fn the_clocks_of_this_machine_give_a_reading_and_no_step() {
        let mut watch = ClockWatch::default();
        for _ in 0..1_000 {
            let now = ClockReading::now().expect("a thread that runs reads both");
            watch.look(now);
        }
        assert_eq!(watch.step(), None);
    }
}
