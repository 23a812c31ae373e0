//! What a study found out, as one value: `schemas/study.v1.json` describes its JSON.
//!
//! A study has panels (a workload each), a panel has series (a policy each), a series has points (an offered rate
//! each). Beside them stand the paper's numbers with a verdict each, paired comparisons, and searches for the most
//! that a limit allows. Times are nanoseconds, rates tasks per second, slowdowns plain ratios. Nothing here depends on
//! the machine or the clock: one seed and one commit give the same bytes. Every number is finite.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// The testbed's name.
    pub testbed: String,
    /// The testbed in full, as TOML.
    pub testbed_toml: String,
    /// Workers in the rack.
    pub workers: u32,
    /// The seed of all streams.
    pub seed: u64,
    /// Independent runs a point.
    pub replications: u32,
    /// Measured tasks, each replication.
    pub tasks: u64,
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
    /// The points.
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
    /// All tasks.
    pub overall: Times,
    /// The classes that had tasks, in the panel's order.
    pub classes: Vec<ClassTimes>,
    /// What stands behind the times.
    pub gauges: Gauges,
    /// Events, of all replications together.
    pub counts: Counts,
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
    /// The class's name.
    pub name: String,
    /// Its tasks, of all replications together.
    pub tasks: u64,
    /// Its times.
    pub times: Times,
}

/// Latency and the three slowdowns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// From the intended send time to the reply.
    pub latency_ns: Spread,
    /// Latency over the task's own service time.
    pub slowdown: Spread,
    /// Latency over the mean service time of the task's class.
    pub slowdown_type_mean: Spread,
    /// Waits in switch and worker + service, over service.
    pub slowdown_server: Spread,
}

/// Where a distribution lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The mean.
    pub mean: Estimate,
    /// The median.
    pub p50: Estimate,
    /// Nine tenths are below.
    pub p90: Estimate,
    /// 99 % are below.
    pub p99: Estimate,
    /// 99.9 % are below.
    pub p999: Estimate,
}

/// A value and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// How the interval was found.
    pub method: Method,
}

/// How an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Student's t over independent replications.
    Replications,
    /// Student's t over replications' differences on the same tasks.
    Paired,
    /// Student's t over batches of one run.
    Batches,
    /// Order statistics of one run.
    OrderStatistics,
    /// The rates between which a search ended.
    Bracket,
    /// There is none: one run, or a number that is known.
    None,
}

/// Means over time and over the measured tasks, of all replications; none where it was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gauges {
    /// Tasks that wait in the switch.
    pub switch_queue_mean: Option<f64>,
    /// The most of them at once.
    pub switch_queue_max: Option<f64>,
    /// Tasks that wait at a worker, without the one in service.
    pub worker_queue_mean: Option<f64>,
    /// Share of a worker's time without a task.
    pub idle_share: Option<f64>,
    /// Recirculations a task.
    pub recirculations_per_task: Option<f64>,
    /// Share of the recirculation bandwidth in use.
    pub recirculation_utilization: Option<f64>,
    /// Packets a task, of all kinds and on all links.
    pub packets_per_task: Option<f64>,
    /// Polls that came back empty, a task.
    pub empty_polls_per_task: Option<f64>,
}

/// Events in the measured span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Tasks that were due.
    pub sent: u64,
    /// Tasks that were answered.
    pub replied: u64,
    /// Tasks of which no attempt can have run.
    pub refused: u64,
    /// Tasks that may have run.
    pub unknown: u64,
    /// Tasks that admission held back at the client.
    pub pushed_back: u64,
    /// Attempts after a task's first.
    pub retries: u64,
    /// Packets that the network lost.
    pub lost_packets: u64,
    /// Passes through the switch's pipeline.
    pub passes: u64,
    /// Those of the passes that were recirculations.
    pub recirculations: u64,
    /// Packets on all links.
    pub packets: u64,
    /// Polls by workers.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
}

/// A number that a time's distribution gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// What is measured.
    pub measure: Measure,
    /// Which part of its distribution.
    pub part: Part,
}

/// A time, or a ratio of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// [`Times::latency_ns`].
    LatencyNs,
    /// [`Times::slowdown`].
    Slowdown,
    /// [`Times::slowdown_type_mean`].
    SlowdownTypeMean,
    /// [`Times::slowdown_server`].
    SlowdownServer,
}

/// A part of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// [`Spread::mean`].
    Mean,
    /// [`Spread::p50`].
    P50,
    /// [`Spread::p90`].
    P90,
    /// [`Spread::p99`].
    P99,
    /// [`Spread::p999`].
    P999,
}

