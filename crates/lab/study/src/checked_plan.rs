//! Turns a plan into points that can be run: policies, workloads and testbeds are read and checked before
//! anything runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sluice_outcome::study::{Metric, Unit};
use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::Warmup;
use sluice_testbed::Testbed;
use sluice_workload::Workload;
use sluice_workload::files;

use super::error::StudyError;
use super::known_points::{OfClass, PointId};
use super::limit::{ClassMetric, value_of};
use super::numbers;
use super::plan::{Case, Change, ClaimRates, Plan, PolicySetup, Quantity};

/// The time that a policy needs to find its depths: ten intervals, which are not measured.
const SETTLES_NS: u64 = 100_000_000;

/// The settings of a run that are not in its plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSettings {
    /// The length of each replication.
    pub length: Length,
    /// What to do about loads that a policy cannot sustain.
    pub overload: Overload,
    /// The folder of the files that the plan names.
    pub folder: PathBuf,
}

/// What to do about loads that a policy cannot sustain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// Loads above capacity are refused before anything runs.
    Refused,
    /// Loads above capacity are run, since the transient is of interest.
    Meant,
    /// Loads that the policy could not sustain even without variance are left out: they would take long and
    /// measure nothing. They count as not sustained.
    LeftOut,
}

/// The length of each replication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// A number of measured tasks, after a warm-up.
    Tasks(u64, Warmup),
    /// A measured time after a warm-up, in nanoseconds of virtual time.
    Time {
        /// The warm-up before the measured time.
        warmup_ns: u64,
        span_ns: u64,
    },
}

impl Length {
    /// The warm-up, in words.
    pub fn text(self) -> String {
        match self {
            Self::Tasks(_, warmup) => warmup.to_string(),
            Self::Time { warmup_ns, span_ns } => {
                let warmup = Warmup::TimeNs(warmup_ns);
                format!("{warmup}, then {} measured", Warmup::TimeNs(span_ns))
            }
        }
    }
}

/// A checked plan.
#[derive(Clone, Debug)]
pub struct CheckedPlan {
    plan: Plan,
    terms: RunSettings,
    sets: BTreeMap<(usize, Option<usize>), CaseSetup>,
    policies: BTreeMap<String, Policy>,
}

/// The testbed and workload of one case.
#[derive(Clone, Debug)]
struct CaseSetup {
    testbed: Testbed,
    workload: Workload,
    /// The place of the workload among the plan's different ones.
    tasks: usize,
}

impl CheckedPlan {
    /// Reads and checks everything that the plan names.
    pub fn new(plan: Plan, terms: RunSettings) -> Result<Self, StudyError> {
        let testbed = testbed(&plan.testbed, &terms.folder)?;
        let mut bench = Self { plan, terms, sets: BTreeMap::new(), policies: BTreeMap::new() };
        for case in 0..bench.plan.cases.len() {
            for change in [None].into_iter().chain((0..bench.plan.causes.len()).map(Some)) {
                let set = bench.set(&testbed, case, change)?;
                let same = bench.sets.values().find(|other| other.workload == set.workload);
                let tasks = same.map_or(bench.sets.len(), |other| other.tasks);
                bench.sets.insert((case, change), CaseSetup { tasks, ..set });
            }
        }
        bench.read_policies()?;
        bench.check_classes()?;
        bench.check_points()?;
        Ok(bench)
    }

    /// The plan.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The settings of the run.
    pub const fn terms(&self) -> &RunSettings {
        &self.terms
    }

    /// Whether a change affects a run.
    pub fn affects(&self, change: usize, run: &PolicySetup) -> bool {
        self.changes(Some(change)).iter().any(|change| match change {
            Change::Policy { from, .. } => run.policy == *from,
            Change::Slices(slices) => run.slices != *slices,
            Change::Slowdown(_) => false,
            Change::Testbed(_) | Change::Workload(_) | Change::Large(_) | Change::Workers(_) => true,
        })
    }

    /// The changes of a cause; none without a cause.
    pub fn changes(&self, cause: Option<usize>) -> &[Change] {
        cause.map_or(&[], |cause| &self.plan.causes[cause].changes)
    }

    /// The testbed of a case.
    pub fn testbed(&self, case: usize, change: Option<usize>) -> &Testbed {
        &self.of(case, change).testbed
    }

