//! Compares the paper's statements with our results: rules by kind of statement, never by point.

use sluice_outcome::study::{Estimate, HeatMap, Verdict};
use sluice_stats::difference;

/// Whether something holds for every value in an interval, for none, or for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// For every value in the interval.
    Yes,
    /// For none.
    No,
    /// For some values: the interval cannot decide.
    Open,
}

impl Holds {
    /// Whether a number lies between two bounds.
    pub(super) fn within(found: &Estimate, (least, most): (f64, f64)) -> Self {
        if found.low >= least && found.most() <= most {
            Self::Yes
        } else if found.low > most || found.most() < least {
            Self::No
        } else {
            Self::Open
        }
    }

    /// Whether a number is on the same side of `none` as the paper's.
    pub(super) fn on_the_side(found: &Estimate, none: f64, paper: f64) -> Self {
        let (is_there, is_not) = if paper > none {
            (found.low > none, found.most() <= none)
        } else {
            (found.most() < none, found.low >= none)
        };
        match (is_there, is_not) {
            (true, _) => Self::Yes,
            (_, true) => Self::No,
            _ => Self::Open,
        }
    }

    /// Whether both statements hold.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Open,
        }
    }

    /// Whether `less` is smaller than `more`.
    pub(super) fn less(less: &Estimate, more: &Estimate) -> Self {
        if is_surely_less(less, more) {
            Self::Yes
        } else if is_surely_less(more, less) {
            Self::No
        } else {
            Self::Open
        }
    }

    /// The verdict on a statement without a shape.
    pub(super) const fn verdict(self) -> Verdict {
        match self {
            Self::Yes => Verdict::Agrees,
            Self::No => Verdict::Differs,
            Self::Open => Verdict::Undecided,
        }
    }
}

/// The verdict on a number. It agrees if its whole interval lies within the tolerance, and agrees in shape
/// if the whole interval has the shape. It differs if no part of the interval lies within the tolerance and
/// the shape is not sure. Otherwise it is undecided.
pub(super) fn of_number(
    paper: f64,
    off_by: f64,
    measured: Option<Estimate>,
    shape: Option<Holds>,
) -> Verdict {
    let Some(found) = measured else { return Verdict::Differs };
    match (Holds::within(&found, tolerated(paper, off_by)), shape.unwrap_or(Holds::No)) {
        (Holds::Yes, _) => Verdict::Agrees,
        (_, Holds::Yes) => Verdict::AgreesInShape,
        (Holds::No, _) => Verdict::Differs,
        (Holds::Open, _) => Verdict::Undecided,
    }
}

/// The lower and upper end of the tolerance around the paper's number.
pub(super) fn tolerated(paper: f64, off_by: f64) -> (f64, f64) {
    (paper - off_by.abs(), paper + off_by.abs())
}

/// The verdict on an order. It agrees if all pairs are in the paper's order, and agrees in shape if at most
/// the share `wrong_max` of them may be in the opposite order. It differs if more are, and is undecided
/// otherwise.
pub(super) fn of_order(pairs: Pairs, wrong_max: f64) -> Verdict {
    let most = wrong_max * f64::from(pairs.all());
    match pairs {
        _ if pairs.all() == 0 => Verdict::NotMeasured,
        Pairs { tied: 0, wrong: 0, .. } => Verdict::Agrees,
        Pairs { tied, wrong, .. } if f64::from(tied + wrong) <= most => Verdict::AgreesInShape,
        Pairs { wrong, .. } if f64::from(wrong) > most => Verdict::Differs,
        _ => Verdict::Undecided,
    }
}

/// Whether `found` is at most `most`. With `over`, whether it is at most `most` times that number; `over`
/// also has the quotient of both numbers, if it is known.
pub(super) fn is_at_most(found: &Estimate, over: Option<(&Estimate, Option<Estimate>)>, most: f64) -> Holds {
    let Some((over, times)) = over else { return Holds::within(found, (f64::NEG_INFINITY, most)) };
    if let Some(times) = times {
        return Holds::within(&times, (f64::NEG_INFINITY, most));
    }
    let allowed =
        Estimate { value: most * over.value, low: most * over.low, high: most * over.high, ..*over };
    match Holds::less(&allowed, found) {
        Holds::Yes => Holds::No,
        Holds::No => Holds::Yes,
        Holds::Open if found.most() <= allowed.low => Holds::Yes,
        Holds::Open => Holds::Open,
    }
}

