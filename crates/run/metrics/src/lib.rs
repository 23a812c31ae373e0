//! Metrics for Prometheus: what a process counts, read when it is scraped.
//!
//! All metrics stand in one table ([`MetricFamily`]). A [`MetricSource`] gives values of some of them at the
//! moment of a scrape; the packet threads only keep counting as they do, in words that other threads read.
//! [`MetricsPort`] serves the text over HTTP. A process that a launcher started gives its values to the
//! launcher through a Unix socket ([`ReportSocket`]), and the launcher serves those of all its processes
//! from one port, each with the label `process` ([`ReportedProcesses`]).
//!
//! Left out: TLS and passwords. What is served is not secret, but who may reach the address can read it.
#![forbid(unsafe_code)]

mod error;
mod families;
mod measured;
mod port;
mod report;
mod serving;
mod source;
mod spans;
mod text;
mod threads;

pub use error::MetricsError;
pub use families::{MetricFamily, MetricKind};
pub use measured::{MetricSample, MetricValue};
pub use port::MetricsPort;
pub use report::{ReportSocket, ReportedProcesses};
pub use serving::{MetricsOutlets, ServedMetrics};
pub use source::{Collecting, MetricSource, labelled};
pub use spans::{PublishedSpans, SPAN_BUCKETS, SpanTally, SpanValue};
pub use text::{TextForm, written};
pub use threads::{CountRow, ThreadMeter, ThreadMetrics};
