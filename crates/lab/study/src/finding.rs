//! Our result for a statement of the paper.

use std::fmt::Write;
use std::sync::Arc;

use sluice_outcome::study::{Estimate, Unit, Verdict};
use sluice_stats::{NumberInParts, mean_of_either_sign};

use super::evaluator::{ClassNumbers, Evaluator};
use super::known_points::Evaluation;
use super::plan::{Claim, Plan, Quantity, Relation, Subject, Tolerance};
use super::policy_number::{Basis, PolicyNumber, is_less, quotient, quotient_number};
use super::verdict::{Holds, Pairs, excused, is_at_most, of_number, of_order, times_as_many, tolerated};

/// An advice to run more than this many times as many tasks would be useless.
const TIMES_MAX: f64 = 1_000.0;

/// Our number for a statement, and the verdict.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    /// Our number, if the statement is about one and the load was reached.
    pub measured: Option<Estimate>,
    /// The same number with what it rests on, to be compared with that under a change of the plan.
    pub figure: Option<PolicyNumber>,
    /// How our number compares with the paper's.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub why: String,
    /// The distance to the paper's number; 0 if equal, or if all pairs are in the paper's order.
    pub off: f64,
}

/// The paper's number, if the statement is about one.
pub(super) const fn paper(claim: &Claim) -> Option<f64> {
    match claim.relation {
        Relation::Value { paper, .. }
        | Relation::Ratio { paper, .. }
        | Relation::Change { paper, .. }
        | Relation::MeanChange { paper, .. } => Some(paper),
        Relation::AtMost { most, .. } => Some(most),
        Relation::AtLeast { least, .. } => Some(least),
        Relation::Order(_) | Relation::Closer { .. } => None,
    }
}

/// The unit of the statement's number.
pub(super) fn unit(claim: &Claim) -> Unit {
    match claim.relation {
        Relation::Value { .. } | Relation::AtMost { over: None, .. } | Relation::AtLeast { .. } => {
            claim.quantity.unit()
        }
        Relation::Change { .. } | Relation::MeanChange { .. } => Unit::Share,
        Relation::Ratio { .. } | Relation::AtMost { .. } | Relation::Order(_) | Relation::Closer { .. } => {
            Unit::Ratio
        }
    }
}

/// Our result, or the points that are missing for it.
pub(super) fn find(plan: &Plan, claim: &Claim, evaluator: Evaluator<'_>) -> Evaluation<Finding> {
    let unit = claim.quantity.unit();
    let found = match &claim.relation {
        Relation::Value { who, paper } => value(plan, claim, who, *paper, evaluator),
        Relation::Ratio { who, over, over_case, paper } => pair(claim, who, (over, *over_case), evaluator)
            .map(|pair| ratio(&pair, unit, *paper, plan.tolerance)),
        Relation::Change { who, over, over_case, paper } => pair(claim, who, (over, *over_case), evaluator)
            .map(|pair| change(&pair, unit, *paper, plan.tolerance)),
        Relation::MeanChange { who, over, over_case, paper } => {
            let (mine, theirs) = (evaluator.slowdowns(claim.case, who, &claim.quantity), *over_case);
            let tasks = evaluator.tasks_number(claim.case);
            mine.and(evaluator.slowdowns(theirs, over, &claim.quantity))
                .map(|pair| mean_change(&pair, (who, over), tasks, (*paper, plan.tolerance)))
        }
        Relation::AtMost { who, over, most } => at_most(claim, who, over.as_ref(), *most, evaluator),
        Relation::AtLeast { who, least } => at_least(claim, who, *least, evaluator),
        Relation::Order(places) => order(claim, places, evaluator, plan.tolerance),
        Relation::Closer { who, over, case } => {
            let there = Claim { case: *case, ..claim.clone() };
            pair(claim, who, (over, claim.case), evaluator)
                .and(pair(&there, who, (over, *case), evaluator))
                .map(|(here, there)| closer(&here, &there, unit))
        }
    };
    let unknown = claim.unknown_set_up.is_some();
    found.map(|found| Finding { verdict: excused(found.verdict, unknown), ..found })
}