    /// The workload of a case.
    pub fn workload(&self, case: usize) -> &Workload {
        &self.of(case, None).workload
    }

    /// The workload of a case with a cause's change.
    pub(super) fn workload_of(&self, case: usize, change: Option<usize>) -> &Workload {
        &self.of(case, change).workload
    }

    /// The number of the tasks that a case's policies get. Cases with the same number have the same tasks
    /// at one rate, drawn from the plan's seed.
    pub(super) fn tasks_number(&self, case: usize, change: Option<usize>) -> usize {
        self.of(case, change).tasks
    }

    /// The metrics that statements read, with the slowdowns by which a cause may replace theirs.
    pub(super) fn numbers(&self, case: usize) -> Vec<OfClass> {
        let slowdowns = self.plan.causes.iter().flat_map(|cause| &cause.changes);
        let slowdowns = slowdowns.filter_map(|change| match change {
            Change::Slowdown(measure) => Some(*measure),
            _ => None,
        });
        let slowdowns: Vec<_> = slowdowns.collect();
        let mut numbers = Vec::new();
        for claim in &self.plan.claims {
            let Quantity::At { wanted, .. } = &claim.quantity else { continue };
            let class = wanted.class.as_deref().and_then(|name| self.class(case, name));
            if wanted.class.is_some() && class.is_none() {
                continue;
            }
            let others = slowdowns.iter().filter(|_| wanted.metric.unit() == Unit::Ratio);
            let others = others.map(|measure| Metric { measure: *measure, ..wanted.metric });
            for metric in [wanted.metric].into_iter().chain(others) {
                if !numbers.contains(&(metric, class)) {
                    numbers.push((metric, class));
                }
            }
        }
        numbers
    }

    /// The index of a class in the case's workload.
    pub fn class(&self, case: usize, name: &str) -> Option<usize> {
        self.workload(case).classes.iter().position(|class| class.name == name)
    }

    /// The rate at which every worker would be busy all the time.
    pub fn capacity(&self, case: usize, change: Option<usize>) -> f64 {
        let set = self.of(case, change);
        f64::from(set.testbed.workers) * 1e9 / set.workload.mean_service_ns()
    }

    /// Whether the point is run at all.
    pub fn is_within_reach(&self, id: &PointId) -> bool {
        self.terms.overload != Overload::LeftOut
            || self.plan.cases[id.case].overload
            || id.rate as f64 <= self.point(id).limit_per_s()
    }

    /// The point with this id, ready to run.
    pub fn point(&self, id: &PointId) -> Point {
        let set = self.of(id.case, id.change);
        let (mut policy, mut slices) = (&id.run.policy, &id.run.slices);
        for change in self.changes(id.change) {
            match change {
                Change::Policy { from, to } if id.run.policy == *from => policy = to,
                Change::Slices(other) => slices = other,
                _ => {}
            }
        }
        let (tasks, warmup) = match self.terms.length {
            Length::Tasks(tasks, warmup) => (tasks, warmup),
            Length::Time { warmup_ns, span_ns } => {
                let tasks = libm::ceil(id.rate as f64 * span_ns as f64 / 1e9) as u64;
                (tasks.max(1), Warmup::TimeNs(warmup_ns))
            }
        };
        let policy = self.policies[policy].clone();
        let lasts_ns = self.plan.cases[id.case].lasts_ns;
        let tasks = lasts_ns.map_or(tasks, |span_ns| set.workload.tasks_within(id.rate as f64, span_ns));
        let warmup = match self.terms.length {
            Length::Tasks(..) if set.testbed.fabric.is_some() => fabric_warmup(&set.testbed),
            _ if lasts_ns.is_some() => Warmup::Tasks(0),
            // A run whose load changes over time is measured from its beginning.
            Length::Tasks(..) if !self.is_steady(id.case) => Warmup::Tasks(0),
            Length::Tasks(..) if policy.has_agent() => Warmup::TimeNs(SETTLES_NS),
            _ => warmup,
        };
        Point {
            policy,
            testbed: set.testbed.clone(),
            workload: set.workload.clone(),
            rate_per_s: id.rate as f64,
            tasks,
            warmup,
            seed: self.plan.seed,
            transient: true,
            repeats: set.workload.trace().is_some(),
            slices: (!slices.is_empty()).then(|| slices.clone()),
            within: self.plan.cases[id.case].within.clone(),
        }
    }

