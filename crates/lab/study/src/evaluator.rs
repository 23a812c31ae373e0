//! Looks up the numbers that statements are about: a metric at a rate, the highest rate within a limit, the
//! saturation.

use std::sync::Arc;

use sluice_outcome::study::{Metric, Part, Unit};
use sluice_stats::{Estimate, Method, NumberInParts, ReplicationSummary, SloFound, Summary};

use super::checked_plan::CheckedPlan;
use super::gauge::Facts;
use super::known_points::{Evaluation, KnownPoints, PointId};
use super::limit::{ClassMetric, Limit};
use super::plan::{Change, ClaimRates, PolicySetup, Quantity, Subject};
use super::policy_number::{Basis, PolicyNumber};
use super::seek::{Bracket, Range, bracket, seek};

/// Rates below this share of capacity are not searched.
const FLOOR_SHARE: f64 = 0.01;
const CEILING_SHARE: f64 = 0.995;
/// A search ends when its bracket is this share of its rate.
const PRECISION: f64 = 0.01;
/// The latency of a load that is not sustained: larger than all others.
const UNBOUNDED: Estimate = Estimate::exact(f64::INFINITY);
/// The result if no rate keeps the limit.
const NO_RATE: Estimate = Estimate::exact(0.0);

/// Answers questions from the known points, under one change of the plan or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evaluator<'k> {
    bench: &'k CheckedPlan,
    known: &'k KnownPoints,
    change: Option<usize>,
}

/// A done point's number, a remark, and the number part by part if it was kept.
type PointNumber = (Estimate, String, Option<Arc<NumberInParts>>);

/// One replication's number for each class; `None` for a class without tasks.
pub(super) type ClassNumbers = Vec<Option<f64>>;

impl<'k> Evaluator<'k> {
    /// An evaluator that answers from `known`.
    pub(super) const fn new(bench: &'k CheckedPlan, known: &'k KnownPoints, change: Option<usize>) -> Self {
        Self { bench, known, change }
    }

    /// The point of a run; the unchanged one if the change does not affect it.
    pub(super) fn point(&self, case: usize, run: &PolicySetup, rate: u64) -> PointId {
        let change = self.change.filter(|change| self.bench.affects(*change, run));
        PointId { case, run: run.clone(), rate, change }
    }

    /// The number of the tasks that a case's policies get.
    pub(super) fn tasks_number(&self, case: usize) -> usize {
        self.bench.tasks_number(case, self.change)
    }

    /// A metric at a rate; for a family, the lowest.
    pub(super) fn metric(
        &self,
        case: usize,
        who: &Subject,
        wanted: &ClassMetric,
        rate: u64,
    ) -> Evaluation<PolicyNumber> {
        self.lowest(case, who, rate, |id, summary| {
            let why = summary.sustained.why.clone();
            if !summary.sustained.holds && !self.bench.plan().cases[case].overload {
                return (UNBOUNDED, why, None);
            }
            (self.read(case, summary, wanted), why, self.in_parts(id, wanted))
        })
    }

    /// The slowdown of each class at a rate in each replication; for a family, that of its first member.
    pub(super) fn slowdowns(
        &self,
        case: usize,
        who: &Subject,
        quantity: &Quantity,
    ) -> Evaluation<Vec<ClassNumbers>> {
        let Quantity::At { wanted, at: ClaimRates::Rates(rates) } = quantity else {
            return Evaluation::Known(Vec::new());
        };
        let ids = who.of.iter().zip(rates).map(|(run, rate)| self.point(case, run, *rate as u64));
        let part = Part::ALL.iter().position(|part| *part == wanted.metric.part).unwrap_or_default();
        let of = |id: PointId| -> Evaluation<Vec<ClassNumbers>> {
            match self.known.get(&id) {
                None => Evaluation::Wants([id].into()),
                Some(summary) => {
                    let numbers = |one: &ReplicationSummary| {
                        one.slowdowns.iter().map(|of| of.map(|of| of[part])).collect()
                    };
                    Evaluation::Known(summary.each.iter().map(numbers).collect())
                }
            }
        };
        Evaluation::all(ids.map(of)).map(|all| all.into_iter().flatten().collect())
    }

