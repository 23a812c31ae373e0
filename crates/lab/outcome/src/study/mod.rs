//! What a study found out, as one value: `schemas/study.v1.json` describes its JSON.
//!
//! A study has panels (a workload each), a panel has series (a policy each), a series has points (an offered
//! rate each). Beside them stand the paper's numbers with a verdict each, paired comparisons, and searches
//! for the most that a limit allows. Times are nanoseconds, rates tasks per second, slowdowns plain ratios.
//! Nothing here depends on the machine or the clock: one seed and one commit give the same bytes. Every
//! number is finite.

mod depths;
mod findings;
mod gauges;
mod heat;
mod numbers;

use serde::{Deserialize, Serialize};

pub use depths::Depths;
pub use findings::{Cause, Comparison, Expectation, Search, Verdict};
pub use gauges::{Aggregate, CountDescriptor, Counts, GaugeDescriptor, Gauges};
pub use heat::{Axis, HeatMap};
pub use numbers::{Estimate, Measure, Method, Metric, Part, Spread, Times, Unit};

/// The result of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyOutcome {
    /// Which schema this follows.
    pub schema: Schema,
    /// What the study is called, as in `sluice reproduce NAME`.
    pub name: String,
    /// A line that says what it is about.
    pub title: String,
    /// The version that ran it.
    pub sluice: String,
    /// The commit that ran it.
    pub commit: String,
    /// What it was run with.
    pub settings: Settings,
    /// Commands that run it again, the first one the whole.
    pub commands: Vec<String>,
    /// Whether all points that were asked for are here; not so after a signal.
    pub complete: bool,
    /// One for each workload.
    pub panels: Vec<Panel>,
    /// Numbers over two settings, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heats: Vec<HeatMap>,
    /// What the paper says, and what came out.
    pub expectations: Vec<Expectation>,
    /// Pairs that were compared on the same tasks.
    pub comparisons: Vec<Comparison>,
    /// The most that was found to keep a limit.
    pub searches: Vec<Search>,
}

/// The schema of [`StudyOutcome`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schema {
    /// The only one so far.
    #[default]
    #[serde(rename = "sluice.study.v1")]
    V1,
}

/// What all points of a study share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The plan's file, if there was one.
    pub plan: Option<String>,
    pub testbed: String,
    /// The testbed in full, as TOML.
    pub testbed_toml: String,
    /// Workers in the rack.
    pub workers: u32,
    /// The seed of all streams.
    pub seed: u64,
    /// Independent runs a point.
    pub replications: u32,
    /// Measured tasks, each replication, of the point with the fewest; 0 if it is a time instead, which the
    /// warm-up's words say.
    pub tasks: u64,
    /// Those of the point with the most; 0 in studies of before this was told.
    #[serde(default)]
    pub tasks_most: u64,
    /// The warm-up in words, such as `100000 tasks` or `1 s`.
    pub warm_up: String,
    /// How many times slower than the rack that is stood for; none in virtual time.
    pub dilation: Option<u32>,
    /// Anything else that a reader must know, one line each.
    pub notes: Vec<String>,
}

/// One workload under several policies: one picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Unique in the study, such as `exp`.
    pub id: String,
    /// What stands above the picture.
    pub title: String,
    /// The workload as it is written.
    pub workload: String,
    /// The classes of tasks, in the workload's order.
    pub classes: Vec<Class>,
    /// The rate at which every worker would be busy all the time.
    pub capacity_per_s: f64,
    /// One for each policy and source.
    pub series: Vec<Series>,
    /// Numbers of the paper that belong into the picture.
    pub paper: Vec<PaperCurve>,
}

/// A class of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its name in the workload.
    pub name: String,
    /// Its share of all tasks.
    pub share: f64,
    /// The mean service time.
    pub mean_service_ns: f64,
}

/// One policy's points, in the order of their offered rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The policy as it is written, such as `rain:2`.
    pub policy: String,
    /// What the legend says; the policy, unless that does not tell it from another series.
    pub label: String,
    /// How types were shared out over workers, such as `14 + 18`; none if all share all.
    pub slices: Option<String>,
    /// Where the numbers come from.
    pub source: Source,
    pub points: Vec<Point>,
}

/// Where a series' numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Virtual time.
    Simulator,
    /// Real packets.
    Live,
}

/// One policy under one offered rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Tasks offered per second.
    pub offered_per_s: f64,
    /// The same over the panel's capacity.
    pub load: f64,
    /// Tasks replied to per second.
    pub throughput_per_s: Estimate,
    /// Whether the backlog stayed bounded.
    pub sustained: Sustained,
    /// What to know of its intervals, such as that the runs are too short; empty if nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caveat: String,
    pub overall: Times,
    /// The classes that had tasks, in the panel's order.
    pub classes: Vec<ClassTimes>,
    /// What stands behind the times.
    pub gauges: Gauges,
    /// Events, of all replications together.
    pub counts: Counts,
    /// The first replication's depths over time, where they are found at run time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depths: Vec<Depths>,
}

/// Whether a point's load can be kept up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sustained {
    /// It can.
    pub holds: bool,
    /// What tells, such as `backlog grows by 1,200 tasks/s`; empty if there is nothing to say.
    pub why: String,
}

/// One class's times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassTimes {
    pub name: String,
    /// Its tasks, of all replications together.
    pub tasks: u64,
    pub times: Times,
}

/// Numbers of the paper, or of ours to hold against, that can stand in a panel's picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperCurve {
    /// The paper's name for it, such as `R2P2-SW`.
    pub label: String,
    /// The [`Series::label`] that it stands beside; it takes that one's colour.
    pub series: Option<String>,
    /// What its numbers are.
    pub metric: Metric,
    /// The class they are of; all tasks if there is none.
    pub class: Option<String>,
    /// Where the paper says so, such as `Rain §5.2, Figure 6(a), text`.
    pub place: String,
    /// Whether no paper has them, and they are ours. Studies of before this was told read as the papers'.
    #[serde(default)]
    pub ours: bool,
    /// Offered rate and value.
    pub points: Vec<PaperPoint>,
}

/// A number of the paper at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperPoint {
    /// Tasks offered per second.
    pub offered_per_s: f64,
    /// The value, in its metric's unit.
    pub value: f64,
}

impl Sustained {
    /// The load can be kept up.
    pub const fn yes() -> Self {
        Self { holds: true, why: String::new() }
    }

    /// The load cannot be kept up.
    pub fn no(why: impl Into<String>) -> Self {
        Self { holds: false, why: why.into() }
    }
}

impl Point {
    /// The times of a class, or of all tasks; none if the class had no task.
    pub fn times(&self, class: Option<&str>) -> Option<&Times> {
        match class {
            None => Some(&self.overall),
            Some(name) => self.classes.iter().find(|class| class.name == name).map(|class| &class.times),
        }
    }
}
