//! Plans: what to run, what the paper says about it, and what could explain a difference.
//!
//! A plan is a TOML file in `experiments/`; `docs/manual/studies.md` describes its keys. Policies,
//! workloads and testbeds are stored in their written form; [`super::checked_plan`] turns them into points.
//! Left out: settings for a single point. Tolerances are stated once for each kind of statement, so no point
//! can be tuned.

mod read;

use serde::{Deserialize, Serialize};
use sluice_outcome::study::Measure;
use sluice_sim::Within;

use super::gauge::Gauge;
use super::limit::{ClassMetric, Limit};
use super::time_course::TimeCourse;

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The plan's name, as in `sluice reproduce NAME`.
    pub name: String,
    /// The title, one line.
    pub title: String,
    /// The paper, and the place in it.
    pub source: String,
    /// What the paper leaves open, and what we do about it.
    pub notes: Vec<String>,
    /// The testbed: a name or a file.
    pub testbed: String,
    /// The number of workers, if it is not the testbed's.
    pub workers: Option<u32>,
    /// The seed of all streams.
    pub seed: u64,
    /// Measured tasks of a point, in all replications together.
    pub tasks: u64,
    /// Independent runs of each point.
    pub replications: u32,
    /// The workloads, each under its policies and rates.
    pub cases: Vec<Case>,
    /// The paper's statements.
    pub claims: Vec<Claim>,
    /// Possible causes of differences.
    pub causes: Vec<CauseTest>,
    /// Highest rates to search for, in addition to those of the claims.
    pub searches: Vec<SearchFor>,
    /// Pairs to compare on the same tasks, at all rates of their case.
    pub comparisons: Vec<Compare>,
    /// Tolerances by kind of statement.
    pub tolerance: Tolerance,
}

/// One workload: one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The case's id, unique in the plan.
    pub id: String,
    /// The title of the picture.
    pub title: String,
    /// The workload in its written form.
    pub workload: String,
    /// The share of tasks over 8 bytes, in each class.
    pub large: f64,
    /// The length of each replication from its beginning; `None` for the plan's number of tasks.
    pub lasts_ns: Option<u64>,
    /// Keys of the testbed that differ in this case.
    pub testbed: toml::Table,
    /// The latency within which an answer is in time, if goodput is asked for.
    pub within: Option<Within>,
    /// Whether rates that policies cannot keep up are meant: all are run, and their numbers count.
    pub overload: bool,
    /// Offered rates, ascending.
    pub rates: Vec<f64>,
    pub runs: Vec<PolicySetup>,
}

/// A policy, and how it divides the workers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySetup {
    /// The policy in its written form.
    pub policy: String,
    /// Classes with their workers; empty if all classes share all workers.
    pub slices: Vec<(String, u32)>,
}

/// The subject of a statement: one policy, or the best of several at each rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The subject's name.
    pub label: String,
    /// The policies of which the best counts; a single one if it is a policy.
    pub of: Vec<PolicySetup>,
}

/// A statement of the paper about one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The claim's id, unique together with the case.
    pub id: String,
    /// The paper's statement, in our words.
    pub says: String,
    /// The place in the paper.
    pub place: String,
    /// Whether the number or bound is ours and in no paper.
    pub ours: bool,
    /// The index of the case in the plan.
    pub case: usize,
    pub quantity: Quantity,
    /// The stated relation.
    pub relation: Relation,
    /// Statements of values in the same group belong to one figure: the order of their values is its shape.
    pub group: Option<String>,
    /// Why the set-up is not known, if it is not.
    pub unknown_set_up: Option<String>,
}

/// What is measured of each policy in a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A metric at offered rates.
    At { wanted: ClassMetric, at: ClaimRates },
    /// The highest rate that keeps a limit.
    Keeps(Limit),
    /// The highest rate whose backlog stays bounded.
    Saturation,
    /// A gauge at offered rates.
    Gauge { gauge: Gauge, rates: Vec<f64> },
    /// A number of depths and slices over time, at one offered rate.
    Course { course: TimeCourse, rate: f64 },
}

/// At which rates.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimRates {
    /// The given rates.
    Rates(Vec<f64>),
    /// The highest rate at which a subject keeps a limit.
    LimitOf(Subject, Limit),
}

/// The relation that the paper states about the quantity.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// The quantity has this value.
    Value {
        who: Subject,
        /// The value, in the quantity's unit.
        paper: f64,
    },
    /// The first subject's value is this many times the second's.
    Ratio {
        who: Subject,
        over: Subject,
        /// The second subject's case, if it differs.
        over_case: usize,
        paper: f64,
    },
    /// The first subject's value is this much above the second's, as a share of the second's.
    Change {
        who: Subject,
        /// From whose.
        over: Subject,
        /// The second subject's case, if it differs.
        over_case: usize,
        /// The paper's share; negative if lower.
        paper: f64,
    },
    /// The first subject's slowdowns are this much above the second's, as a share of the second's, averaged
    /// over the classes.
    MeanChange {
        who: Subject,
        /// From whose.
        over: Subject,
        /// The second subject's case, if it differs.
        over_case: usize,
        /// The paper's share; negative if lower.
        paper: f64,
    },
    /// The quantity is at most this, at each rate.
    AtMost {
        who: Subject,
        /// The subject by whose value the quantity is divided, and its case; `None` for the quantity
        /// itself.
        over: Option<(Subject, usize)>,
        most: f64,
    },
    /// The quantity is at least this, at each rate.
    AtLeast { who: Subject, least: f64 },
    /// The subjects' values ascend in this order; subjects in one place may be in any order.
    Order(Vec<Vec<Subject>>),
    /// The two subjects are closer to each other in another case than in this one.
    Closer {
        who: Subject,
        over: Subject,
        /// The case in which the two subjects are closer.
        case: usize,
    },
}