    /// A number at a rate, with a remark; for a family, the lowest.
    fn lowest(
        &self,
        case: usize,
        who: &Subject,
        rate: u64,
        number: impl Fn(&PointId, &Summary) -> PointNumber,
    ) -> Evaluation<PolicyNumber> {
        let one = |run: &PolicySetup| {
            let id = self.point(case, run, rate);
            let (estimate, note, number) = if !self.bench.is_within_reach(&id) {
                (UNBOUNDED, "above what it can serve at all".to_owned(), None)
            } else if let Some(summary) = self.known.get(&id) {
                number(&id, summary)
            } else {
                return Evaluation::Wants([id].into());
            };
            let basis =
                number.map(|number| Basis { tasks: self.bench.tasks_number(id.case, id.change), number });
            Evaluation::Known(PolicyNumber { estimate, by: run.label(), rate: Some(rate), note, basis })
        };
        best(who.of.iter().map(one), |one, other| one.value < other.value)
    }

    /// The highest rate that keeps a limit; for a family, the highest of its members.
    pub(super) fn rate_within_limit(
        &self,
        case: usize,
        who: &Subject,
        limit: &Limit,
    ) -> Evaluation<PolicyNumber> {
        let number = |summary: &Summary| self.read(case, summary, &limit.wanted);
        self.highest(case, who, limit.below, number)
    }

    /// The highest sustained rate; for a family, the highest of its members.
    pub(super) fn saturation(&self, case: usize, who: &Subject) -> Evaluation<PolicyNumber> {
        self.highest(case, who, 1.0, |_| Estimate::exact(0.0))
    }

    /// Each figure that a quantity names.
    pub(super) fn figures(
        &self,
        case: usize,
        who: &Subject,
        quantity: &Quantity,
    ) -> Evaluation<Vec<PolicyNumber>> {
        match quantity {
            Quantity::At { wanted, at: ClaimRates::Rates(rates) } => {
                Evaluation::all(rates.iter().map(|rate| self.metric(case, who, wanted, *rate as u64)))
            }
            Quantity::At { wanted, at: ClaimRates::LimitOf(of, limit) } => {
                self.rate_within_limit(case, of, limit).then(|found| {
                    let rate = libm::floor(found.estimate.value) as u64;
                    let rate = rate.max(self.floor(case));
                    self.metric(case, who, wanted, rate).map(|figure| vec![figure])
                })
            }
            Quantity::Keeps(limit) => self.rate_within_limit(case, who, limit).map(|figure| vec![figure]),
            Quantity::Saturation => self.saturation(case, who).map(|figure| vec![figure]),
            Quantity::Gauge { gauge, rates } => {
                let facts = Facts::of(
                    self.bench.testbed(case, self.change),
                    self.bench.workload_of(case, self.change),
                );
                let one = |rate: &f64| {
                    self.lowest(case, who, *rate as u64, |_, summary| {
                        let class = gauge.class().and_then(|name| self.bench.class(case, name));
                        let values = gauge.values(&summary.each, &facts, class);
                        let found = gauge.mean(&values);
                        if summary.method == Method::None {
                            return (Estimate::exact(found.value), String::new(), None);
                        }
                        (found, String::new(), Some(of_replications(found, &values)))
                    })
                };
                Evaluation::all(rates.iter().map(one))
            }
            Quantity::Course { course, rate } => self
                .lowest(case, who, *rate as u64, |_, summary| {
                    let values = course.values(&summary.each);
                    let (found, note) = course.of(&values);
                    let is_mean = found.method == Method::Replications;
                    (found, note, is_mean.then(|| of_replications(found, &values)))
                })
                .map(|figure| vec![figure]),
        }
    }