fn value(
    plan: &Plan,
    claim: &Claim,
    who: &Subject,
    paper: f64,
    evaluator: Evaluator<'_>,
) -> Evaluation<Finding> {
    let share = match claim.quantity {
        Quantity::At { .. } | Quantity::Gauge { .. } | Quantity::Course { .. } => plan.tolerance.value,
        Quantity::Keeps(_) | Quantity::Saturation => plan.tolerance.rate,
    };
    let shape = shape(plan, claim, share, evaluator);
    first(evaluator.figures(claim.case, who, &claim.quantity)).and(shape).map(|(figure, shape)| {
        let measured = finite(&figure);
        // A load that is not sustained has no number, and so no shape.
        let shape = shape.filter(|_| measured.is_some());
        let verdict = of_number(paper, paper * share, measured, shape.as_ref().map(|(holds, _)| *holds));
        let mut why = text(&figure, claim.quantity.unit());
        if let (Some((holds, others)), false) = (&shape, verdict == Verdict::Agrees) {
            let stands = match holds {
                Holds::Yes => "stands as in the paper",
                Holds::No => "does not stand as in the paper",
                Holds::Open => "cannot be told apart enough",
            };
            // Writing to a string cannot fail.
            let _ = write!(why, "; {stands} to {others}");
        }
        let (least, most) = tolerated(paper, paper * share);
        why += &open(verdict, measured, &[least, most]);
        let off = (figure.estimate.value / paper - 1.0).abs();
        Finding { measured, figure: Some(figure), verdict, why, off }
    })
}

/// Whether the statement's number compares with those of its group as in the paper, and the names of the
/// group's others. `None` without a group, or if the paper's numbers are too close to each other.
fn shape(
    plan: &Plan,
    claim: &Claim,
    share: f64,
    evaluator: Evaluator<'_>,
) -> Evaluation<Option<(Holds, String)>> {
    let Relation::Value { who, paper } = &claim.relation else { return Evaluation::Known(None) };
    let others = plan.claims.iter().filter_map(|other| match &other.relation {
        Relation::Value { who, paper: theirs }
            if claim.group.is_some()
                && other.group == claim.group
                && other.case == claim.case
                && (theirs / paper).max(paper / theirs) > 1.0 + share =>
        {
            Some((other, who, *theirs))
        }
        _ => None,
    });
    let mine = first(evaluator.figures(claim.case, who, &claim.quantity));
    let theirs = others.map(|(other, who, theirs)| {
        first(evaluator.figures(other.case, who, &other.quantity)).map(|figure| (figure, theirs))
    });
    mine.and(Evaluation::all(theirs)).map(|(mine, others)| {
        let stands = |(figure, theirs): &(PolicyNumber, f64)| {
            let (less, more) = if paper < theirs { (&mine, figure) } else { (figure, &mine) };
            is_less(less, more)
        };
        let names: Vec<&str> = others.iter().map(|(figure, _)| figure.by.as_str()).collect();
        (!others.is_empty())
            .then(|| (others.iter().map(stands).fold(Holds::Yes, Holds::and), names.join(", ")))
    })
}

fn pair(
    claim: &Claim,
    who: &Subject,
    (over, over_case): (&Subject, usize),
    evaluator: Evaluator<'_>,
) -> Evaluation<(PolicyNumber, PolicyNumber)> {
    let of = |case, who| first(evaluator.figures(case, who, &claim.quantity));
    of(claim.case, who).and(of(over_case, over))
}

fn ratio(pair: &(PolicyNumber, PolicyNumber), unit: Unit, paper: f64, tolerance: Tolerance) -> Finding {
    let found = of_quotient(pair, unit, 1.0, (paper, paper * tolerance.ratio));
    let off = found.measured.map_or(f64::INFINITY, |found| (found.value / paper - 1.0).abs());
    Finding { off, ..found }
}

fn change(pair: &(PolicyNumber, PolicyNumber), unit: Unit, paper: f64, tolerance: Tolerance) -> Finding {
    of_quotient(pair, unit, 0.0, (paper, tolerance.change))
}