/// How many times as many tasks would narrow an interval enough to exclude the bounds that it contains.
/// `None` if no length would, or if it contains none.
pub(super) fn times_as_many(found: &Estimate, bounds: &[f64]) -> Option<f64> {
    let held = bounds.iter().filter(|bound| (found.low..=found.most()).contains(bound));
    let times = held.map(|bound| {
        let half = if *bound > found.value { found.most() - found.value } else { found.value - found.low };
        let share = half / (bound - found.value).abs();
        share * share
    });
    times.reduce(f64::max).filter(|times| times.is_finite())
}

/// Whether a map's numbers grow with the setting across (or the one down), for each value of the other
/// setting. Neighbours are compared as in an order that a paper states. Also returns the reason.
pub fn growth(map: &HeatMap, across: bool, wrong_max: f64) -> (Verdict, String) {
    let mut pairs = Pairs::default();
    let rows = map.cells.len();
    let columns = map.across.values.len();
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let next = if across { (row, column + 1) } else { (row + 1, column) };
        if let Some(more) = map.cells.get(next.0).and_then(|row| row.get(next.1)) {
            pairs.add(Holds::less(&map.cells[row][column], more));
        }
    }
    let Pairs { right, tied, wrong } = pairs;
    let why =
        format!("of {} neighbours {right} grow, {tied} cannot be told apart, {wrong} shrink", pairs.all());
    (of_order(pairs, wrong_max), why)
}

/// An unknown set-up of the paper excuses a difference, and nothing else.
pub(super) fn excused(verdict: Verdict, unknown_set_up: bool) -> Verdict {
    if unknown_set_up && verdict == Verdict::Differs { Verdict::SetUpNotKnown } else { verdict }
}

/// Counts of pairs that the paper puts in an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs {
    /// Pairs in the paper's order, outside each other's intervals.
    pub right: u32,
    /// Pairs that cannot be told apart.
    pub tied: u32,
    /// Pairs in the opposite order.
    pub wrong: u32,
}

impl Pairs {
    /// Counts a pair of which the paper says that one number is smaller, and whether it is.
    pub(super) fn add(&mut self, is_less: Holds) {
        match is_less {
            Holds::Yes => self.right += 1,
            Holds::No => self.wrong += 1,
            Holds::Open => self.tied += 1,
        }
    }

    /// The number of all statements.
    pub(super) const fn all(&self) -> u32 {
        self.right + self.tied + self.wrong
    }
}

/// Whether the 95 % interval of the difference says so, computed as for independent numbers. A load that is
/// not sustained is larger than all that are.
fn is_surely_less(less: &Estimate, more: &Estimate) -> bool {
    if less.value.is_infinite() || more.value.is_infinite() {
        return less.value < more.value;
    }
    difference(more, less, 1.0).low > 0.0
}

