//! Estimates for early tokens: when the running task will end, and the lead (see `early`).

use alloc::vec::Vec;

use sluice_wire::{Nanos, Serial, TaskType};

use super::types::{EarlySettings, RemainingTime};

/// How many types have an estimate; tasks of further types have none.
const TYPES_MAX: usize = 64;
/// How many tasks of a type must end before its estimate counts.
const COUNT_MIN: u32 = 16;
/// About how many tasks an estimate remembers.
const MEMORY: u32 = 32;
/// An estimate counts while service times differ from it by less than one part in this many, on average.
/// (An exponential time differs by 0.74 of its mean; a half-and-half mix of 10 and 100 µs by 0.82.)
const TRUSTED_PART: u64 = 3;
/// Fractional bits of a time per unit.
const FRACTION_BITS: u32 = 8;

/// The estimated end of the running task, and the measured lead.
#[derive(Debug, Default)]
pub(super) struct EndEstimate {
    pub(super) lead: Lead,
    /// When the running task is expected to end.
    ends_at: Option<Nanos>,
    /// The declared size of the running task, in units of its type.
    units: u32,
    learned: Vec<(TaskType, Estimate)>,
    /// Early tokens sent.
    pub(super) sent: u64,
}

impl EndEstimate {
    /// The time at which the early token is due. Before a lead was measured, the round trip of a PROBE
    /// stands in for it.
    pub(super) fn begins(&self, settings: EarlySettings, round_trip: Option<Nanos>) -> Option<Nanos> {
        let lead = self.lead.known().or(round_trip)?.min(settings.lead_max);
        Some(self.ends_at? - lead)
    }

    pub(super) fn expect(&mut self, now: Nanos, task_type: TaskType, outlook: RemainingTime) {
        let left = match outlook {
            RemainingTime::Left(left) => Some(left),
            RemainingTime::Units(units) => {
                self.units = units.max(1);
                self.estimate(task_type).and_then(|estimate| estimate.of(self.units))
            }
        };
        self.ends_at = left.map(|left| now + left);
    }

    /// Learns from the running task, which ended after `service`.
    #[inline]
    pub(super) fn ended(&mut self, task_type: TaskType, service: Nanos) {
        self.ends_at = None;
        let units = core::mem::take(&mut self.units);
        if units > 0 {
            self.learn(task_type, service, units);
        }
    }

    fn learn(&mut self, task_type: TaskType, service: Nanos, units: u32) {
        let per_unit = (service.0 << FRACTION_BITS) / u64::from(units);
        if let Some((_, estimate)) = self.learned.iter_mut().find(|(known, _)| *known == task_type) {
            estimate.learn(per_unit);
        } else if self.learned.len() < TYPES_MAX {
            let mut estimate = Estimate::default();
            estimate.learn(per_unit);
            self.learned.push((task_type, estimate));
        }
    }

    fn estimate(&self, task_type: TaskType) -> Option<&Estimate> {
        self.learned.iter().find(|(known, _)| *known == task_type).map(|(_, estimate)| estimate)
    }
}

/// The lead: the measured time from a token to its task.
#[derive(Debug, Default)]
pub(super) struct Lead {
    /// The measured time; zero until a task was timed.
    gap: Nanos,
    /// The token that is being timed, and when it left.
    timed: Option<(Serial, Nanos)>,
}

impl Lead {
    pub(super) fn known(&self) -> Option<Nanos> {
        (self.gap != Nanos(0)).then_some(self.gap)
    }

    /// Stops the timing: a new generation counts its tokens anew.
    pub(super) const fn restart(&mut self) {
        self.timed = None;
    }

    /// Starts to time a token. Only one token is timed at once, and none that was sent twice.
    pub(super) fn token_left(&mut self, now: Nanos, number: Serial, first: bool) {
        self.timed = match self.timed {
            None if first => Some((number, now)),
            timed if first => timed,
            _ => None,
        };
    }

    /// A task came for the timed token. The sample counts only if a task was waiting: a parked token's time
    /// includes the wait for a task.
    pub(super) fn task_came(&mut self, received: Nanos, number: Serial, waited: bool) {
        let Some((timed, left)) = self.timed else { return };
        let ahead = number.since(timed);
        if ahead >= 0 {
            self.timed = None;
        }
        if ahead == 0 && waited {
            self.sample(received.since(left));
        }
    }

    /// Takes a sample. One sample moves the lead by at most an eighth, since a single delayed packet means
    /// little.
    fn sample(&mut self, gap: Nanos) {
        let gap = gap.max(Nanos(1));
        self.gap = match self.gap.0 {
            0 => gap,
            old => {
                let step = (old.abs_diff(gap.0) / 4).min(old / 8).max(u64::from(old != gap.0));
                Nanos(if gap.0 > old { old + step } else { old - step })
            }
        };
    }
}

/// A type's mean time per unit, in nanoseconds with [`FRACTION_BITS`] fractional bits, and its mean
/// deviation.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    mean: u64,
    deviation: u64,
    count: u32,
}

