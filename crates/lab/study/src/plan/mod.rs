//! Plans: what is run, what the paper says of it, and what would explain a difference.
//!
//! A plan is a TOML file of `experiments/`; `docs/manual/studies.md` describes its keys. Policies, workloads
//! and testbeds are kept here as they are written; [`super::bench`] makes points of them. Left out: anything
//! that holds for one point alone. Tolerances are stated once a plan and kind of statement, so nothing can be
//! tuned point by point.

mod read;

use serde::{Deserialize, Serialize};
use sluice_outcome::study::Measure;

use super::course::Course;
use super::gauge::Gauge;
use super::limit::{Limit, Wanted};

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// As in `sluice reproduce NAME`.
    pub name: String,
    /// A line that says what it is about.
    pub title: String,
    /// The paper and the place in it.
    pub source: String,
    /// What the paper leaves open, and what is done about it.
    pub notes: Vec<String>,
    /// The testbed: a name or a file.
    pub testbed: String,
    /// Workers, if not the testbed's.
    pub workers: Option<u32>,
    /// The seed of all streams.
    pub seed: u64,
    /// Measured tasks a point, all replications together.
    pub tasks: u64,
    /// Independent runs a point.
    pub replications: u32,
    /// The workloads, each under its policies and rates.
    pub cases: Vec<Case>,
    /// What the paper says.
    pub claims: Vec<Claim>,
    /// What may explain a difference.
    pub causes: Vec<CauseTest>,
    /// Highest rates to look for, beside those of the claims.
    pub searches: Vec<SearchFor>,
    /// Pairs to compare on the same tasks, at all rates of their case.
    pub comparisons: Vec<Compare>,
    /// How far a number may be off, by kind of statement.
    pub tolerance: Tolerance,
}

/// One workload: one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Unique in the plan.
    pub id: String,
    /// What stands above the picture.
    pub title: String,
    /// The workload as it is written.
    pub workload: String,
    /// Share of tasks over 8 bytes, in each class.
    pub large: f64,
    /// How long each replication is, from its beginning; as many tasks as all cases have, if nothing is said.
    pub lasts_ns: Option<u64>,
    /// Keys of the testbed that are different here.
    pub testbed: toml::Table,
    /// Offered rates, ascending.
    pub rates: Vec<f64>,
    pub runs: Vec<Run>,
}

/// A policy, and how it shares out the workers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The policy as it is written.
    pub policy: String,
    /// Classes with their workers; empty if all share all.
    pub slices: Vec<(String, u32)>,
}

/// Somebody a statement is about: one policy, or the best of several at each rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// What it is called.
    pub label: String,
    /// Whose best it is; one if it is a policy.
    pub of: Vec<Run>,
}

/// A statement of the paper about one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Unique in the plan together with the case.
    pub id: String,
    /// What the paper says, in our words.
    pub says: String,
    /// Where it says so.
    pub place: String,
    /// Whether no paper has its number or bound, and it is ours.
    pub ours: bool,
    /// The case's place in the plan.
    pub case: usize,
    pub quantity: Quantity,
    /// What the paper says of it.
    pub relation: Relation,
    /// Statements of values with the same group are one picture: their order is its shape.
    pub group: Option<String>,
    /// Why the set-up is not known, if it is not.
    pub unknown_set_up: Option<String>,
}

/// What is measured of each policy that a statement names.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A metric at offered rates.
    At { wanted: Wanted, at: At },
    /// The highest rate that keeps a limit.
    Keeps(Limit),
    /// The highest rate whose backlog stays bounded.
    Saturation,
    /// What is counted or averaged beside the tasks' times, at offered rates.
    Gauge { gauge: Gauge, rates: Vec<f64> },
    /// What became of depths and slices over time, at one offered rate.
    Course { course: Course, rate: f64 },
}

/// At which rates.
#[derive(Clone, Debug, PartialEq)]
pub enum At {
    /// These.
    Rates(Vec<f64>),
    /// The highest at which somebody keeps a limit.
    LimitOf(Who, Limit),
}

