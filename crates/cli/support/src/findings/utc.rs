//! A time as people read it: a date and a time of day in UTC.

use time::OffsetDateTime;

/// This second since 1970, such as `2026-11-28 07:14:15 UTC`.
pub(super) fn utc(unix_s: u64) -> String {
    let at = i64::try_from(unix_s).ok().and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
    let Some(at) = at else { return "after the year 9999 UTC".to_owned() };
    let (h, min, s) = at.to_hms();
    format!("{} {h:02}:{min:02}:{s:02} UTC", at.date())
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
