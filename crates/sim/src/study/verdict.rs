//! How the paper's statement and ours stand to each other: rules by kind of statement, never by point.

use sluice_outcome::study::{Estimate, HeatMap, Verdict};

/// A number against the paper's: it agrees if its interval meets the tolerance around the paper's number; if
/// it does not, the shape decides, where there is one.
pub(super) fn of_number(paper: f64, off_by: f64, measured: Option<Estimate>, shape: Option<bool>) -> Verdict {
    match measured {
        Some(found) if found.low <= paper + off_by && found.most() >= paper - off_by => Verdict::Agrees,
        _ if shape == Some(true) => Verdict::AgreesInShape,
        _ => Verdict::Differs,
    }
}

/// An order against the paper's: it agrees if no pair stands the other way round, it agrees in shape if at
/// most the share `wrong_max` of the pairs do.
pub(super) fn of_order(pairs: Pairs, wrong_max: f64) -> Verdict {
    match (pairs.all(), pairs.wrong) {
        (0, _) => Verdict::NotMeasured,
        (_, 0) if pairs.right > 0 => Verdict::Agrees,
        (all, wrong) if f64::from(wrong) <= wrong_max * f64::from(all) => Verdict::AgreesInShape,
        _ => Verdict::Differs,
    }
}

/// Whether a number is at most so much, or so many times another one. It is by its value, not by the end of a
/// wide interval; or, where it may be as large, if it lies inside the other's own interval, since what is not
/// known of that cannot be asked of it.
pub(super) fn is_at_most(found: &Estimate, over: Option<&Estimate>, most: f64) -> bool {
    match over {
        None => found.value <= most,
        Some(over) => found.value <= most * over.value || most >= 1.0 && found.value <= over.most(),
    }
}

/// Whether a map's numbers grow with the setting across (or with the one down), for each value of the other:
/// neighbours are held against each other, as for an order that a paper states. What it rests on is told.
pub fn growth(map: &HeatMap, across: bool, wrong_max: f64) -> (Verdict, String) {
    let mut pairs = Pairs::default();
    let rows = map.cells.len();
    let columns = map.across.values.len();
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let next = if across { (row, column + 1) } else { (row + 1, column) };
        if let Some(more) = map.cells.get(next.0).and_then(|row| row.get(next.1)) {
            pairs.add(&map.cells[row][column], more);
        }
    }
    let Pairs { right, tied, wrong } = pairs;
    let why =
        format!("of {} neighbours {right} grow, {tied} cannot be told apart, {wrong} shrink", pairs.all());
    (of_order(pairs, wrong_max), why)
}

/// What the paper's set-up leaves unknown excuses a difference, and only a difference.
pub(super) fn excused(verdict: Verdict, unknown_set_up: bool) -> Verdict {
    if unknown_set_up && verdict == Verdict::Differs { Verdict::SetUpNotKnown } else { verdict }
}

/// Pairs that the paper puts in an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs {
    /// They stand so, outside each other's intervals.
    pub right: u32,
    /// They cannot be told apart.
    pub tied: u32,
    /// They stand the other way round.
    pub wrong: u32,
}

impl Pairs {
    /// Counts a pair of which the paper says that `less` is less.
    pub(super) fn add(&mut self, less: &Estimate, more: &Estimate) {
        if less.most() < more.low {
            self.right += 1;
        } else if more.most() < less.low {
            self.wrong += 1;
        } else {
            self.tied += 1;
        }
    }

    /// How many there are.
    pub(super) const fn all(&self) -> u32 {
        self.right + self.tied + self.wrong
    }
}

/// The quotient of two estimates, as wide as both allow.
pub(super) fn quotient(above: &Estimate, below: &Estimate) -> Option<Estimate> {
    let sound = below.low > 0.0 && above.high.is_finite() && below.high.is_finite();
    sound.then(|| Estimate {
        value: above.value / below.value,
        low: above.low / below.most(),
        high: above.high / below.low,
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
    fn a_number_agrees_if_its_interval_meets_the_tolerance() {
        let verdict = |measured, shape| of_number(100.0, 10.0, measured, shape);
        assert_eq!(verdict(Some(about(109.0, 0.0)), None), Verdict::Agrees);
        assert_eq!(verdict(Some(about(112.0, 3.0)), None), Verdict::Agrees);
        assert_eq!(verdict(Some(about(112.0, 1.0)), None), Verdict::Differs);
        assert_eq!(verdict(Some(about(50.0, 1.0)), Some(true)), Verdict::AgreesInShape);
        assert_eq!(verdict(Some(about(50.0, 1.0)), Some(false)), Verdict::Differs);
        assert_eq!(verdict(None, None), Verdict::Differs);
    }

    #[test]
    fn an_order_agrees_unless_a_pair_stands_the_other_way_round() {
        let mut pairs = Pairs::default();
        pairs.add(&about(1.0, 0.1), &about(2.0, 0.1));
        pairs.add(&about(1.0, 0.1), &about(1.1, 0.1));
        assert_eq!(of_order(pairs, 0.25), Verdict::Agrees);
        pairs.add(&about(3.0, 0.1), &about(2.0, 0.1));
        assert_eq!(pairs, Pairs { right: 1, tied: 1, wrong: 1 });
        assert_eq!(of_order(pairs, 0.25), Verdict::Differs);
        assert_eq!(of_order(pairs, 0.4), Verdict::AgreesInShape);
        assert_eq!(of_order(Pairs::default(), 0.4), Verdict::NotMeasured);
    }

    #[test]
    fn a_wide_interval_keeps_no_limit_unless_it_is_the_others() {
        let over = |half| about(100.0, half);
        assert!(is_at_most(&about(104.0, 0.0), Some(&over(1.0)), 1.05));
        assert!(!is_at_most(&about(108.0, 50.0), Some(&over(1.0)), 1.05));
        assert!(is_at_most(&about(108.0, 0.0), Some(&over(9.0)), 1.05));
        assert!(!is_at_most(&about(88.0, 0.0), Some(&over(9.0)), 0.39), "as much is no part of it");
        assert!(is_at_most(&about(1.0, 5.0), None, 1.0) && !is_at_most(&about(1.1, 5.0), None, 1.0));
    }

    #[test]
    fn a_load_that_cannot_be_sustained_is_worse_than_any_that_can() {
        let mut pairs = Pairs::default();
        pairs.add(&about(1e9, 0.0), &Estimate::exact(f64::INFINITY));
        pairs.add(&Estimate::exact(f64::INFINITY), &Estimate::exact(f64::INFINITY));
        assert_eq!(pairs, Pairs { right: 1, tied: 1, wrong: 0 });
    }

    #[test]
    fn an_unknown_set_up_excuses_nothing_but_a_difference() {
        assert_eq!(excused(Verdict::Differs, true), Verdict::SetUpNotKnown);
        assert_eq!(excused(Verdict::Agrees, true), Verdict::Agrees);
        assert_eq!(excused(Verdict::Differs, false), Verdict::Differs);
    }

    #[test]
    fn a_quotient_is_as_wide_as_both_allow() {
        let found = quotient(&about(10.0, 1.0), &about(5.0, 0.5)).unwrap();
        assert_eq!((found.low, found.high), (9.0 / 5.5, 11.0 / 4.5));
        assert!(quotient(&Estimate::exact(f64::INFINITY), &about(1.0, 0.0)).is_none());
        assert!(quotient(&about(1.0, 0.0), &about(0.0, 1.0)).is_none());
    }
}
