//! Replies over time, and how long a fault had effects.
//!
//! A bin is affected by a fault if one of three things holds. It has clearly fewer replies than the bins
//! before the fault (more than four standard deviations of a Poisson count below their mean). Its slowest
//! reply took more than twice as long as the slowest one before the fault. Or clearly more of its tasks had
//! to be retried, as tasks for a dead switch are until hosts turn to another one. The effects last from the
//! fault until the end of the last affected bin before one whole second without any. A lease is a second,
//! so an effect that has not appeared by then will not come.

use std::ops::Range;
use std::time::Duration;

use sluice_outcome::run::{Bin, FaultEffect};
use sluice_wire::Nanos;

/// How many replies a bin should have on average, so that their number is significant.
const REPLIES_PER_BIN: f64 = 20.0;
/// The shortest bin.
const BIN_MIN: Nanos = Nanos::from_millis(100);
/// How long before a fault the undisturbed run is examined.
const BEFORE: Nanos = Nanos::from_millis(2_000);
/// How long no bin may be affected until the fault's effects count as over.
const CALM: Nanos = Nanos::from_millis(1_000);

/// All events, bin by bin.
#[derive(Clone, Debug)]
pub struct Timeline {
    bin: Nanos,
    bins: Vec<Bin>,
}

impl Timeline {
    /// An empty timeline for about `rate` replies a second.
    pub fn new(rate: Option<f64>) -> Self {
        let needed_ns = REPLIES_PER_BIN * 1e9 / rate.unwrap_or(f64::INFINITY);
        Self { bin: BIN_MIN.max(Nanos(needed_ns as u64)), bins: Vec::new() }
    }

    /// A bin's length.
    pub const fn bin(&self) -> Nanos {
        self.bin
    }

    /// The bins, from the start of the load.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Notes that a task was due at `at`.
    pub fn due(&mut self, at: Nanos) {
        self.bin_at(at).due += 1;
    }

    /// Notes that a task that was due at `at` had to be retried.
    pub fn sent_again(&mut self, at: Nanos) {
        self.bin_at(at).sent_again += 1;
    }

    /// Notes that a task that was due at `at` was refused.
    pub fn refused(&mut self, at: Nanos) {
        self.bin_at(at).refused += 1;
    }

    /// Notes a reply at `at`.
    pub fn replied(&mut self, at: Nanos, latency_ns: u64) {
        let bin = self.bin_at(at);
        bin.replied += 1;
        bin.slowest_ns = bin.slowest_ns.max(latency_ns);
    }

    /// The effects of the fault at `fault` on a load that ended at `end`; `None` if there is no earlier bin
    /// to compare with.
    pub fn effect_of(&self, fault: Nanos, end: Nanos) -> Option<FaultEffect> {
        let first = (fault.0 / self.bin.0) as usize;
        let last = self.bins.len().min((end.0 / self.bin.0) as usize);
        let before = self.bins.get(first.saturating_sub(self.count(BEFORE))..first)?;
        let calm = Baseline::of(before)?;
        let mut felt_until = first;
        for (i, bin) in self.bins.iter().enumerate().take(last).skip(first) {
            if !calm.holds(bin) {
                felt_until = i + 1;
            } else if i + 1 - felt_until >= self.count(CALM) {
                break;
            }
        }
        let during = self.bins.get(first..felt_until).unwrap_or_default();
        let again = self.sent_again_from(first, last);
        let again_ns =
            if again.is_empty() { 0 } else { (again.end as u64 * self.bin.0).saturating_sub(fault.0) };
        let again = self.bins.get(again).unwrap_or_default();
        let felt_ns = (felt_until as u64 * self.bin.0).saturating_sub(fault.0);
        Some(FaultEffect {
            lasted_s: if felt_until == first { 0.0 } else { Duration::from_nanos(felt_ns).as_secs_f64() },
            slowest_ns: during.iter().map(|bin| bin.slowest_ns).max().unwrap_or(0),
            until_the_end: felt_until == last && felt_until > first,
            sent_again: again.iter().map(|bin| bin.sent_again).sum(),
            sent_again_for_s: Duration::from_nanos(again_ns).as_secs_f64(),
        })
    }

    /// The bins with retried tasks, from the one before `first` until a long time without any.
    fn sent_again_from(&self, first: usize, last: usize) -> Range<usize> {
        let begin = first.saturating_sub(1).min(last);
        let mut end = begin;
        for (i, bin) in self.bins.iter().enumerate().take(last).skip(begin) {
            if bin.sent_again > 0 {
                end = i + 1;
            } else if i + 1 - end.max(first) > self.count(CALM) {
                break;
            }
        }
        begin..end
    }

    fn count(&self, span: Nanos) -> usize {
        (span.0 / self.bin.0).max(1) as usize
    }

    fn bin_at(&mut self, at: Nanos) -> &mut Bin {
        let i = (at.0 / self.bin.0) as usize;
        if self.bins.len() <= i {
            self.bins.resize(i + 1, Bin::default());
        }
        &mut self.bins[i]
    }
}