/// The result for a quotient, counted so that two equal numbers give `none`.
fn of_quotient(
    (who, over): &(PolicyNumber, PolicyNumber),
    unit: Unit,
    none: f64,
    paper: (f64, f64),
) -> Finding {
    let figure = quotient_number(who, over);
    let measured = figure.as_ref().map(|figure| shifted(figure.estimate, none - 1.0));
    let why = two(who, over, unit, measured.is_some());
    Finding { figure, ..sided(measured, none, paper, why) }
}

fn shifted(found: Estimate, by: f64) -> Estimate {
    Estimate { value: found.value + by, low: found.low + by, high: found.high + by, ..found }
}

/// The result for a number whose side matters: the side of `none` on which the paper's number is.
fn sided(measured: Option<Estimate>, none: f64, (paper, off_by): (f64, f64), why: String) -> Finding {
    let side = measured.map(|found| Holds::on_the_side(&found, none, paper));
    let verdict = of_number(paper, off_by, measured, side);
    let (least, most) = tolerated(paper, off_by);
    Finding {
        measured,
        figure: None,
        verdict,
        why: why + &open(verdict, measured, &[least, most, none]),
        off: measured.map_or(f64::INFINITY, |found| (found.value - paper).abs()),
    }
}

/// Replications with the same number have the same tasks, so each replication's change is a sample.
fn mean_change(
    (mine, theirs): &(Vec<ClassNumbers>, Vec<ClassNumbers>),
    (who, over): (&Subject, &Subject),
    tasks: usize,
    (paper, tolerance): (f64, Tolerance),
) -> Finding {
    let of_classes = |(mine, theirs): (&ClassNumbers, &ClassNumbers)| {
        let both = mine.iter().zip(theirs).filter_map(|(mine, theirs)| Some(((*mine)?, (*theirs)?)));
        let changes: Vec<f64> = both.map(|(mine, theirs)| mine / theirs - 1.0).collect();
        changes.iter().sum::<f64>() / changes.len().max(1) as f64
    };
    let samples: Vec<f64> = mine.iter().zip(theirs).map(of_classes).collect();
    let found = mean_of_either_sign(&samples);
    let classes = mine.first().map_or(0, Vec::len);
    let why = format!(
        "{} over {}, averaged over {classes} classes in each of {} replications",
        who.label,
        over.label,
        samples.len()
    );
    // As quotients, which are never negative.
    let quotients: Vec<f64> = samples.iter().map(|change| change + 1.0).collect();
    let number = NumberInParts::of_replications(shifted(found, 1.0), &quotients);
    let basis = Some(Basis { tasks, number: Arc::new(number) });
    let by = who.label.clone();
    let figure = PolicyNumber { estimate: shifted(found, 1.0), by, rate: None, note: String::new(), basis };
    Finding { figure: Some(figure), ..sided(Some(found), 0.0, (paper, tolerance.change), why) }
}

/// Checks a limit at all rates. The worst rate decides: a rate that surely breaks the limit counts before a
/// rate that may break it. A load that neither policy sustains is ignored.
fn at_most(
    claim: &Claim,
    who: &Subject,
    over: Option<&(Subject, usize)>,
    most: f64,
    evaluator: Evaluator<'_>,
) -> Evaluation<Finding> {
    let unit = unit(claim);
    let figures = evaluator.figures(claim.case, who, &claim.quantity);
    let others = over.map_or(Evaluation::Known(Vec::new()), |(over, case)| {
        evaluator.figures(*case, over, &claim.quantity)
    });
    figures.and(others).map(|(figures, others)| {
        let number = |(at, figure): (usize, &PolicyNumber)| {
            let other = others.get(at);
            if other.is_some_and(|other| other.estimate.value.is_infinite()) {
                return None;
            }
            let times = other.and_then(|other| quotient_number(figure, other));
            let found = times.as_ref().map(|times| times.estimate);
            let keeps = is_at_most(&figure.estimate, other.map(|other| (&other.estimate, found)), most);
            Some((at, times.unwrap_or_else(|| figure.clone()), keeps))
        };
        let numbers = figures.iter().enumerate().filter_map(number);
        let worst = numbers.max_by(|one, other| {
            let values = one.1.estimate.value.total_cmp(&other.1.estimate.value);
            broken(one.2).cmp(&broken(other.2)).then(values)
        });
        let Some((at, figure, keeps)) = worst else { return not_sustained() };
        let found = figure.estimate;
        let why = match others.get(at) {
            None => text(&figures[at], unit),
            Some(other) => two(&figures[at], other, claim.quantity.unit(), true),
        };
        let why =
            if figures.len() > 1 { format!("of {} rates the worst: {why}", figures.len()) } else { why };
        let measured = found.value.is_finite().then_some(found);
        let why = why + &open(keeps.verdict(), measured, &[most]);
        let off = (found.value / most - 1.0).max(0.0);
        Finding { measured, figure: Some(figure), verdict: keeps.verdict(), why, off }
    })
}

