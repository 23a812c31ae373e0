//! A time as people read it: a date and a time of day in UTC.

const DAY_S: u64 = 86_400;
/// The days of 400 years, after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;
/// The days from the 1st of March of the year 0 to the start of 1970. Years that begin in March have their
/// leap day last.
const BEFORE_1970_DAYS: u64 = 719_468;

/// This second since 1970, such as `2026-11-28 07:14:15 UTC`.
pub(super) fn utc(unix_s: u64) -> String {
    let days = unix_s / DAY_S + BEFORE_1970_DAYS;
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + later;
    let (h, min, s) = (unix_s % DAY_S / 3_600, unix_s % 3_600 / 60, unix_s % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{min:02}:{s:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_since_1970_are_told_as_date_and_time() {
        // As `date -u -d @SECONDS` tells them.
        for (unix_s, told) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_790_000_000, "2026-09-21 14:13:20 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (253_402_300_799, "9999-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(utc(unix_s), told);
        }
        assert!(utc(u64::MAX).ends_with(" UTC"), "it does not overflow");
    }
}