impl Estimate {
    fn learn(&mut self, per_unit: u64) {
        self.count = (self.count + 1).min(MEMORY);
        if self.count == 1 {
            self.mean = per_unit;
            return;
        }
        let off = self.mean.abs_diff(per_unit);
        self.mean = toward(self.mean, per_unit, self.count);
        self.deviation = toward(self.deviation, off, self.count);
    }

    /// The expected time of a task of `units` units; `None` if it cannot be predicted.
    fn of(&self, units: u32) -> Option<Nanos> {
        let trusted = self.count >= COUNT_MIN && self.deviation.saturating_mul(TRUSTED_PART) <= self.mean;
        trusted.then(|| Nanos(self.mean.saturating_mul(units.into()) >> FRACTION_BITS))
    }
}

/// Moves `from` toward `to` by one part in `parts` of the distance.
const fn toward(from: u64, to: u64, parts: u32) -> u64 {
    let step = from.abs_diff(to) / parts as u64;
    if to > from { from + step } else { from - step }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(times_ns: impl IntoIterator<Item = u64>) -> Estimate {
        let mut estimate = Estimate::default();
        times_ns.into_iter().for_each(|time_ns| estimate.learn(time_ns << FRACTION_BITS));
        estimate
    }

    #[test]
    fn a_type_whose_tasks_take_about_the_same_has_an_estimate() {
        let near = learned((0..100).map(|i| 9_000 + i * 20));
        let estimate = near.of(3).expect("they differ little");
        assert!((30_000..33_000).contains(&estimate.0), "{estimate:?}");
        assert_eq!(learned([10_000; 15]).of(1), None, "a few tasks say little");
    }

    #[test]
    fn a_type_whose_tasks_differ_too_much_has_none() {
        assert_eq!(learned((0..200).map(|i| if i % 2 == 0 { 10_000 } else { 100_000 })).of(1), None);
    }

    #[test]
    fn an_estimate_follows_a_service_that_becomes_slower_and_says_nothing_meanwhile() {
        let slower = |after| learned((0..100 + after).map(|i| if i < 100 { 10_000 } else { 30_000 }));
        assert_eq!(slower(20).of(1), None);
        let estimate = slower(200).of(1).expect("it has settled");
        assert!((29_000..=30_000).contains(&estimate.0), "{estimate:?}");
    }

    #[test]
    fn the_lead_is_the_gap_between_a_token_and_the_task_that_waited_for_it() {
        let mut lead = Lead::default();
        lead.token_left(Nanos(100), Serial(u32::MAX), true);
        lead.token_left(Nanos(150), Serial(0), true);
        lead.task_came(Nanos(140), Serial(u32::MAX - 1), true);
        assert_eq!(lead.known(), None, "an older token's task");
        lead.task_came(Nanos(3_600), Serial(u32::MAX), true);
        assert_eq!(lead.known(), Some(Nanos(3_500)));
        lead.token_left(Nanos(5_000), Serial(1), true);
        lead.task_came(Nanos(90_000), Serial(1), false);
        assert_eq!(lead.known(), Some(Nanos(3_500)), "the token had parked");
    }

    #[test]
    fn a_token_that_was_sent_again_is_not_timed() {
        let mut lead = Lead::default();
        lead.token_left(Nanos(100), Serial(7), true);
        lead.token_left(Nanos(900), Serial(7), false);
        lead.task_came(Nanos(1_000), Serial(7), true);
        assert_eq!(lead.known(), None);
        lead.token_left(Nanos(1_100), Serial(8), false);
        lead.task_came(Nanos(1_200), Serial(8), true);
        assert_eq!(lead.known(), None, "though none was timed");
    }

    #[test]
    fn a_token_of_another_generation_is_not_timed_any_more() {
        let mut lead = Lead::default();
        lead.token_left(Nanos(100), Serial(7), true);
        lead.restart();
        lead.task_came(Nanos(200), Serial(7), true);
        assert_eq!(lead.known(), None);
    }

    #[test]
    fn no_more_types_are_learned_than_there_is_room_for() {
        let mut ends = EndEstimate::default();
        for task_type in (0..=64).map(TaskType) {
            (0..20).for_each(|_| ends.learn(task_type, Nanos(1_000), 1));
        }
        let learned = [63, 64].map(|task_type| ends.estimate(TaskType(task_type)).is_some());
        assert_eq!(learned, [true, false]);
    }

    #[test]
    fn a_packet_that_was_held_up_moves_the_lead_by_an_eighth() {
        let mut lead = Lead::default();
        (0..50).for_each(|_| lead.sample(Nanos(4_000)));
        assert_eq!(lead.known(), Some(Nanos(4_000)));
        lead.sample(Nanos(2_000_000));
        assert_eq!(lead.known(), Some(Nanos(4_500)));
        (0..50).for_each(|_| lead.sample(Nanos(4_000)));
        assert_eq!(lead.known(), Some(Nanos(4_000)));
    }
}
