//! The text that Prometheus reads: OpenMetrics, or the older form for readers that take no other.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{self, DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::families::{MetricFamily, MetricKind};
use crate::measured::{MetricSample, MetricValue};

/// A form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text form 0.0.4.
    Plain,
}

impl TextForm {
    /// The form for a request with this `Accept` header: the plain one for a reader that takes some kind of
    /// text and does not name OpenMetrics, as browsers do; OpenMetrics for all others.
    pub fn accepted(accept: Option<&str>) -> Self {
        let accept = accept.unwrap_or_default().to_ascii_lowercase();
        let takes_text = accept.contains("text/") && !accept.contains("application/openmetrics-text");
        if takes_text { Self::Plain } else { Self::OpenMetrics }
    }

    /// The text's media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Values as text. Of two values of one metric with the same labels, the first counts; a gauge that is no
/// number is left out.
///
/// # Errors
/// Only if the library cannot write into a string, which it can.
pub fn written(values: Vec<MetricSample>, form: TextForm) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ByFamily(Mutex::new(by_family(values)))));
    let mut text = String::new();
    match form {
        TextForm::OpenMetrics => encoding::text::encode(&mut text, &registry)?,
        TextForm::Plain => encoding::prometheus_text::encode(&mut text, &registry)?,
    }
    Ok(text)
}

type Labels = Vec<(String, String)>;
type Families = BTreeMap<MetricFamily, BTreeMap<Labels, MetricValue>>;

fn by_family(values: Vec<MetricSample>) -> Families {
    let mut families = Families::new();
    for value in values {
        let is_number = !matches!(value.value(), MetricValue::Level(level) if !level.is_finite());
        if is_number && value.metric().kind() == kind_of(value.value()) {
            let family = families.entry(value.metric()).or_default();
            family.entry(value.labels().to_vec()).or_insert_with(|| value.value().clone());
        }
    }
    families
}

const fn kind_of(value: &MetricValue) -> MetricKind {
    match value {
        MetricValue::Count(_) => MetricKind::Counter,
        MetricValue::Level(_) => MetricKind::Gauge,
        MetricValue::Spans(_) => MetricKind::Histogram,
    }
}

/// The values of one scrape, each family once.
#[derive(Debug)]
struct ByFamily(Mutex<Families>);

impl Collector for ByFamily {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let families = self.0.lock().map_err(|_| fmt::Error)?;
        for (metric, values) in families.iter() {
            let (name, unit) = metric.name_and_unit();
            let unit = unit.map(unit_of);
            let kind = match metric.kind() {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram => MetricType::Histogram,
            };
            let mut family = encoder.encode_descriptor(name, metric.help(), unit.as_ref(), kind)?;
            for (labels, value) in values {
                if labels.is_empty() {
                    encode(&mut family, value)?;
                } else {
                    encode(&mut family.encode_family(labels)?, value)?;
                }
            }
        }
        Ok(())
    }
}

fn unit_of(unit: &str) -> Unit {
    match unit {
        "seconds" => Unit::Seconds,
        "bytes" => Unit::Bytes,
        other => Unit::Other(other.to_owned()),
    }
}

fn encode(to: &mut MetricEncoder<'_>, value: &MetricValue) -> fmt::Result {
    match value {
        MetricValue::Count(count) => to.encode_counter::<NoLabelSet, _, f64>(count, None),
        MetricValue::Level(level) => to.encode_gauge(level),
        MetricValue::Spans(spans) => {
            to.encode_histogram::<NoLabelSet>(spans.sum_s(), spans.count(), &spans.buckets(), None)
        }
    }
}