    /// How many tasks a point's replication measures, and how many it runs before them; no more than its
    /// trace has, if it has one. A detected warm-up is assumed to be a tenth of the measurement.
    pub fn tasks(&self, id: &PointId) -> (u64, u64) {
        let point = self.point(id);
        let warm_up = match point.warmup {
            Warmup::Tasks(tasks) => tasks,
            Warmup::TimeNs(ns) => (point.rate_per_s * ns as f64 / 1e9) as u64,
            Warmup::Detect => point.tasks / 10,
        };
        match point.workload.trace() {
            None => (point.tasks, warm_up),
            Some(trace) => {
                let all = trace.tasks().len() as u64;
                (point.tasks.min(all.saturating_sub(warm_up)), warm_up.min(all))
            }
        }
    }

    /// The smallest and largest number of tasks that a replication of any point measures; zero if all
    /// lengths are times.
    pub(super) fn tasks_range(&self) -> (u64, u64) {
        if matches!(self.terms.length, Length::Time { .. }) {
            return (0, 0);
        }
        let of_case = |(case, of): (usize, &Case)| {
            let rates = of.rates.iter().copied().chain(of.rates.is_empty().then_some(1.0));
            let first = of.runs.first().cloned();
            let ids = rates.filter_map(move |rate| {
                Some(PointId { case, run: first.clone()?, rate: rate as u64, change: None })
            });
            ids.map(|id| self.tasks(&id).0).collect::<Vec<u64>>()
        };
        let all: Vec<u64> = self.plan.cases.iter().enumerate().flat_map(of_case).collect();
        (all.iter().copied().min().unwrap_or(0), all.iter().copied().max().unwrap_or(0))
    }

    fn is_steady(&self, case: usize) -> bool {
        self.workload(case).is_steady()
    }

    fn of(&self, case: usize, change: Option<usize>) -> &CaseSetup {
        &self.sets[&(case, change)]
    }

    fn set(&self, testbed: &Testbed, case: usize, change: Option<usize>) -> Result<CaseSetup, StudyError> {
        let case = &self.plan.cases[case];
        let mut testbed = testbed.changed(&case.testbed).map_err(point_error)?;
        testbed.workers = self.plan.workers.unwrap_or(testbed.workers);
        let (mut text, mut large) = (&case.workload, case.large);
        for change in self.changes(change) {
            match change {
                Change::Testbed(keys) => testbed = testbed.changed(keys).map_err(point_error)?,
                Change::Workers(workers) => testbed.workers = *workers,
                Change::Workload(other) => text = other,
                Change::Large(share) => large = *share,
                Change::Policy { .. } | Change::Slices(_) | Change::Slowdown(_) => {}
            }
        }
        testbed.check().map_err(point_error)?;
        let mut workload = Workload::parse_in(text, &self.terms.folder).map_err(point_error)?;
        for class in &mut workload.classes {
            class.large = class.large.max(large);
        }
        Ok(CaseSetup { testbed, workload, tasks: 0 })
    }

    fn read_policies(&mut self) -> Result<(), StudyError> {
        let runs = self.plan.cases.iter().flat_map(|case| &case.runs).map(|run| run.policy.clone());
        let changes = self.plan.causes.iter().flat_map(|cause| &cause.changes);
        let swapped = changes.filter_map(|change| match change {
            Change::Policy { to, .. } => Some(to.clone()),
            _ => None,
        });
        for text in runs.chain(swapped).collect::<Vec<_>>() {
            let policy = Policy::parse(&text).map_err(point_error)?;
            self.policies.insert(text, policy);
        }
        Ok(())
    }

    /// Checks that each class named by a metric or a slice is one of the workload's.
    fn check_classes(&self) -> Result<(), StudyError> {
        for claim in &self.plan.claims {
            let case = &self.plan.cases[claim.case];
            if let Quantity::Gauge { gauge, .. } = &claim.quantity
                && gauge.needs_limit()
                && case.within.is_none()
            {
                return Err(StudyError::Point(format!(
                    "[[claim]] {}: {} needs to know when an answer is in time: add `within`, such as \
                     \"200us\", to [[case]] {}",
                    claim.id,
                    gauge.name(),
                    case.id
                )));
            }
            for class in claim_classes(&claim.quantity) {
                self.check_class(claim.case, class)?;
            }
        }
        for search in &self.plan.searches {
            let class = search.limit.wanted.class.as_deref();
            class.map_or(Ok(()), |class| self.check_class(search.case, class))?;
        }
        Ok(())
    }

