//! Which of the switch's DISPATCHes came, by their `sent` numbers.
//!
//! The window tells the last 64 numbers apart. A missing number is accounted when it is written off: when
//! its time is up, or at the latest when it falls out of the window.

use sluice_wire::{Nanos, Serial};

/// How many numbers are remembered.
const WIDTH: u32 = u64::BITS;

/// What a DISPATCH's `sent` number shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The task comes for the first time, and spends a token.
    Fresh,
    /// The task comes for the first time, but was written off: its token is spent already.
    Late,
    /// The task came before, or its number is too old to know.
    Duplicate,
}

/// The window: bit `i` stands for the number `high − i`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentWindow {
    came: u64,
    missing: u64,
    /// Since when the missing numbers up to `gap_end` are timed; zero if none is timed.
    gap_since: Nanos,
    high: Serial,
    gap_end: Serial,
}

impl SentWindow {
    /// An empty window: the next number is the one after `start`.
    pub(super) const fn new(start: Serial) -> Self {
        Self { came: u64::MAX, missing: 0, gap_since: Nanos(0), high: start, gap_end: start }
    }

    /// The largest number heard of.
    pub(super) const fn high(&self) -> Serial {
        self.high
    }

    /// How many numbers up to [`Self::high`] neither came nor were written off.
    #[inline]
    pub(super) const fn missing(&self) -> u32 {
        count(self.missing)
    }

    /// Learns that the switch has sent up to `number`. Returns how many missing numbers fell out of the
    /// window.
    #[inline]
    pub(super) fn hear(&mut self, number: Serial) -> u32 {
        let ahead = number.since(self.high);
        if ahead <= 0 {
            return 0;
        }
        self.high = number;
        if ahead == 1 && self.missing == 0 {
            // Nearly always: the next number, and all before it have come.
            (self.came, self.missing) = (self.came << 1, 1);
            return 0;
        }
        let ahead = ahead as u32;
        let (kept, fresh) = (shift(self.missing, ahead), ones(ahead));
        let fallen = count(self.missing) - count(kept) + ahead.saturating_sub(WIDTH);
        self.missing = kept | fresh;
        self.came = shift(self.came, ahead);
        fallen
    }

    /// Takes a DISPATCH's number. The caller has passed it to [`Self::hear`] first.
    #[inline]
    pub(super) fn take(&mut self, number: Serial) -> Arrival {
        let behind = self.high.since(number);
        if !(0..WIDTH as i32).contains(&behind) {
            return Arrival::Duplicate;
        }
        let bit = 1 << behind;
        if self.came & bit != 0 {
            return Arrival::Duplicate;
        }
        self.came |= bit;
        if self.missing & bit == 0 {
            return Arrival::Late;
        }
        self.missing &= !bit;
        Arrival::Fresh
    }

    /// Whether no number is missing.
    #[inline]
    pub(super) const fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Stops timing: no number is missing.
    #[inline]
    pub(super) const fn time_no_gap(&mut self) {
        self.gap_since = Nanos(0);
    }

    /// Starts to time the numbers that are missing now, unless older ones are being timed.
    #[inline]
    pub(super) fn time_gap(&mut self, now: Nanos) {
        if self.is_whole() {
            self.time_no_gap();
        } else if self.gap_since == Nanos(0) {
            self.gap_since = now.max(Nanos(1));
            self.gap_end = self.high;
        }
    }

    /// Since when numbers that are missing have been timed.
    pub(super) fn gap_since(&self) -> Option<Nanos> {
        (self.gap_since != Nanos(0)).then_some(self.gap_since)
    }

    /// Writes off numbers that have been missing for `patience`, and starts to time the others. Returns how
    /// many it wrote off.
    pub(super) fn write_off(&mut self, now: Nanos, patience: Nanos) -> u32 {
        if self.gap_since().is_none_or(|since| now < since + patience) {
            return 0;
        }
        let newer = ones(self.high.since(self.gap_end) as u32);
        let given_up = (self.missing & !newer).count_ones();
        self.missing &= newer;
        self.gap_since = Nanos(0);
        self.time_gap(now);
        given_up
    }
}

/// The number of set bits. Usually none is set, which costs no counting.
const fn count(bits: u64) -> u32 {
    if bits == 0 { 0 } else { bits.count_ones() }
}

/// `bits` moved back by `by` numbers.
const fn shift(bits: u64, by: u32) -> u64 {
    if by >= WIDTH { 0 } else { bits << by }
}