/// Numbers of the paper that can stand in a panel's picture.
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

/// A statement of the paper and what came out here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Unique in the study, such as `p99-rain`.
    pub id: String,
    /// What the paper says, in our words.
    pub claim: String,
    /// Where it says so.
    pub place: String,
    /// The [`Panel::id`] it is about, if it is about one.
    pub panel: Option<String>,
    /// The unit of both numbers.
    pub unit: Unit,
    /// The paper's number; none if it states a shape.
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

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Tasks per second.
    PerS,
    /// A ratio, such as a slowdown.
    Ratio,
    /// A share of one, shown in per cent.
    Share,
    /// Things, such as tasks or workers.
    Count,
}

/// How the paper's statement and ours stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The number comes out.
    Agrees,
    /// The order or the shape comes out, the number does not.
    AgreesInShape,
    /// It does not come out.
    Differs,
    /// The paper does not say enough of the set-up to tell.
    SetUpNotKnown,
    /// The points it needs are not in this run.
    NotMeasured,
}

/// Where a difference comes from, and what shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The cause.
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
    /// The [`Panel::id`].
    pub panel: String,
    /// The one's [`Series::label`].
    pub a: String,
    /// The other's.
    pub b: String,
    /// Tasks offered per second.
    pub offered_per_s: f64,
    /// What is compared; none for the throughput.
    pub metric: Option<Metric>,
    /// The class it is of; all tasks if there is none.
    pub class: Option<String>,
    /// The one's value.
    pub of_a: Estimate,
    /// The other's.
    pub of_b: Estimate,
    /// B less A.
    pub difference: Estimate,
    /// The difference is more than chance, and more than is allowed for if something is.
    pub real: bool,
    /// How far apart they may be, as a share of A's value; none if they need not agree.
    pub allowed: Option<f64>,
    /// Where the difference comes from, if that was looked for.
    pub cause: Option<Cause>,
}

/// The highest rate at which a policy keeps a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The [`Panel::id`].
    pub panel: String,
    /// The [`Series::label`] or policy.
    pub policy: String,
    /// What is limited.
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

impl Estimate {
    /// A value without an interval.
    pub const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value, method: Method::None }
    }

    /// Whether there is an interval to show.
    pub fn has_interval(&self) -> bool {
        self.method != Method::None
    }
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

impl Times {
    /// The distribution of a measure.
    pub const fn spread(&self, measure: Measure) -> &Spread {
        match measure {
            Measure::LatencyNs => &self.latency_ns,
            Measure::Slowdown => &self.slowdown,
            Measure::SlowdownTypeMean => &self.slowdown_type_mean,
            Measure::SlowdownServer => &self.slowdown_server,
        }
    }

    /// The number that a metric names.
    pub const fn get(&self, metric: Metric) -> Estimate {
        self.spread(metric.measure).get(metric.part)
    }
}

impl Spread {
    /// A part of the distribution.
    pub const fn get(&self, part: Part) -> Estimate {
        match part {
            Part::Mean => self.mean,
            Part::P50 => self.p50,
            Part::P90 => self.p90,
            Part::P99 => self.p99,
            Part::P999 => self.p999,
        }
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

impl Metric {
    /// The 99th percentile of the latency, which most of the papers' pictures show.
    pub const P99: Self = Self { measure: Measure::LatencyNs, part: Part::P99 };

    /// The unit of its numbers.
    pub const fn unit(self) -> Unit {
        self.measure.unit()
    }
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::LatencyNs, Self::Slowdown, Self::SlowdownTypeMean, Self::SlowdownServer];

    /// The name that files and flags use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LatencyNs => "latency_ns",
            Self::Slowdown => "slowdown",
            Self::SlowdownTypeMean => "slowdown_type_mean",
            Self::SlowdownServer => "slowdown_server",
        }
    }

    /// The unit of its numbers.
    pub const fn unit(self) -> Unit {
        match self {
            Self::LatencyNs => Unit::Ns,
            Self::Slowdown | Self::SlowdownTypeMean | Self::SlowdownServer => Unit::Ratio,
        }
    }
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mean, Self::P50, Self::P90, Self::P99, Self::P999];

    /// The name that files and flags use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p999",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees",
            Self::AgreesInShape => "agrees in shape",
            Self::Differs => "differs",
            Self::SetUpNotKnown => "set-up not known",
            Self::NotMeasured => "not measured",
        })
    }
}