/// Like [`at_most`], for a lower bound on a single number.
fn at_least(claim: &Claim, who: &Subject, least: f64, evaluator: Evaluator<'_>) -> Evaluation<Finding> {
    evaluator.figures(claim.case, who, &claim.quantity).map(|figures| {
        let sustained = figures.iter().filter(|figure| figure.estimate.value.is_finite());
        let keeps = |figure: &PolicyNumber| Holds::within(&figure.estimate, (least, f64::INFINITY));
        let worst = sustained.max_by(|one, other| {
            broken(keeps(one))
                .cmp(&broken(keeps(other)))
                .then(other.estimate.value.total_cmp(&one.estimate.value))
        });
        let Some(worst) = worst else { return not_sustained() };
        let verdict = keeps(worst).verdict();
        let why = text(worst, claim.quantity.unit()) + &open(verdict, Some(worst.estimate), &[least]);
        Finding {
            measured: Some(worst.estimate),
            figure: Some(worst.clone()),
            verdict,
            why: if figures.len() > 1 { format!("of {} rates the least: {why}", figures.len()) } else { why },
            off: (1.0 - worst.estimate.value / least).max(0.0),
        }
    })
}

/// Ranks results by how bad they are for a limit.
const fn broken(keeps: Holds) -> u8 {
    match keeps {
        Holds::Yes => 0,
        Holds::Open => 1,
        Holds::No => 2,
    }
}

fn not_sustained() -> Finding {
    let why = "no rate is sustained".to_owned();
    Finding { measured: None, figure: None, verdict: Verdict::NotMeasured, why, off: f64::INFINITY }
}

fn order(
    claim: &Claim,
    places: &[Vec<Subject>],
    evaluator: Evaluator<'_>,
    tolerance: Tolerance,
) -> Evaluation<Finding> {
    let place = |whos: &Vec<Subject>| {
        Evaluation::all(whos.iter().map(|who| evaluator.figures(claim.case, who, &claim.quantity)))
    };
    Evaluation::all(places.iter().map(place)).map(|places| {
        let mut pairs = Pairs::default();
        let mut wrong = Vec::new();
        for (at, lesser) in places.iter().enumerate() {
            for (less, more) in
                lesser.iter().flat_map(|less| places[at + 1..].iter().flatten().map(move |more| (less, more)))
            {
                for (less, more) in less.iter().zip(more) {
                    let before = pairs.wrong;
                    pairs.add(is_less(less, more));
                    if pairs.wrong > before {
                        wrong.push(against(less, more, claim.quantity.unit()));
                    }
                }
            }
        }
        let all = f64::from(pairs.all().max(1));
        Finding {
            measured: None,
            figure: None,
            verdict: of_order(pairs, tolerance.order),
            why: told_order(pairs, &wrong),
            // Pairs that cannot be told apart count half, so that a change which separates them counts as
            // progress.
            off: (f64::from(pairs.wrong) + f64::from(pairs.tied) / 2.0) / all,
        }
    })
}