/// The youngest `count` bits.
const fn ones(count: u32) -> u64 {
    if count >= WIDTH { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const START: Serial = Serial(u32::MAX - 7);
    const PATIENCE: Nanos = Nanos(100);

    fn arrive(window: &mut SentWindow, steps: u32) -> Arrival {
        window.hear(START.plus(steps));
        window.take(START.plus(steps))
    }

    #[test]
    fn a_number_counts_once_also_across_the_wrap() {
        let mut window = SentWindow::new(START);
        for steps in 1..=20 {
            assert_eq!(arrive(&mut window, steps), Arrival::Fresh);
            assert_eq!(arrive(&mut window, steps), Arrival::Duplicate);
        }
        assert_eq!(window.missing(), 0);
    }

    #[test]
    fn numbers_before_the_start_are_duplicates() {
        let mut window = SentWindow::new(START);
        assert_eq!(window.take(START), Arrival::Duplicate);
        assert_eq!(window.take(Serial(START.0 - 3)), Arrival::Duplicate);
        assert_eq!(window.take(START.plus(1)), Arrival::Duplicate, "it was not heard of");
    }

    #[test]
    fn an_overtaken_number_is_fresh_within_its_patience_and_late_afterwards() {
        let mut window = SentWindow::new(START);
        arrive(&mut window, 3);
        assert_eq!(window.missing(), 2);
        window.time_gap(Nanos(10));
        assert_eq!(arrive(&mut window, 1), Arrival::Fresh);
        assert_eq!(window.write_off(Nanos(109), PATIENCE), 0);
        assert_eq!(window.write_off(Nanos(110), PATIENCE), 1);
        assert_eq!(arrive(&mut window, 2), Arrival::Late);
        assert_eq!(arrive(&mut window, 2), Arrival::Duplicate);
        assert_eq!(window.gap_since(), None);
    }

    #[test]
    fn who_waits_less_long_by_now_writes_off_sooner() {
        let mut window = SentWindow::new(START);
        arrive(&mut window, 2);
        window.time_gap(Nanos(10));
        assert_eq!(window.write_off(Nanos(60), PATIENCE), 0);
        assert_eq!(window.write_off(Nanos(60), Nanos(50)), 1);
    }

    #[test]
    fn a_younger_gap_gets_its_own_patience() {
        let mut window = SentWindow::new(START);
        arrive(&mut window, 2);
        window.time_gap(Nanos(10));
        arrive(&mut window, 4);
        window.time_gap(Nanos(60));
        assert_eq!(window.write_off(Nanos(110), PATIENCE), 1);
        assert_eq!(window.gap_since(), Some(Nanos(110)));
        assert_eq!(window.write_off(Nanos(210), PATIENCE), 1);
        assert_eq!(window.missing(), 0);
    }

    #[test]
    fn the_oldest_number_in_the_window_still_counts_and_the_one_before_it_no_more() {
        let mut window = SentWindow::new(START);
        assert_eq!(window.hear(START.plus(65)), 1, "the first is out of it");
        assert_eq!(window.take(START.plus(1)), Arrival::Duplicate);
        assert_eq!(window.take(START.plus(2)), Arrival::Fresh);
        assert_eq!(window.take(START.plus(2)), Arrival::Duplicate);
    }

    #[test]
    fn what_falls_out_of_the_window_is_given_up_at_once() {
        let mut window = SentWindow::new(START);
        arrive(&mut window, 2);
        assert_eq!(window.hear(START.plus(64)), 0);
        assert_eq!(window.hear(START.plus(65)), 1);
        assert_eq!(arrive(&mut window, 1), Arrival::Duplicate);
        assert_eq!(window.hear(START.plus(1_000)), 63 + (935 - 64), "3 to 936");
    }

    proptest! {
        /// Numbers that arrived once, fell out, were written off or are missing add up to all numbers sent,
        /// in any order of arrival.
        #[test]
        fn every_number_is_accounted_exactly_once(
            steps in prop::collection::vec((1_u32..200, any::<bool>()), 1..200)
        ) {
            let mut window = SentWindow::new(START);
            let (mut accounted, mut came) = (0, BTreeSet::new());
            for (time, (step, tick)) in steps.into_iter().enumerate() {
                accounted += window.hear(START.plus(step));
                let arrival = window.take(START.plus(step));
                if arrival != Arrival::Duplicate {
                    prop_assert!(came.insert(step), "{step} came twice");
                }
                accounted += u32::from(arrival == Arrival::Fresh);
                window.time_gap(Nanos(time as u64 + 1));
                if tick {
                    accounted += window.write_off(Nanos(time as u64 + 1), Nanos(5));
                }
                prop_assert_eq!(accounted + window.missing(), window.high().since(START) as u32);
            }
        }
    }
}
