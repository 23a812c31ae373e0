//! Numbers of a study: times, estimates with their intervals, and metrics, which name a number.

use serde::{Deserialize, Serialize};

/// Latency, scheduling delay and the three slowdowns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// From the intended send time to the reply.
    pub latency_ns: Spread,
    /// From the intended send time to the start of service.
    pub scheduling_delay_ns: Spread,
    /// Latency divided by the task's own service time.
    pub slowdown: Spread,
    /// Latency divided by the mean service time of the task's class.
    pub slowdown_type_mean: Spread,
    /// Waits in switch and worker plus service, divided by service.
    pub slowdown_server: Spread,
}

/// Parts of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    pub mean: Estimate,
    pub p50: Estimate,
    /// 90 % of the values are below.
    pub p90: Estimate,
    /// 95 % of the values are below.
    pub p95: Estimate,
    /// 99 % of the values are below.
    pub p99: Estimate,
    /// 99.9 % of the values are below.
    pub p999: Estimate,
}

/// A value and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// How the interval was found.
    pub method: Method,
    /// Whether the data give no upper bound: then `high` is the largest value seen, and the truth may be
    /// higher.
    #[serde(default, skip_serializing_if = "is_false")]
    pub open_above: bool,
}

/// How an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// From whole replications, which are independent.
    Replications,
    /// From two policies' differences on the same tasks, batch by batch.
    Paired,
    /// From batches: consecutive parts of all replications.
    Batches,
    /// Order statistics of one run.
    OrderStatistics,
    /// The rates between which a search ended.
    Bracket,
    /// No interval: a single run, replications of one trace, or a known number.
    None,
}

/// Names a number of a point's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    pub measure: Measure,
    /// The part of the distribution.
    pub part: Part,
}

/// A time, or a ratio of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// [`Times::latency_ns`].
    LatencyNs,
    /// [`Times::scheduling_delay_ns`].
    SchedulingDelayNs,
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
    /// [`Spread::p95`].
    P95,
    /// [`Spread::p99`].
    P99,
    /// [`Spread::p999`].
    P999,
}

/// The unit of a number.
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
    /// A number of things, such as tasks or workers.
    Count,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Estimate {
    /// The number minus a known constant; never below zero.
    #[must_use]
    pub fn less(self, constant: f64) -> Self {
        let less = |value: f64| (value - constant).max(0.0);
        Self { value: less(self.value), low: less(self.low), high: less(self.high), ..self }
    }

    /// A value without an interval.
    pub const fn exact(value: f64) -> Self {
        Self::between(value, value, value, Method::None)
    }

    /// A value with the ends of its interval.
    pub const fn between(value: f64, low: f64, high: f64, method: Method) -> Self {
        Self { value, low, high, method, open_above: false }
    }

    /// The interval's upper end for comparisons: infinite if the data give no upper bound.
    pub const fn most(&self) -> f64 {
        if self.open_above { f64::INFINITY } else { self.high }
    }

    /// Whether the value has an interval.
    pub fn has_interval(&self) -> bool {
        self.method != Method::None
    }
}

impl Times {
    /// The distribution of a measure.
    pub const fn spread(&self, measure: Measure) -> &Spread {
        match measure {
            Measure::LatencyNs => &self.latency_ns,
            Measure::SchedulingDelayNs => &self.scheduling_delay_ns,
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
            Part::P95 => self.p95,
            Part::P99 => self.p99,
            Part::P999 => self.p999,
        }
    }
}

impl Metric {
    /// The 99th percentile of the latency, which most of the papers' figures show.
    pub const P99: Self = Self { measure: Measure::LatencyNs, part: Part::P99 };

    /// The unit of the metric's numbers.
    pub const fn unit(self) -> Unit {
        self.measure.unit()
    }
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::LatencyNs,
        Self::SchedulingDelayNs,
        Self::Slowdown,
        Self::SlowdownTypeMean,
        Self::SlowdownServer,
    ];

    /// The name that files and flags use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LatencyNs => "latency_ns",
            Self::SchedulingDelayNs => "scheduling_delay_ns",
            Self::Slowdown => "slowdown",
            Self::SlowdownTypeMean => "slowdown_type_mean",
            Self::SlowdownServer => "slowdown_server",
        }
    }

    /// The unit of the measure's numbers.
    pub const fn unit(self) -> Unit {
        match self {
            Self::LatencyNs | Self::SchedulingDelayNs => Unit::Ns,
            Self::Slowdown | Self::SlowdownTypeMean | Self::SlowdownServer => Unit::Ratio,
        }
    }
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Mean, Self::P50, Self::P90, Self::P95, Self::P99, Self::P999];

    /// The name that files and flags use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
        }
    }
}