/// The ratio of two estimates with its 95 % interval, computed from both intervals as for a difference, on
/// a logarithmic scale.
pub(super) fn quotient(above: &Estimate, below: &Estimate) -> Option<Estimate> {
    let sound = below.low > 0.0 && above.low >= 0.0 && above.high.is_finite() && below.high.is_finite();
    let value = above.value / below.value;
    let apart = |one: f64, other: f64| if one > other { libm::log(one / other) } else { 0.0 };
    let down = libm::hypot(apart(above.value, above.low), apart(below.most(), below.value));
    let up = libm::hypot(apart(above.high, above.value), apart(below.value, below.low));
    sound.then(|| Estimate {
        value,
        low: value * libm::exp(-down),
        high: if value > 0.0 { value * libm::exp(up) } else { above.high / below.low },
        ..*above
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_outcome::study::Method;

    fn about(value: f64, half: f64) -> Estimate {
        Estimate::between(value, value - half, value + half, Method::Replications)
    }

    #[test]
    fn a_number_agrees_only_if_all_of_its_interval_is_within_the_tolerance() {
        let verdict = |measured, shape| of_number(100.0, 10.0, measured, shape);
        assert_eq!(verdict(Some(about(109.0, 0.0)), None), Verdict::Agrees);
        assert_eq!(verdict(Some(about(105.0, 4.0)), Some(Holds::No)), Verdict::Agrees);
        assert_eq!(verdict(Some(about(112.0, 3.0)), None), Verdict::Undecided);
        assert_eq!(verdict(Some(about(100.0, 90.0)), Some(Holds::Open)), Verdict::Undecided);
        assert_eq!(verdict(Some(about(112.0, 3.0)), Some(Holds::Yes)), Verdict::AgreesInShape);
        assert_eq!(verdict(Some(about(112.0, 1.0)), None), Verdict::Differs);
        assert_eq!(verdict(Some(about(50.0, 1.0)), Some(Holds::Yes)), Verdict::AgreesInShape);
        assert_eq!(verdict(Some(about(50.0, 1.0)), Some(Holds::Open)), Verdict::Differs);
        assert_eq!(verdict(Some(about(50.0, 1.0)), Some(Holds::No)), Verdict::Differs);
        assert_eq!(verdict(None, None), Verdict::Differs);
        let open = Estimate { open_above: true, ..about(100.0, 1.0) };
        assert_eq!(verdict(Some(open), None), Verdict::Undecided, "nothing bounds it above");
    }

    #[test]
    fn an_interval_that_holds_the_papers_number_and_no_difference_too_is_undecided() {
        let found = Estimate::between(0.79, 0.28, 2.21, Method::Replications);
        let shape = Holds::on_the_side(&found, 1.0, 0.24);
        assert_eq!(of_number(0.24, 0.06, Some(found), Some(shape)), Verdict::Undecided);
    }

    /// A shorter run gives a wider interval, which must never agree more.
    #[test]
    fn a_wider_interval_never_agrees_more() {
        let strength = |verdict| match verdict {
            Verdict::Agrees => 2,
            Verdict::AgreesInShape => 1,
            _ => 0,
        };
        for value in [0.2, 0.24, 0.3, 0.5, 0.9, 1.0, 1.5] {
            let verdicts = [0.0, 0.01, 0.05, 0.2, 0.5, 2.0].map(|half| {
                let found = about(value, half);
                of_number(0.24, 0.06, Some(found), Some(Holds::on_the_side(&found, 1.0, 0.24)))
            });
            for pair in verdicts.windows(2) {
                let was_open = pair[0] == Verdict::Undecided && pair[1] == Verdict::Differs;
                assert!(strength(pair[1]) <= strength(pair[0]) && !was_open, "{value}: {verdicts:?}");
            }
        }
    }

    #[test]
    fn an_order_agrees_only_if_all_pairs_stand_so() {
        let mut pairs = Pairs::default();
        pairs.add(Holds::less(&about(1.0, 0.1), &about(2.0, 0.1)));
        assert_eq!(of_order(pairs, 0.25), Verdict::Agrees);
        pairs.add(Holds::less(&about(1.0, 0.1), &about(1.1, 0.1)));
        assert_eq!(of_order(pairs, 0.25), Verdict::Undecided);
        assert_eq!(of_order(pairs, 0.5), Verdict::AgreesInShape);
        pairs.add(Holds::less(&about(3.0, 0.1), &about(2.0, 0.1)));
        assert_eq!(pairs, Pairs { right: 1, tied: 1, wrong: 1 });
        assert_eq!(of_order(pairs, 0.25), Verdict::Differs);
        assert_eq!(of_order(pairs, 0.4), Verdict::Undecided);
        assert_eq!(of_order(Pairs { right: 0, tied: 3, wrong: 0 }, 0.25), Verdict::Undecided);
        assert_eq!(of_order(Pairs::default(), 0.4), Verdict::NotMeasured);
    }

    #[test]
    fn a_limit_is_kept_or_broken_by_a_whole_interval() {
        let over = |found: Estimate, half, most| {
            let over = about(100.0, half);
            is_at_most(&found, Some((&over, quotient(&found, &over))), most)
        };
        assert_eq!(over(about(104.0, 0.0), 0.5, 1.05), Holds::Yes);
        assert_eq!(over(about(104.0, 2.0), 0.5, 1.05), Holds::Open);
        assert_eq!(over(about(108.0, 1.0), 0.5, 1.05), Holds::No);
        assert_eq!(over(about(108.0, 50.0), 1.0, 1.05), Holds::Open);
        assert_eq!(is_at_most(&about(1.0, 0.0), None, 1.0), Holds::Yes);
        assert_eq!(is_at_most(&about(1.0, 5.0), None, 1.0), Holds::Open);
        assert_eq!(is_at_most(&about(1.1, 0.05), None, 1.0), Holds::No);
        let nothing = Estimate::exact(0.0);
        assert_eq!(is_at_most(&nothing, Some((&nothing, None)), 1.0), Holds::Yes);
        assert_eq!(is_at_most(&about(2.0, 0.5), Some((&nothing, None)), 1.0), Holds::No);
        assert_eq!(over(Estimate::exact(f64::INFINITY), 1.0, 1.0), Holds::No);
    }

    #[test]
    fn a_load_that_cannot_be_sustained_is_worse_than_any_that_can() {
        let mut pairs = Pairs::default();
        pairs.add(Holds::less(&about(1e9, 0.0), &Estimate::exact(f64::INFINITY)));
        pairs.add(Holds::less(
            &Estimate { open_above: true, ..about(1.0, 0.5) },
            &Estimate::exact(f64::INFINITY),
        ));
        pairs.add(Holds::less(&Estimate::exact(f64::INFINITY), &Estimate::exact(f64::INFINITY)));
        assert_eq!(pairs, Pairs { right: 2, tied: 1, wrong: 0 });
    }

    #[test]
    fn a_number_that_is_twice_as_far_from_the_bound_as_it_must_be_needs_a_quarter_of_the_tasks() {
        assert_eq!(times_as_many(&about(100.0, 10.0), &[105.0]), Some(4.0));
        assert_eq!(times_as_many(&about(100.0, 10.0), &[105.0, 92.0]), Some(4.0));
        assert_eq!(times_as_many(&about(100.0, 10.0), &[120.0]), None);
        let open = Estimate { open_above: true, ..about(100.0, 10.0) };
        assert_eq!(times_as_many(&open, &[105.0]), None, "nobody knows");
    }

    #[test]
    fn an_unknown_set_up_excuses_nothing_but_a_difference() {
        assert_eq!(excused(Verdict::Differs, true), Verdict::SetUpNotKnown);
        assert_eq!(excused(Verdict::Agrees, true), Verdict::Agrees);
        assert_eq!(excused(Verdict::Differs, false), Verdict::Differs);
    }

    #[test]
    fn a_quotient_is_known_as_well_as_both_together() {
        let found = quotient(&about(10.0, 1.0), &about(5.0, 0.5)).unwrap();
        let (down, up) = (
            libm::hypot(libm::log(10.0 / 9.0), libm::log(1.1)),
            libm::hypot(libm::log(1.1), libm::log(10.0 / 9.0)),
        );
        assert!(
            (found.low - 2.0 * libm::exp(-down)).abs() < 1e-9
                && (found.high - 2.0 * libm::exp(up)).abs() < 1e-9
        );
        assert!(found.low > 9.0 / 5.5 && found.high < 11.0 / 4.5, "both are seldom off at once: {found:?}");
        let alone = quotient(&about(10.0, 1.0), &about(5.0, 0.0)).unwrap();
        assert!((alone.low - 1.8).abs() < 1e-9 && (alone.high - 2.2).abs() < 1e-9);
        assert!(quotient(&Estimate::exact(f64::INFINITY), &about(1.0, 0.0)).is_none());
        assert!(quotient(&about(1.0, 0.0), &about(0.0, 1.0)).is_none());
        let none = quotient(&Estimate::between(0.0, 0.0, 3.0, Method::Batches), &about(2.0, 0.5)).unwrap();
        assert_eq!((none.value, none.low, none.high), (0.0, 0.0, 2.0));
    }
}
