//! How many lines of one event a process writes, so that nobody outside can fill a disk with them.

use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;

/// How many lines of an event a process writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineLimit {
    /// One a second: any stranger's packet or call may cause it.
    Stranger,
    /// A thousand at once, and ten a second after them: hosts, operators and bugs cause it.
    Own,
    /// All of them: the command itself causes it, or `RUST_LOG` asked for it.
    Free,
}

impl LineLimit {
    /// The limit as the manual says it.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Stranger => "1/s",
            Self::Own => "1000, then 10/s",
            Self::Free => "",
        }
    }

    /// The time between two lines, and how many may come at once.
    const fn rate(self) -> Option<(u64, u64)> {
        match self {
            Self::Stranger => Some((SECOND_NS, 1)),
            Self::Own => Some((SECOND_NS / 10, 1_000)),
            Self::Free => None,
        }
    }
}

/// What is left of an event's limit.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// When all lines that were written will be paid for.
    paid_ns: AtomicU64,
    left_out: AtomicU64,
}

impl Allowance {
    pub(crate) const fn new() -> Self {
        Self { paid_ns: AtomicU64::new(0), left_out: AtomicU64::new(0) }
    }

    /// Whether a line may be written at `now_ns`, and how many were left out before it.
    pub(crate) fn take(&self, limit: LineLimit, now_ns: u64) -> Option<u64> {
        let Some((apart, burst)) = limit.rate() else { return Some(0) };
        let pay = |paid: u64| {
            let from = paid.max(now_ns);
            (from - now_ns <= (burst - 1) * apart).then_some(from + apart)
        };
        if self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay).is_ok() {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_event_has_one_line_a_second_and_the_next_tells_how_many_were_left_out() {
        let of = Allowance::new();
        let take = |ms: u64| of.take(LineLimit::Stranger, ms * 1_000_000);
        assert_eq!(take(5), Some(0));
        assert_eq!((take(6), take(900), take(1_004)), (None, None, None));
        assert_eq!(take(1_005), Some(3));
        assert_eq!((take(1_006), take(9_000)), (None, Some(1)));
        assert_eq!(take(9_500), None, "rest is not saved up");
    }

    #[test]
    fn a_thousand_lines_of_a_racks_own_events_may_come_at_once_and_ten_a_second_after_them() {
        let of = Allowance::new();
        assert_eq!((0..5_000).filter(|_| of.take(LineLimit::Own, 7).is_some()).count(), 1_000);
        let later =
            |s: u64| (0..5_000).filter(|_| of.take(LineLimit::Own, s * SECOND_NS + 7).is_some()).count();
        assert_eq!((later(1), later(2), later(3_600)), (10, 10, 1_000));
    }
}