    fn check_class(&self, case: usize, class: &str) -> Result<(), StudyError> {
        let known = self.workload(case).classes.iter().map(|class| class.name.as_str());
        match self.class(case, class) {
            Some(_) => Ok(()),
            None => Err(StudyError::Point(super::hint::unknown("class", class, known))),
        }
    }

    /// Checks that no search needs other rates than a trace's own.
    fn check_searches(&self) -> Result<(), StudyError> {
        let searched = self.plan.searches.iter().filter_map(|search| self.workload(search.case).trace());
        match searched.into_iter().find(|trace| !trace.is_scaled()) {
            None => Ok(()),
            Some(trace) => Err(StudyError::Point(format!(
                "{0} has a rate of its own ({1:.0} tasks per second), so that no rate can be searched \
                for: write \
                 scaled-trace:{0} to have its times stretched to each rate that is tried",
                trace.label(),
                trace.rate_per_s()
            ))),
        }
    }

    /// Checks that all points that will surely run can be run.
    fn check_points(&self) -> Result<(), StudyError> {
        self.check_searches()?;
        for (case, of) in self.plan.cases.iter().enumerate() {
            for run in &of.runs {
                let rates = of.rates.iter().copied().chain(of.rates.is_empty().then_some(1.0));
                for rate in rates {
                    let id = PointId { case, run: run.clone(), rate: rate as u64, change: None };
                    let point =
                        Point { transient: self.terms.overload != Overload::Refused, ..self.point(&id) };
                    point.check().map_err(point_error)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a testbed by its name (`rain`, `rain-rdma`, `ringleader`, `hf2t`, `ideal`) or from its file.
pub fn testbed(name: &str, folder: &Path) -> Result<Testbed, StudyError> {
    match name {
        "rain" => return Ok(Testbed::rain()),
        "rain-rdma" => return Ok(Testbed::rain_rdma()),
        "ringleader" => return Ok(Testbed::ringleader()),
        "hf2t" => return Ok(Testbed::hf2t()),
        "ideal" => return Ok(Testbed::ideal()),
        _ => {}
    }
    let path = folder.join(name);
    let text = files::read(&path).map_err(|why| StudyError::Folder {
        path: path.clone(),
        why: format!(
            "no testbed can be read there ({why}): give `rain`, `rain-rdma`, `ideal`, `ringleader`, \
            `hf2t` or a \
             TOML file"
        ),
    })?;
    Testbed::parse(&text).map_err(|why| StudyError::Folder { path, why: why.to_string() })
}

/// Reads a warm-up: `detect`, a number of tasks such as `100k`, or a span such as `1s`.
pub fn warmup(text: &str) -> Result<Warmup, StudyError> {
    if text == "detect" {
        return Ok(Warmup::Detect);
    }
    let span = || value_of(text, Unit::Ns).map(|ns| Warmup::TimeNs(ns as u64));
    let tasks = || if text == "0" { Ok(0) } else { numbers::count(text) }.ok().map(Warmup::Tasks);
    span().or_else(tasks).ok_or_else(|| {
        StudyError::unreadable(
            "warm-up",
            text,
            "is none: write detect, tasks such as 100k, or a span such as 1s",
        )
    })
}

/// The warm-up of a fabric: its hosts first learn their gaps.
fn fabric_warmup(testbed: &Testbed) -> Warmup {
    Warmup::TimeNs(testbed.fabric.as_ref().map_or(0, |fabric| fabric.settles.0))
}

fn claim_classes(quantity: &Quantity) -> Vec<&str> {
    let wanted: Vec<&ClassMetric> = match quantity {
        Quantity::At { wanted, at: ClaimRates::Rates(_) } => vec![wanted],
        Quantity::At { wanted, at: ClaimRates::LimitOf(_, limit) } => vec![wanted, &limit.wanted],
        Quantity::Keeps(limit) => vec![&limit.wanted],
        Quantity::Gauge { gauge, .. } => return gauge.class().into_iter().collect(),
        Quantity::Saturation | Quantity::Course { .. } => Vec::new(),
    };
    wanted.into_iter().filter_map(|wanted| wanted.class.as_deref()).collect()
}

fn point_error(why: impl std::fmt::Display) -> StudyError {
    StudyError::Point(why.to_string())
}