/// A search for the highest rate that keeps a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchFor {
    /// The index of the case in the plan.
    pub case: usize,
    pub run: PolicySetup,
    pub limit: Limit,
}

/// Two policies on the same tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The index of the case in the plan.
    pub case: usize,
    pub a: PolicySetup,
    pub b: PolicySetup,
}

/// A changed setting that may explain a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseTest {
    /// The cause's id, unique in the plan, as in `sluice reproduce NAME --cause ID`.
    pub id: String,
    /// The claims that it may explain.
    pub of: Vec<String>,
    pub says: String,
    /// The changes: one setting, or several if each alone is not enough.
    pub changes: Vec<Change>,
}

/// One setting and its other value.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// One policy is replaced by another.
    Policy {
        /// The policy that the plan runs.
        from: String,
        /// The policy that runs in its place.
        to: String,
    },
    /// Keys of the testbed.
    Testbed(toml::Table),
    Workload(String),
    /// The share of large tasks.
    Large(f64),
    /// The divisor of slowdowns: every slowdown in the statement uses it.
    Slowdown(Measure),
    /// Types share all workers, or have workers of their own.
    Slices(Vec<(String, u32)>),
    /// Workers in the rack.
    Workers(u32),
}

/// How far a number may differ and still agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// For a value, as a share.
    pub value: f64,
    /// For a ratio, as a share.
    pub ratio: f64,
    /// For a change, in absolute terms (0.1 is ten percentage points).
    pub change: f64,
    /// For a highest rate, as a share.
    pub rate: f64,
    /// The share of pairs that may be in the wrong order for the shape to agree.
    pub order: f64,
}

impl Plan {
    /// Keeps only the claims that one cause may explain, and drops the grid of points.
    pub fn only_cause(mut self, id: &str) -> Result<Self, super::StudyError> {
        let known = self.causes.iter().map(|cause| cause.id.as_str());
        let Some(cause) = self.causes.iter().find(|cause| cause.id == id).cloned() else {
            return Err(super::StudyError::Point(super::hint::unknown("cause", id, known)));
        };
        // The claims of one group form each other's shape, so they stay together.
        let groups: Vec<_> = self.claims.iter().filter(|claim| cause.of.contains(&claim.id)).collect();
        let groups: Vec<_> = groups.into_iter().filter_map(|claim| claim.group.clone()).collect();
        let is_near = |claim: &Claim| {
            cause.of.contains(&claim.id) || claim.group.as_ref().is_some_and(|group| groups.contains(group))
        };
        self.claims.retain(is_near);
        self.cases.iter_mut().for_each(|case| case.rates.clear());
        self.causes = vec![cause];
        Ok(self)
    }
}

impl Tolerance {
    /// The tolerances of plans without claims.
    pub const UNUSED: Self = Self { value: 0.0, ratio: 0.0, change: 0.0, rate: 0.0, order: 0.0 };
}

impl Subject {
    /// A subject of one policy.
    pub fn one(run: &PolicySetup) -> Self {
        Self { label: run.label(), of: vec![run.clone()] }
    }
}

impl PolicySetup {
    /// A policy over all workers.
    pub fn shared(policy: &str) -> Self {
        Self { policy: policy.to_owned(), slices: Vec::new() }
    }

    /// The policy with its slices, such as `rain:2 14 + 18`.
    pub fn label(&self) -> String {
        match self.slices_text() {
            None => self.policy.clone(),
            Some(slices) => format!("{} {slices}", self.policy),
        }
    }

    /// The slices, such as `14 + 18`.
    pub fn slices_text(&self) -> Option<String> {
        let counts: Vec<String> = self.slices.iter().map(|(_, workers)| workers.to_string()).collect();
        (!counts.is_empty()).then(|| counts.join(" + "))
    }
}

/// Reads slices such as `get=14,scan=18`.
pub fn slices(text: &str) -> Result<Vec<(String, u32)>, super::StudyError> {
    let wrong = |why: &str| super::StudyError::unreadable("slices", text, why);
    let one = |part: &str| {
        let (class, workers) =
            part.split_once('=').ok_or_else(|| wrong("has no `=`: write get=14,scan=18"))?;
        let workers = workers.trim().parse().ok().filter(|workers| *workers > 0);
        let workers = workers.ok_or_else(|| wrong("has a slice without workers: write one at least"))?;
        Ok((class.trim().to_owned(), workers))
    };
    text.split(',').map(one).collect()
}
