//! The number of a policy or family, and comparison of two: by pairs if both got the same tasks, else as
//! independent numbers.

use std::sync::Arc;

use sluice_stats::{Estimate, NumberInParts};

use super::verdict::{self, Holds};

/// A number of one policy or family.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PolicyNumber {
    /// The number; infinite for a latency under a load that is not sustained.
    pub estimate: Estimate,
    /// The policy; for a family, the member with the best number.
    pub by: String,
    /// The rate of the measurement, if there is one.
    pub rate: Option<u64>,
    /// A remark; may be empty.
    pub note: String,
    /// The number part by part, if the parts were kept.
    pub basis: Option<Basis>,
}

/// A number part by part, and of which tasks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Basis {
    /// The number of the tasks in the plan. At one rate equal numbers are the same tasks.
    pub tasks: usize,
    pub number: Arc<NumberInParts>,
}

/// The quotient of two numbers; `None` if it has no bounds.
pub(super) fn quotient(above: &PolicyNumber, below: &PolicyNumber) -> Option<Estimate> {
    let by_pairs = pair(above, below).and_then(|(above, below)| above.over(below));
    by_pairs.or_else(|| verdict::quotient(&above.estimate, &below.estimate))
}

/// The quotient of two numbers with its parts, if both got the same tasks.
pub(super) fn quotient_number(above: &PolicyNumber, below: &PolicyNumber) -> Option<PolicyNumber> {
    let estimate = quotient(above, below)?;
    let number = pair(above, below).and_then(|(above, below)| above.quotient(below));
    let basis = above.basis.as_ref().zip(number);
    let basis = basis.map(|(of, number)| Basis { tasks: of.tasks, number: Arc::new(number) });
    Some(PolicyNumber { estimate, basis, note: String::new(), ..above.clone() })
}

/// Whether one number is less than another one.
pub(super) fn is_less(less: &PolicyNumber, more: &PolicyNumber) -> Holds {
    match pair(less, more).and_then(|(less, more)| more.less(less)) {
        Some(difference) if difference.low > 0.0 => Holds::Yes,
        Some(difference) if difference.high < 0.0 => Holds::No,
        Some(_) => Holds::Open,
        None => Holds::less(&less.estimate, &more.estimate),
    }
}

/// Both numbers part by part, if they are of the same tasks.
fn pair<'f>(
    one: &'f PolicyNumber,
    other: &'f PolicyNumber,
) -> Option<(&'f NumberInParts, &'f NumberInParts)> {
    let (of_one, of_other) = (one.basis.as_ref()?, other.basis.as_ref()?);
    let have_same_tasks = one.rate == other.rate && of_one.tasks == of_other.tasks;
    have_same_tasks.then_some((&*of_one.number, &*of_other.number))
}

#[cfg(test)]
mod tests {
    use sluice_stats::{Method, estimate};

    use super::*;

    /// A mean of four replications, at a rate of some tasks.
    fn figure(samples: [f64; 4], rate: u64, tasks: usize) -> PolicyNumber {
        let found = estimate(samples.iter().sum::<f64>() / 4.0, &samples, Method::Replications);
        let number = Arc::new(NumberInParts::of_replications(found, &samples));
        let basis = Some(Basis { tasks, number });
        PolicyNumber { estimate: found, by: "rain:1".into(), rate: Some(rate), note: String::new(), basis }
    }

    const BUSY: [f64; 4] = [10.0, 20.0, 30.0, 40.0];
    const BUSIER: [f64; 4] = [11.1, 22.0, 33.0, 43.9];

    #[test]
    fn figures_of_the_same_tasks_are_compared_by_pairs() {
        let (one, other) = (figure(BUSY, 1, 0), figure(BUSIER, 1, 0));
        let found = quotient(&other, &one).expect("there is one");
        assert_eq!(found.method, Method::Paired);
        assert!(found.low > 1.09 && found.high < 1.11, "{found:?}");
        assert_eq!((is_less(&one, &other), is_less(&other, &one)), (Holds::Yes, Holds::No));
    }

    #[test]
    fn figures_of_other_tasks_are_compared_by_their_own_intervals() {
        let one = figure(BUSY, 1, 0);
        for other in [figure(BUSIER, 2, 0), figure(BUSIER, 1, 1)] {
            let found = quotient(&other, &one).expect("there is one");
            assert_eq!(found.method, Method::Replications);
            assert!(found.low < 0.6 && found.high > 2.0, "{found:?}");
            assert_eq!(is_less(&one, &other), Holds::Open);
        }
    }

    /// Both quotients have the luck of the first policy against the second, so that their own intervals
    /// overlap.
    #[test]
    fn quotients_of_the_same_tasks_are_compared_by_pairs() {
        const OTHER: [f64; 4] = [11.5, 21.0, 33.5, 43.0];
        let over = |other: &PolicyNumber, tasks| quotient_number(other, &figure(BUSY, 1, tasks));
        let found = |tasks| over(&figure(OTHER, 1, tasks), tasks).expect("there is one");
        let more = over(&figure(OTHER.map(|of| of * 1.01), 1, 0), 0).expect("there is one");
        assert!(found(0).estimate.high > more.estimate.low, "{found:?} {more:?}", found = found(0));
        assert_eq!((is_less(&found(0), &more), is_less(&more, &found(0))), (Holds::Yes, Holds::No));
        assert_eq!(is_less(&found(1), &more), Holds::Open, "of other tasks");
    }

    #[test]
    fn a_figure_is_not_less_than_its_equal() {
        let (one, other) = (figure(BUSY, 1, 0), figure(BUSY, 1, 0));
        assert_eq!((is_less(&one, &other), is_less(&other, &one)), (Holds::Open, Holds::Open));
        assert_eq!(quotient(&one, &other).expect("there is one").value.to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn a_load_that_is_not_sustained_is_above_one_that_is() {
        let lost =
            PolicyNumber { estimate: Estimate::exact(f64::INFINITY), basis: None, ..figure(BUSY, 1, 0) };
        assert_eq!(is_less(&figure(BUSY, 1, 0), &lost), Holds::Yes);
        assert_eq!(quotient(&figure(BUSY, 1, 0), &lost), None);
    }
}