/// What the paper says of the quantity.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// It is so much.
    Value {
        who: Who,
        /// In the quantity's unit.
        paper: f64,
    },
    /// One's is so many times the other's.
    Ratio {
        who: Who,
        over: Who,
        /// The other's case, if it is another.
        over_case: usize,
        paper: f64,
    },
    /// One's is so much above the other's, as a share of the other's.
    Change {
        who: Who,
        /// From whose.
        over: Who,
        /// The other's case, if it is another.
        over_case: usize,
        /// The paper's share; negative if lower.
        paper: f64,
    },
    /// One's slowdowns are so much above the other's, as a share of the other's, averaged over the classes.
    MeanChange {
        who: Who,
        /// From whose.
        over: Who,
        /// The other's case, if it is another.
        over_case: usize,
        /// The paper's share; negative if lower.
        paper: f64,
    },
    /// It is no more than so much, at each rate.
    AtMost {
        who: Who,
        /// Over whose, and in which case; if there is nobody, the number itself.
        over: Option<(Who, usize)>,
        /// The most.
        most: f64,
    },
    /// It is no less than so much, at each rate.
    AtLeast {
        who: Who,
        /// The least.
        least: f64,
    },
    /// They ascend in this order; those of one place may stand either way.
    Order(Vec<Vec<Who>>),
    /// The two are closer to each other in another case than in this one.
    Closer {
        who: Who,
        over: Who,
        /// The case where they are closer.
        case: usize,
    },
}

/// The highest rate that keeps a limit, wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchFor {
    /// The case's place in the plan.
    pub case: usize,
    /// Who is to keep it.
    pub run: Run,
    /// What is to be kept.
    pub limit: Limit,
}

/// Two policies on the same tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The case's place in the plan.
    pub case: usize,
    pub a: Run,
    pub b: Run,
}

/// One changed setting that may explain a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseTest {
    /// Unique in the plan, as in `sluice reproduce NAME --cause ID`.
    pub id: String,
    /// The claims it may explain.
    pub of: Vec<String>,
    pub says: String,
    /// What is changed: one setting, or several where each alone is not enough.
    pub changes: Vec<Change>,
}

/// One setting and its other value.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A policy takes another's place.
    Policy {
        /// The one as the plan runs it.
        from: String,
        /// The one that stands in for it.
        to: String,
    },
    /// Keys of the testbed.
    Testbed(toml::Table),
    Workload(String),
    /// The share of large tasks.
    Large(f64),
    /// What a slowdown is over: every slowdown that the statement names is measured so.
    Slowdown(Measure),
    /// Types share all workers, or are split.
    Slices(Vec<(String, u32)>),
    /// Workers in the rack.
    Workers(u32),
}

/// How far a number may be off and still agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Of a value, as a share.
    pub value: f64,
    /// Of a ratio, as a share.
    pub ratio: f64,
    /// Of a change, in points of one.
    pub change: f64,
    /// Of a highest rate, as a share.
    pub rate: f64,
    /// The share of pairs that may stand in the wrong order for the shape to hold.
    pub order: f64,
}

impl Plan {
    /// Only the claims that one cause may explain, without a grid of points.
    pub fn only_cause(mut self, id: &str) -> Result<Self, super::StudyError> {
        let known = self.causes.iter().map(|cause| cause.id.as_str());
        let Some(cause) = self.causes.iter().find(|cause| cause.id == id).cloned() else {
            return Err(super::StudyError::Point(super::hint::unknown("cause", id, known)));
        };
        // Statements of one group are each other's shape.
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
    /// What plans use that state no claims.
    pub const UNUSED: Self = Self { value: 0.0, ratio: 0.0, change: 0.0, rate: 0.0, order: 0.0 };
}

impl Who {
    /// One policy.
    pub fn one(run: &Run) -> Self {
        Self { label: run.label(), of: vec![run.clone()] }
    }
}

impl Run {
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
