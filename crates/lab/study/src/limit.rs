//! Metrics and limits in their written form: `p99`, `slowdown_p99`, `get.p99<100us`.

use std::fmt;

use sluice_outcome::study::{Measure, Metric, Part, Unit};

use super::error::StudyError;

/// A metric of one class or of all tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClassMetric {
    /// The class; `None` for all tasks.
    pub class: Option<String>,
    pub metric: Metric,
    /// Whether the time is the response: from the arrival at the first switch to the end of service (Horus
    /// §4.1), without the client's way to that switch and without the way back. The metric is then the
    /// latency.
    pub response: bool,
}

/// A metric and its upper bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub wanted: ClassMetric,
    /// The bound, in the metric's unit.
    pub below: f64,
}

impl ClassMetric {
    /// Reads `[CLASS.][MEASURE_]PART`. Without a measure it is the latency; with `response` it is the
    /// latency minus the clients' part of the way.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let (class, metric) = match text.rsplit_once('.') {
            Some((class, metric)) => (Some(class.to_owned()), metric),
            None => (None, text),
        };
        let found = Measure::ALL.into_iter().find_map(|measure| {
            let part = metric.strip_prefix(called(measure)).and_then(|rest| rest.strip_prefix('_'));
            part_named(part?).map(|part| Metric { measure, part })
        });
        let latency = |name| part_named(name).map(|part| Metric { measure: Measure::LatencyNs, part });
        let of_response = metric.strip_prefix(RESPONSE).and_then(latency);
        let response = of_response.is_some();
        match found.or(of_response).or_else(|| latency(metric)) {
            Some(metric) if class.as_deref() != Some("") => Ok(Self { class, metric, response }),
            _ => Err(StudyError::unreadable(
                "metric",
                text,
                "is not known: write p50, p90, p95, p99, p999 or mean, with scheduling_delay_ before it for \
                 the time to the start of service, response_ for that from the first switch to the end of \
                 service, slowdown_, slowdown_type_mean_ or slowdown_server_ for a slowdown, and CLASS. \
                 before that for one class",
            )),
        }
    }
}

impl Limit {
    /// Reads `METRIC<VALUE`. A time's value has a unit (`100us`), a slowdown's has none.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let wrong = |why: &str| StudyError::unreadable("limit", text, why);
        let (metric, value) = text
            .split_once('<')
            .ok_or_else(|| wrong("has no `<`: write it as p99<100us or slowdown_p99<10"))?;
        let wanted = ClassMetric::parse(metric.trim())?;
        let value = value.trim_start_matches('=').trim();
        let below = value_of(value, wanted.metric.unit()).ok_or_else(|| {
            wrong("has no value that fits: write a span such as 100us for a time, a number for a slowdown")
        })?;
        Ok(Self { wanted, below })
    }
}

/// Reads a number in its unit's notation: a span for nanoseconds, `k` and `M` for rates.
pub fn value_of(text: &str, unit: Unit) -> Option<f64> {
    let value = match unit {
        Unit::Ns => sluice_units::span_ns(text).ok()?,
        Unit::PerS => super::numbers::rate(text).ok()?,
        Unit::Ratio | Unit::Share | Unit::Count => text.parse().ok()?,
    };
    (value.is_finite() && value > 0.0).then_some(value)
}

impl fmt::Display for ClassMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(class) = &self.class {
            write!(f, "{class}.")?;
        }
        match self.metric.measure {
            Measure::LatencyNs if self.response => write!(f, "{RESPONSE}{}", self.metric.part.name()),
            Measure::LatencyNs => f.write_str(self.metric.part.name()),
            measure => write!(f, "{}_{}", called(measure), self.metric.part.name()),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wanted.metric.unit() {
            Unit::Ns => write!(f, "{}<{}us", self.wanted, self.below / 1e3),
            _ => write!(f, "{}<{}", self.wanted, self.below),
        }
    }
}

/// The prefix of response metrics.
const RESPONSE: &str = "response_";

/// A measure's name in metrics; the unit follows the value instead.
fn called(measure: Measure) -> &'static str {
    measure.name().trim_end_matches("_ns")
}

fn part_named(name: &str) -> Option<Part> {
    Part::ALL.into_iter().find(|part| part.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_and_written_the_same() {
        for text in [
            "p99",
            "mean",
            "scheduling_delay_p99",
            "slowdown_p99",
            "slowdown_type_mean_p999",
            "get.slowdown_server_p50",
            "scan.p90",
            "p95",
            "slowdown_p95",
            "response_p99",
            "get.response_mean",
        ] {
            assert_eq!(ClassMetric::parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", "p98", "slowdown", "slowdown_", ".p99", "p99.get", "slowness_p99"] {
            assert!(ClassMetric::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_read_and_written_the_same() {
        for text in [
            "p99<100us",
            "response_p99<2000us",
            "slowdown_p99<10",
            "get.p999<1500us",
            "scheduling_delay_p99<40us",
        ] {
            assert_eq!(Limit::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Limit::parse("p99 <= 0.1ms").unwrap().to_string(), "p99<100us");
        for wrong in
            ["p99", "p99<", "p99<100", "p99<-1us", "slowdown_p99<10us", "p99<NaN", "slowdown_p99<NaN"]
        {
            assert!(Limit::parse(wrong).is_err(), "{wrong}");
        }
    }
}
