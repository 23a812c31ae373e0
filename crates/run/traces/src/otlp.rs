//! The messages of OTLP that a span needs, by the numbers of their fields. What they leave out is optional.
//! A test decodes them with OpenTelemetry's own crate.

use prost::Message;

use crate::span::{AttributeValue, SpanKind, TaskSpan};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

/// What a collector answers: what it did not take.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportAnswer {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(crate) rejected: i64,
    #[prost(string, tag = "2")]
    pub(crate) why: String,
}

/// What a collector answers that takes nothing.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportRefusal {
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<SpanResource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SpanResource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<SpanScope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<OtlpSpan>,
}

#[derive(Clone, PartialEq, Message)]
struct SpanScope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpSpan {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_ns: u64,
    #[prost(fixed64, tag = "8")]
    end_ns: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    events: Vec<SpanEvent>,
    #[prost(message, optional, tag = "15")]
    status: Option<SpanStatus>,
}

#[derive(Clone, PartialEq, Message)]
struct SpanEvent {
    #[prost(fixed64, tag = "1")]
    at_ns: u64,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct SpanStatus {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "OtlpValue", tags = "1, 3")]
    value: Option<OtlpValue>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum OtlpValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// The code of a failed span's status.
const FAILED: i32 = 2;

impl SpanResource {
    /// The process whose spans these are.
    pub(crate) fn of(process: &str) -> Self {
        let part = process.split(' ').next().unwrap_or_default();
        Self {
            attributes: vec![
                key_value("service.name", format!("sluice-{part}").into()),
                key_value("service.instance.id", process.into()),
                key_value("service.version", env!("CARGO_PKG_VERSION").into()),
                key_value("process.pid", i64::from(std::process::id()).into()),
            ],
        }
    }
}

/// The request that brings these spans of one process to a collector.
pub(crate) fn request(resource: &SpanResource, spans: impl Iterator<Item = TaskSpan>) -> Vec<u8> {
    let scope = SpanScope { name: "sluice".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let scopes = vec![ScopeSpans { scope: Some(scope), spans: spans.map(span).collect() }];
    let of = ResourceSpans { resource: Some(resource.clone()), scopes };
    ExportRequest { resource_spans: vec![of] }.encode_to_vec()
}

fn span(of: TaskSpan) -> OtlpSpan {
    OtlpSpan {
        trace_id: of.trace.bytes(),
        span_id: of.id.to_be_bytes().to_vec(),
        parent_span_id: of.parent.map_or_else(Vec::new, |parent| parent.to_be_bytes().to_vec()),
        name: of.name.to_owned(),
        kind: match of.kind {
            SpanKind::Internal => 1,
            SpanKind::Server => 2,
            SpanKind::Client => 3,
        },
        start_ns: of.from_ns,
        end_ns: of.to_ns,
        attributes: of.attributes.into_iter().map(|(key, value)| key_value(key, value)).collect(),
        events: of
            .events
            .into_iter()
            .map(|(at_ns, name)| SpanEvent { at_ns, name: name.to_owned() })
            .collect(),
        status: of.failure.map(|message| SpanStatus { message, code: FAILED }),
    }
}

fn key_value(key: &str, value: AttributeValue) -> KeyValue {
    let value = match value {
        AttributeValue::Number(number) => OtlpValue::Number(number),
        AttributeValue::Text(text) => OtlpValue::Text(text),
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}