fn closer(here: &(PolicyNumber, PolicyNumber), there: &(PolicyNumber, PolicyNumber), unit: Unit) -> Finding {
    let by = here.0.by.clone();
    let why =
        format!("here {}; there {}", two(&here.0, &here.1, unit, true), two(&there.0, &there.1, unit, true));
    let Some((here, there)) = apart(here).zip(apart(there)).filter(|(here, _)| here.value > 0.0) else {
        return Finding { measured: None, figure: None, verdict: Verdict::Differs, why, off: f64::INFINITY };
    };
    let verdict = Holds::less(&there, &here).verdict();
    let times = Estimate {
        value: there.value / here.value,
        low: there.low / here.most(),
        high: if here.low > 0.0 { there.most() / here.low } else { there.value / here.value },
        open_above: here.low <= 0.0 || there.open_above,
        ..here
    };
    let why = why + &open(verdict, Some(times), &[1.0]);
    let figure = Some(PolicyNumber { estimate: times, by, rate: None, note: String::new(), basis: None });
    Finding { measured: Some(times), figure, verdict, why, off: times.value }
}

/// How far the ratio of two numbers is from 1, in either direction.
fn apart((one, other): &(PolicyNumber, PolicyNumber)) -> Option<Estimate> {
    quotient(one, other).map(|found| {
        let (low, high) = (found.low - 1.0, found.high - 1.0);
        let nearest = if low > 0.0 || high < 0.0 { low.abs().min(high.abs()) } else { 0.0 };
        Estimate { value: (found.value - 1.0).abs(), low: nearest, high: low.abs().max(high.abs()), ..found }
    })
}

fn first(figures: Evaluation<Vec<PolicyNumber>>) -> Evaluation<PolicyNumber> {
    figures.map(|mut figures| figures.remove(0))
}

fn finite(figure: &PolicyNumber) -> Option<Estimate> {
    figure.estimate.value.is_finite().then_some(figure.estimate)
}

fn text(figure: &PolicyNumber, unit: Unit) -> String {
    let at = figure.rate.map(|rate| format!(" at {} kRPS", rate as f64 / 1e3)).unwrap_or_default();
    let note = if figure.note.is_empty() { String::new() } else { format!(" ({})", figure.note) };
    format!("{}{at}: {}{note}", figure.by, shown(figure.estimate.value, unit))
}

fn two(who: &PolicyNumber, over: &PolicyNumber, unit: Unit, measured: bool) -> String {
    let end = if measured { "" } else { "; so there is no quotient" };
    format!("{}, {}{end}", text(who, unit), text(over, unit))
}

/// A remark about a number whose interval contains one of the bounds, with how much longer a run should be.
/// Empty if the verdict does not suffer from it.
fn open(verdict: Verdict, measured: Option<Estimate>, bounds: &[f64]) -> String {
    let held = |found: &Estimate| bounds.iter().any(|bound| (found.low..=found.most()).contains(bound));
    let Some(found) = measured.filter(|_| verdict != Verdict::Agrees).filter(held) else {
        return String::new();
    };
    let says = match verdict {
        Verdict::Undecided => "the interval cannot say",
        Verdict::Differs => "on which side it is the interval cannot say",
        _ => "the shape is sure, and whether the number is within the tolerance the interval cannot say",
    };
    match times_as_many(&found, bounds) {
        Some(times) if times < TIMES_MAX => {
            format!("; {says}: about {:.0} times as many tasks would", times.ceil().max(2.0))
        }
        _ => format!("; {says}"),
    }
}

fn against(less: &PolicyNumber, more: &PolicyNumber, unit: Unit) -> String {
    let at = less.rate.map(|rate| format!(" at {} kRPS", rate as f64 / 1e3)).unwrap_or_default();
    format!(
        "{} {} above {} {}{at}",
        less.by,
        shown(less.estimate.value, unit),
        more.by,
        shown(more.estimate.value, unit)
    )
}

