//! What a study's numbers say: verdicts on the paper's statements, comparisons, and limits that are kept.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Estimate, Metric, Unit};

/// A statement of the paper, and our result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The statement's id, unique in the study, such as `p99-rain`.
    pub id: String,
    /// The paper's statement in our words, or our own.
    pub claim: String,
    /// The place in the paper, or which part of the statement is ours.
    pub place: String,
    /// Whether the number or bound is ours and in no paper. Older studies without this field read as the
    /// papers'.
    #[serde(default)]
    pub ours: bool,
    /// The id of the panel, if the statement is about one.
    pub panel: Option<String>,
    /// The unit of both numbers.
    pub unit: Unit,
    /// The stated number; `None` for a statement about a shape.
    pub paper: Option<f64>,
    /// Our number; `None` if there is nothing to measure, or the load cannot be reached.
    pub measured: Option<Estimate>,
    /// How the two numbers compare.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub why: String,
    /// The cause of a difference; every [`Verdict::Differs`] has one once it was looked for.
    pub cause: Option<Cause>,
}

/// How the paper's statement and our result compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The number agrees: its whole interval lies within the tolerance, or on the stated side.
    Agrees,
    /// The order or the shape agrees, throughout the interval; the number does not, or may not.
    AgreesInShape,
    Differs,
    /// The interval contains values that agree and values that do not.
    Undecided,
    /// The paper does not describe the set-up well enough to decide.
    SetUpNotKnown,
    /// This run lacks the points that the statement needs.
    NotMeasured,
}

/// The cause of a difference, and the evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    pub says: String,
    /// The command that shows the cause.
    pub command: String,
    /// What the command showed.
    pub shows: String,
}

/// A comparison of two series on the same tasks at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    pub panel: String,
    /// The label of the first series.
    pub a: String,
    pub b: String,
    /// Tasks offered per second.
    pub offered_per_s: f64,
    /// What is compared; `None` for the throughput.
    pub metric: Option<Metric>,
    /// The class; `None` for all tasks.
    pub class: Option<String>,
    pub of_a: Estimate,
    pub of_b: Estimate,
    /// B less A.
    pub difference: Estimate,
    /// Whether the difference is real: its whole interval excludes zero, or the allowed range if there is
    /// one.
    pub real: bool,
    /// The allowed difference as a share of A's value; `None` if the two need not agree.
    pub allowed: Option<f64>,
    /// Whether they agree, differ, or cannot be told apart; `None` if they need not agree. Older studies
    /// without this field read so too.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// The cause of the difference, if it was looked for.
    pub cause: Option<Cause>,
}

/// The highest rate at which a policy keeps a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    pub panel: String,
    /// The label of a series, or a policy.
    pub policy: String,
    pub metric: Metric,
    /// The class; `None` for all tasks.
    pub class: Option<String>,
    /// The limit, in the metric's unit.
    pub limit: f64,
    /// The rate; `None` if no rate in the range keeps the limit.
    pub rate_per_s: Option<Estimate>,
    /// A remark, such as `keeps it up to the highest rate tried`; may be empty.
    pub note: String,
}

impl Verdict {
    /// All verdicts, in the order in which they are counted.
    pub const ALL: [Self; 6] = [
        Self::Agrees,
        Self::AgreesInShape,
        Self::Differs,
        Self::Undecided,
        Self::SetUpNotKnown,
        Self::NotMeasured,
    ];

    /// The verdict's name in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::AgreesInShape => "agrees_in_shape",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
            Self::SetUpNotKnown => "set_up_not_known",
            Self::NotMeasured => "not_measured",
        }
    }
}

impl Estimate {
    /// The verdict on a difference that may be at most `most` in either direction. The two agree if the
    /// whole interval lies within the bound, and differ if none of it does. Without an interval the verdict
    /// is undecided.
    pub fn verdict_within(&self, most: f64) -> Verdict {
        if !self.has_interval() {
            Verdict::Undecided
        } else if self.low >= -most && self.most() <= most {
            Verdict::Agrees
        } else if self.low > most || self.most() < -most {
            Verdict::Differs
        } else {
            Verdict::Undecided
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees",
            Self::AgreesInShape => "agrees in shape",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
            Self::SetUpNotKnown => "set-up not known",
            Self::NotMeasured => "not measured",
        })
    }
}
