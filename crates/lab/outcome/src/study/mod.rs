//! The result of a study as one value. `schemas/study.v1.json` describes its JSON.
//!
//! A study has panels (one for each workload), a panel has series (one for each policy), a series has
//! points (one for each offered rate). There are also the paper's numbers with a verdict each, paired
//! comparisons, and searches for the highest rate within a limit. Times are nanoseconds, rates are tasks
//! per second, slowdowns are plain ratios. Nothing depends on the machine or the clock: one seed and one
//! commit give the same bytes. Every number is finite.

mod depths;
mod findings;
mod gauges;
mod heat;
mod numbers;

use serde::{Deserialize, Serialize};

pub use depths::SliceDepths;
pub use findings::{Cause, Comparison, Expectation, Search, Verdict};
pub use gauges::{Aggregate, CountDescriptor, Counts, GaugeDescriptor, Gauges};
pub use heat::{Axis, HeatMap};
pub use numbers::{Estimate, Measure, Method, Metric, Part, Spread, Times, Unit};

/// The result of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyOutcome {
    /// The schema that this value follows.
    pub schema: Schema,
    /// The name of the study, as in `sluice reproduce NAME`.
    pub name: String,
    /// The title, one line.
    pub title: String,
    /// The version of Sluice that ran it.
    pub sluice: String,
    /// The commit that ran it.
    pub commit: String,
    /// The settings that all points share.
    pub settings: Settings,
    /// Commands that run the study again; the first one runs all of it.
    pub commands: Vec<String>,
    /// Whether all points that were asked for are present; false after a signal.
    pub complete: bool,
    /// The panels, one for each workload.
    pub panels: Vec<Panel>,
    /// Numbers over two settings, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heats: Vec<HeatMap>,
    /// The paper's statements and our results.
    pub expectations: Vec<Expectation>,
    /// Pairs that were compared on the same tasks.
    pub comparisons: Vec<Comparison>,
    /// The highest rates found within a limit.
    pub searches: Vec<Search>,
}

/// The schema of [`StudyOutcome`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schema {
    /// The only schema so far.
    #[default]
    #[serde(rename = "sluice.study.v1")]
    V1,
}

/// The settings that all points share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The plan's file, if there was one.
    pub plan: Option<String>,
    pub testbed: String,
    /// The whole testbed, as TOML.
    pub testbed_toml: String,
    /// Workers in the rack.
    pub workers: u32,
    /// The seed of all streams.
    pub seed: u64,
    /// Independent runs of each point.
    pub replications: u32,
    /// Measured tasks per replication, at the point with the fewest. 0 if the length is a time, which
    /// `warm_up` then states.
    pub tasks: u64,
    /// Measured tasks per replication, at the point with the most; 0 in older studies without this field.
    #[serde(default)]
    pub tasks_most: u64,
    /// The warm-up in words, such as `100000 tasks` or `1 s`.
    pub warm_up: String,
    /// The machine on which real time was measured; `None` in virtual time, and in older studies without this
    /// field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The factor between measured times and those of the emulated rack; `None` in virtual time.
    pub dilation: Option<u32>,
    /// Further remarks for the reader, one line each.
    pub notes: Vec<String>,
}

/// One workload under several policies: one picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// The panel's id, unique in the study, such as `exp`.
    pub id: String,
    /// The title of the picture.
    pub title: String,
    /// The workload in its written form.
    pub workload: String,
    /// The classes of tasks, in the workload's order.
    pub classes: Vec<Class>,
    /// The rate at which every worker would be busy all the time.
    pub capacity_per_s: f64,
    /// The series, one for each policy and source.
    pub series: Vec<Series>,
    /// The paper's numbers that belong in the picture.
    pub paper: Vec<PaperCurve>,
}

/// A class of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// The class's name in the workload.
    pub name: String,
    /// The class's share of all tasks, 0 to 1.
    pub share: f64,
    /// The mean service time.
    pub mean_service_ns: f64,
    /// The latency within which an answer is in time; `None` if nobody asks for goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ns: Option<u64>,
}

/// The points of one policy, in order of their offered rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The policy in its written form, such as `rain:2`.
    pub policy: String,
    /// The label in the legend: the policy, unless another series has the same.
    pub label: String,
    /// How the workers are divided among types, such as `14 + 18`; `None` if all types share all workers.
    pub slices: Option<String>,
    /// The task classes of each slice, in the order of the slices: `get`, or `get+scan` for classes that
    /// share one. Empty if all share all workers, in live series, and in studies of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slice_names: Vec<String>,
    /// Whether the numbers are simulated or measured.
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
    /// The offered rate divided by the panel's capacity.
    pub load: f64,
    /// Tasks replied to per second.
    pub throughput_per_s: Estimate,
    /// Whether the backlog stayed bounded.
    pub sustained: Sustained,
    /// A warning about the point's intervals, such as that the runs are too short; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caveat: String,
    pub overall: Times,
    /// The classes that had tasks, in the panel's order.
    pub classes: Vec<ClassTimes>,
    /// Numbers beside the times.
    pub gauges: Gauges,
    /// Events in all replications together.
    pub counts: Counts,
    /// The first replication's depths over time, if they are found at run time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depths: Vec<SliceDepths>,
}

/// Whether a point's load is sustainable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sustained {
    /// Whether the load is sustainable.
    pub holds: bool,
    /// The evidence, such as `backlog grows by 1,200 tasks/s`; may be empty.
    pub why: String,
}

/// One class's times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassTimes {
    pub name: String,
    /// The number of its tasks in all replications together.
    pub tasks: u64,
    pub times: Times,
    /// Answers in time, a second; `None` if nobody asks for goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_per_s: Option<Estimate>,
}

/// Numbers of the paper, or our own for comparison, that can stand in a panel's picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperCurve {
    /// The paper's name for the curve, such as `R2P2-SW`.
    pub label: String,
    /// The [`Series::label`] of the corresponding series, whose colour the curve takes.
    pub series: Option<String>,
    /// The metric of the curve's numbers.
    pub metric: Metric,
    /// The class; `None` for all tasks.
    pub class: Option<String>,
    /// The place in the paper, such as `Rain §5.2, Figure 6(a), text`.
    pub place: String,
    /// Whether the numbers are ours and in no paper. Older studies without this field read as the papers'.
    #[serde(default)]
    pub ours: bool,
    /// Pairs of an offered rate and a value.
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
    /// A sustainable load.
    pub const fn yes() -> Self {
        Self { holds: true, why: String::new() }
    }

    /// A load that is not sustainable, and why.
    pub fn no(why: impl Into<String>) -> Self {
        Self { holds: false, why: why.into() }
    }
}

impl Point {
    /// The times of a class, or of all tasks; `None` if the class had no task.
    pub fn times(&self, class: Option<&str>) -> Option<&Times> {
        match class {
            None => Some(&self.overall),
            Some(name) => self.classes.iter().find(|class| class.name == name).map(|class| &class.times),
        }
    }
}