fn told_order(pairs: Pairs, wrong: &[String]) -> String {
    let Pairs { right, tied, .. } = pairs;
    let all = pairs.all();
    let mut told = format!("{right} of {all} pairs stand so, {tied} cannot be told apart");
    if let Some((first, others)) = wrong.split_first() {
        // Writing to a string cannot fail.
        let _ = write!(told, ", {} stand the other way round: {first}", wrong.len());
        let _ = if others.is_empty() { Ok(()) } else { write!(told, " and {} more", others.len()) };
    }
    told
}

/// A number with its unit, for people.
pub fn shown(value: f64, unit: Unit) -> String {
    match unit {
        _ if value.is_infinite() => "not sustained".into(),
        Unit::Ns => format!("{:.1} µs", value / 1e3),
        Unit::PerS => format!("{:.0} kRPS", value / 1e3),
        // It has no sign that would be shown.
        Unit::Share if value.abs() < 0.000_005 => "0.0 %".to_owned(),
        Unit::Share if value.abs() < 0.002 => format!("{:.3} %", value * 100.0),
        Unit::Share => format!("{:.1} %", value * 100.0),
        Unit::Ratio => format!("{value:.2}"),
        Unit::Count => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use sluice_outcome::study::Method;

    use super::*;

    fn found(low: f64, high: f64) -> Estimate {
        Estimate::between(f64::midpoint(low, high), low, high, Method::Replications)
    }

    fn figure(estimate: Estimate) -> PolicyNumber {
        PolicyNumber { estimate, by: "rain:1".into(), rate: None, note: String::new(), basis: None }
    }

    #[test]
    fn a_share_of_nothing_has_no_sign_and_a_small_one_its_digits() {
        let shares = [0.0, -0.0, -0.000_004, -0.000_04, 0.0013, -0.29].map(|share| shown(share, Unit::Share));
        assert_eq!(shares, ["0.0 %", "0.0 %", "0.0 %", "-0.004 %", "0.130 %", "-29.0 %"]);
    }

    #[test]
    fn a_number_that_may_be_the_papers_and_may_be_none_is_undecided() {
        let verdict = |low, high, none, paper, off_by| {
            sided(Some(found(low, high)), none, (paper, off_by), String::new()).verdict
        };
        assert_eq!(verdict(0.28, 2.21, 1.0, 0.24, 0.06), Verdict::Undecided, "any quotient");
        assert_eq!(verdict(0.1, 0.9, 1.0, 0.24, 0.06), Verdict::AgreesInShape, "less, however much less");
        assert_eq!(verdict(0.9, 1.1, 1.0, 0.24, 0.06), Verdict::Differs, "not the paper's, on either side");
        assert_eq!(verdict(1.05, 1.1, 1.0, 0.24, 0.06), Verdict::Differs);
        assert_eq!(verdict(-0.46, 0.28, 0.0, -0.37, 0.05), Verdict::Undecided);
        assert_eq!(verdict(-0.40, -0.34, 0.0, -0.37, 0.05), Verdict::Agrees);
    }

    #[test]
    fn what_is_undecided_says_how_much_longer_a_run_has_to_be() {
        let of = |low, high| sided(Some(found(low, high)), 0.0, (-0.37, 0.05), String::new()).why;
        assert_eq!(of(-0.46, 0.28), "; the interval cannot say: about 17 times as many tasks would");
        assert!(of(-0.5, -0.1).contains("the shape is sure"));
        assert_eq!(of(-0.40, -0.34), "");
        assert_eq!(of(0.1, 0.2), "", "it differs, and is sure to");
    }

    #[test]
    fn two_numbers_are_nearer_to_each_other_only_if_their_intervals_say_so() {
        let one = || figure(found(0.99, 1.01));
        let verdict = |here: Estimate, there: Estimate| {
            closer(&(figure(here), one()), &(figure(there), one()), Unit::Ratio).verdict
        };
        assert_eq!(verdict(found(1.9, 2.1), found(1.1, 1.2)), Verdict::Agrees);
        assert_eq!(verdict(found(1.1, 1.2), found(1.9, 2.1)), Verdict::Differs);
        assert_eq!(verdict(found(1.1, 2.2), found(1.1, 1.9)), Verdict::Undecided);
    }
}