/// The properties of undisturbed bins.
struct Baseline {
    replied_min: f64,
    slowest_max_ns: u64,
    sent_again_max: f64,
}

impl Baseline {
    fn of(bins: &[Bin]) -> Option<Self> {
        let mean = |of: fn(&Bin) -> u64| bins.iter().map(of).sum::<u64>() as f64 / bins.len() as f64;
        let (replied, sent_again) = (mean(|bin| bin.replied), mean(|bin| bin.sent_again));
        let slowest = bins.iter().map(|bin| bin.slowest_ns).max()?;
        (replied > 0.0).then(|| Self {
            replied_min: replied - 4.0 * replied.sqrt(),
            slowest_max_ns: 2 * slowest,
            sent_again_max: sent_again + 4.0 * sent_again.sqrt(),
        })
    }

    fn holds(&self, bin: &Bin) -> bool {
        bin.replied as f64 >= self.replied_min
            && bin.slowest_ns <= self.slowest_max_ns
            && bin.sent_again as f64 <= self.sent_again_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(bins: u64) -> Timeline {
        let mut timeline = Timeline::new(Some(1_000.0));
        for bin in 0..bins {
            for reply in 0..100 {
                timeline.replied(Nanos(bin * 100_000_000 + reply * 1_000_000), 500_000);
            }
        }
        timeline
    }

    #[test]
    fn a_fault_that_changes_nothing_is_not_felt() {
        let felt = steady(50)
            .effect_of(Nanos::from_millis(2_530), Nanos::from_millis(5_000))
            .expect("replies before");
        let (sent_again, sent_again_for_s) = (0, 0.0);
        let nothing =
            FaultEffect { lasted_s: 0.0, slowest_ns: 0, until_the_end: false, sent_again, sent_again_for_s };
        assert_eq!(felt, nothing);
    }

    #[test]
    fn a_gap_in_the_replies_is_felt_until_its_last_bin() {
        let mut timeline = steady(50);
        for bin in &mut timeline.bins[25..28] {
            bin.replied = 10;
        }
        let felt =
            timeline.effect_of(Nanos::from_millis(2_530), Nanos::from_millis(5_000)).expect("replies before");
        assert!((felt.lasted_s - 0.27).abs() < 1e-9, "{felt:?}");
    }

    #[test]
    fn a_task_that_waited_longer_is_felt_and_named() {
        let mut timeline = steady(50);
        timeline.replied(Nanos::from_millis(3_010), 80_000_000);
        let felt =
            timeline.effect_of(Nanos::from_millis(2_500), Nanos::from_millis(5_000)).expect("replies before");
        assert!((felt.lasted_s - 0.6).abs() < 1e-9, "{felt:?}");
        assert_eq!(felt.slowest_ns, 80_000_000);
    }

    #[test]
    fn tasks_that_were_sent_again_are_counted_until_for_a_second_none_was() {
        let mut timeline = steady(50);
        for (at_ms, tasks) in [(1_000, 9), (2_450, 1), (2_510, 4), (2_990, 2), (4_500, 7)] {
            (0..tasks).for_each(|_| timeline.sent_again(Nanos::from_millis(at_ms)));
        }
        let felt =
            timeline.effect_of(Nanos::from_millis(2_530), Nanos::from_millis(5_000)).expect("replies before");
        assert_eq!(felt.sent_again, 7);
        assert!((felt.sent_again_for_s - 0.47).abs() < 1e-9, "{felt:?}");
    }

    #[test]
    fn tasks_that_need_another_try_are_felt_unless_as_many_did_before() {
        let felt = |each_bin: u64, from_bin: usize| {
            let mut timeline = steady(50);
            timeline.bins[from_bin..37].iter_mut().for_each(|bin| bin.sent_again = each_bin);
            timeline.effect_of(Nanos::from_millis(2_500), Nanos::from_millis(5_000)).expect("replies before")
        };
        let turned_after_a_lease = felt(8, 25);
        assert!((turned_after_a_lease.lasted_s - 1.2).abs() < 1e-9, "{turned_after_a_lease:?}");
        assert!(felt(8, 0).lasted_s < 1e-9, "packets are lost all the time");
    }

    #[test]
    fn what_comes_after_a_second_of_calm_is_another_matter() {
        let mut timeline = steady(50);
        timeline.replied(Nanos::from_millis(4_500), 80_000_000);
        let felt =
            timeline.effect_of(Nanos::from_millis(2_500), Nanos::from_millis(5_000)).expect("replies before");
        assert!(felt.lasted_s < 1e-9, "{felt:?}");
    }

    #[test]
    fn a_fault_that_is_not_over_at_the_end_says_so() {
        let mut timeline = steady(50);
        timeline.bins.truncate(30);
        timeline.bins.resize(50, Bin::default());
        let felt =
            timeline.effect_of(Nanos::from_millis(3_000), Nanos::from_millis(5_000)).expect("replies before");
        assert!(felt.until_the_end);
    }

    #[test]
    fn without_replies_before_the_fault_nothing_can_be_said() {
        assert!(Timeline::new(None).effect_of(Nanos::from_millis(500), Nanos::from_millis(900)).is_none());
    }
}