    fn highest(
        &self,
        case: usize,
        who: &Subject,
        limit: f64,
        number: impl Fn(&Summary) -> Estimate,
    ) -> Evaluation<PolicyNumber> {
        let searches = who.of.iter().map(|run| {
            let series = self.point(case, run, 0);
            let range = self.range(&series);
            let bracket = bracket(self.known, &series, &range, limit, &number);
            (run, series, range, bracket)
        });
        let searches: Vec<_> = searches.collect();
        // A member that surely breaks the limit where another surely keeps it is not the best, so it is not
        // searched.
        let kept = searches.iter().map(|(.., bracket)| bracket.low).max().unwrap_or(0);
        let hopeful = searches.iter().filter(|(.., bracket)| bracket.high > kept);
        let one = |(run, series, range, bracket): &(&PolicySetup, PointId, Range, Bracket)| {
            seek(self.known, series, *bracket, range.precision, limit, &number).map(|found| {
                let (estimate, note) = match found {
                    SloFound::Rate(rate) => (rate, String::new()),
                    SloFound::Never => (NO_RATE, "no rate keeps it".to_owned()),
                    SloFound::Always => (
                        Estimate::exact(range.ceiling as f64),
                        "kept up to the highest rate tried".to_owned(),
                    ),
                };
                PolicyNumber { estimate, by: run.label(), rate: None, note, basis: None }
            })
        };
        best(hopeful.map(one), |one, other| one.value > other.value)
    }

    fn range(&self, series: &PointId) -> Range {
        let ceiling = self.ceiling(series);
        let grid = self.bench.plan().cases[series.case].rates.iter().map(|rate| *rate as u64);
        let grid = grid.filter(|rate| *rate < ceiling).collect();
        Range { floor: self.floor(series.case), ceiling, grid, precision: PRECISION }
    }

    /// The metric with the change applied.
    fn metric_of(&self, wanted: &ClassMetric) -> Metric {
        let changes = self.bench.changes(self.change);
        let other = changes.iter().find_map(|change| match change {
            Change::Slowdown(measure) if wanted.metric.unit() == Unit::Ratio => Some(*measure),
            _ => None,
        });
        Metric { measure: other.unwrap_or(wanted.metric.measure), ..wanted.metric }
    }

    fn read(&self, case: usize, summary: &Summary, wanted: &ClassMetric) -> Estimate {
        let class = wanted.class.as_deref().and_then(|name| self.bench.class(case, name));
        let times = class.map_or(&summary.overall, |class| &summary.classes[class].times);
        let found = times.get(self.metric_of(wanted));
        if wanted.response { found.less(self.client_path_ns(case)) } else { found }
    }

    fn in_parts(&self, id: &PointId, wanted: &ClassMetric) -> Option<Arc<NumberInParts>> {
        let class = wanted.class.as_deref().and_then(|name| self.bench.class(id.case, name));
        let number = self.known.in_parts(id, (self.metric_of(wanted), class))?;
        if !wanted.response {
            return Some(Arc::clone(number));
        }
        Some(Arc::new(NumberInParts::clone(number).less_constant(self.client_path_ns(id.case))))
    }

    /// A client's way to the first switch, and the way home.
    fn client_path_ns(&self, case: usize) -> f64 {
        let testbed = self.bench.testbed(case, self.change);
        (testbed.links.client + testbed.way_home()).0 as f64
    }

    fn floor(&self, case: usize) -> u64 {
        libm::ceil(self.bench.capacity(case, self.change) * FLOOR_SHARE) as u64
    }

    fn ceiling(&self, series: &PointId) -> u64 {
        let capacity = self.bench.capacity(series.case, self.change);
        let limit = self.bench.point(&PointId { rate: 1, ..series.clone() }).limit_per_s();
        libm::floor(capacity.min(limit) * CEILING_SHARE) as u64
    }
}

fn of_replications(found: Estimate, values: &[f64]) -> Arc<NumberInParts> {
    Arc::new(NumberInParts::of_replications(found, values))
}

fn best(
    figures: impl Iterator<Item = Evaluation<PolicyNumber>>,
    is_better: impl Fn(&Estimate, &Estimate) -> bool,
) -> Evaluation<PolicyNumber> {
    Evaluation::all(figures).map(|figures| {
        let chosen = figures
            .into_iter()
            .reduce(|best, next| if is_better(&next.estimate, &best.estimate) { next } else { best });
        chosen.expect("nobody is the best of nobody: plans are checked for it")
    })
}
