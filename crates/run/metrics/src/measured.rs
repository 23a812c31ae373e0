//! A value of a metric at one moment.

use serde::{Deserialize, Serialize};

use crate::families::MetricFamily;
use crate::spans::SpanValue;

/// A metric's value, and its labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSample {
    metric: MetricFamily,
    /// Names and values, in the order of the names in [`MetricFamily::labels`].
    labels: Vec<(String, String)>,
    value: MetricValue,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricValue {
    /// A total since the process began.
    Count(u64),
    /// What is so now.
    Level(f64),
    /// A histogram.
    Spans(SpanValue),
}

impl MetricSample {
    /// A total of a counter without labels.
    pub fn count(metric: MetricFamily, count: u64) -> Self {
        Self { metric, labels: Vec::new(), value: MetricValue::Count(count) }
    }

    /// A gauge without labels.
    pub fn level(metric: MetricFamily, level: impl Into<f64>) -> Self {
        Self { metric, labels: Vec::new(), value: MetricValue::Level(level.into()) }
    }

    /// A histogram without labels.
    pub fn spans(metric: MetricFamily, spans: SpanValue) -> Self {
        Self { metric, labels: Vec::new(), value: MetricValue::Spans(spans) }
    }

    /// The same with one more label.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.labels.push((name.to_owned(), value.into()));
        self
    }

    /// Whose value it is.
    pub const fn metric(&self) -> MetricFamily {
        self.metric
    }

    /// Its labels' names and values.
    pub fn labels(&self) -> &[(String, String)] {
        &self.labels
    }

    /// The value.
    pub const fn value(&self) -> &MetricValue {
        &self.value
    }

    /// The same with a label in front of its others.
    #[must_use]
    pub fn below(mut self, name: &str, value: impl Into<String>) -> Self {
        self.labels.insert(0, (name.to_owned(), value.into()));
        self
    }
}
