//! Time in the format of log lines: UTC, to the microsecond. So the times of a run's events can be found in
//! the logs of its processes.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY_S: u64 = 24 * 60 * 60;
/// The number of days in 400 years.
const ERA_DAYS: u64 = 146_097;
/// Days from 1 March 0000, where eras begin, to 1 January 1970.
const EPOCH_DAYS: u64 = 719_468;

/// A time in UTC, such as `2026-11-26T16:40:01.123456Z`.
pub fn stamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (day, second) = (since.as_secs() / DAY_S + EPOCH_DAYS, since.as_secs() % DAY_S);
    let (era, of_era) = (day / ERA_DAYS, day % ERA_DAYS);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Months count from March, so that a leap day is the last day of its year.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (400 * era + year + u64::from(month > 9), (month + 2) % 12 + 1);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", since.subsec_micros())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_stamped_as_logs_are() {
        for (unix_ns, stamped) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399_999_999_000, "2000-02-28T23:59:59.999999Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000Z"),
            (951_868_800_000_000_000, "2000-03-01T00:00:00.000000Z"),
            (1_795_711_201_123_456_789, "2026-11-26T16:40:01.123456Z"),
            (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000Z"),
            (1_735_689_599_000_000_000, "2024-12-31T23:59:59.000000Z"),
        ] {
            assert_eq!(stamp(UNIX_EPOCH + Duration::from_nanos(unix_ns)), stamped);
        }
    }
}
