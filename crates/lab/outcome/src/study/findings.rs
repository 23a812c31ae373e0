//! What a study's numbers say: verdicts on the paper's statements, comparisons, and limits that are kept.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Estimate, Metric, Unit};

/// A statement of the paper and what came out here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Unique in the study, such as `p99-rain`.
    pub id: String,
    /// What the paper says, in our words, or what we say.
    pub claim: String,
    /// Where it says so, or what of it is ours.
    pub place: String,
    /// Whether no paper has the number or the bound, and it is ours. Studies of before this was told read as
    /// the papers'.
    #[serde(default)]
    pub ours: bool,
    /// The id of the panel it is about, if it is about one.
    pub panel: Option<String>,
    /// The unit of both numbers.
    pub unit: Unit,
    /// The number that is stated; none if it is a shape.
    pub paper: Option<f64>,
    /// Ours; none if there is nothing to measure or it was not reached.
    pub measured: Option<Estimate>,
    /// How the two stand to each other.
    pub verdict: Verdict,
    /// What the verdict rests on.
    pub why: String,
    /// Where a difference comes from; every [`Verdict::Differs`] has one once it was looked for.
    pub cause: Option<Cause>,
}

/// How the paper's statement and ours stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The number comes out: its whole interval is within the tolerance, or on the side that is stated.
    Agrees,
    /// The order or the shape comes out, whatever the interval leaves open; the number does not, or may not.
    AgreesInShape,
    /// It does not come out.
    Differs,
    /// What was measured holds values that it is so for, and values that it is not.
    Undecided,
    /// The paper does not say enough of the set-up to tell.
    SetUpNotKnown,
    /// The points it needs are not in this run.
    NotMeasured,
}

/// Where a difference comes from, and what shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    pub says: String,
    /// The command that shows it.
    pub command: String,
    /// What the command was seen to give.
    pub shows: String,
}

/// Two series on the same tasks at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    pub panel: String,
    /// The label of the one's series.
    pub a: String,
    pub b: String,
    /// Tasks offered per second.
    pub offered_per_s: f64,
    /// What is compared; none for the throughput.
    pub metric: Option<Metric>,
    /// The class it is of; all tasks if there is none.
    pub class: Option<String>,
    pub of_a: Estimate,
    pub of_b: Estimate,
    /// B less A.
    pub difference: Estimate,
    /// The whole interval of the difference leaves out zero, or, where something is allowed, all of that.
    pub real: bool,
    /// How far apart they may be, as a share of A's value; none if they need not agree.
    pub allowed: Option<f64>,
    /// Whether they agree, differ, or cannot be told; none if they need not agree. Studies of before this was
    /// told read as if they need not.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// Where the difference comes from, if that was looked for.
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
    /// The class it is of; all tasks if there is none.
    pub class: Option<String>,
    /// The limit, in the metric's unit.
    pub limit: f64,
    /// The rate; none if no rate in the range keeps the limit.
    pub rate_per_s: Option<Estimate>,
    /// What else to know, such as `keeps it up to the highest rate tried`; empty if nothing.
    pub note: String,
}

impl Verdict {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 6] = [
        Self::Agrees,
        Self::AgreesInShape,
        Self::Differs,
        Self::Undecided,
        Self::SetUpNotKnown,
        Self::NotMeasured,
    ];

    /// As JSON and CSV name it.
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
    /// The verdict on a difference that may be at most so much, to either side: the two agree if its whole
    /// interval is within that, and differ if none of it is. Without an interval nothing is decided.
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
