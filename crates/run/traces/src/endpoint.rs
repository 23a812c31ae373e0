//! Where the collector is: a flag, or OpenTelemetry's own variables.

use std::env;

use http::Uri;
use sluice_system::{Attempt, advice};

/// OTLP over HTTP at this machine's collector, as OpenTelemetry has it.
const DEFAULT: &str = "http://127.0.0.1:4318";
/// The path for spans below an address that is for all signals.
const PATH: &str = "/v1/traces";

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The address of the collector makes no sense: give another one.
    #[error("the collector's address `{}` (from {from}) {why}; write it as {DEFAULT}", .at.escape_debug())]
    Endpoint { at: String, from: &'static str, why: String },
    /// The system has no thread left: follow the text.
    #[error("no thread can be started that sends spans: {why}; {}", advice(Attempt::Thread, .why))]
    Thread { why: std::io::Error },
}

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEndpoint {
    /// The host and its port.
    pub(crate) authority: String,
    pub(crate) path: String,
}

impl TracesError {
    /// Whether the caller's input is at fault.
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Endpoint { .. })
    }
}

/// The variables of OpenTelemetry that name the collector: for spans, and for all that is exported.
const OF_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const OF_ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

impl TraceEndpoint {
    /// The address in a flag; without one that of `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, which is used as it
    /// is, or `OTEL_EXPORTER_OTLP_ENDPOINT`; else this machine's port 4318.
    ///
    /// # Errors
    /// [`TracesError::Endpoint`] for what is no address, and for https: no spans go through TLS yet.
    pub fn found(flag: Option<&str>) -> Result<Self, TracesError> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(at) = flag {
            return Self::read(at, "--otlp", true);
        }
        match (variable(OF_TRACES), variable(OF_ALL)) {
            (Some(at), _) => Self::read(&at, OF_TRACES, false),
            (None, Some(at)) => Self::read(&at, OF_ALL, true),
            (None, None) => Self::read(DEFAULT, "the default", true),
        }
    }

    /// Reads an address; `for_all` says that the path for spans is still to be added.
    fn read(at: &str, from: &'static str, for_all: bool) -> Result<Self, TracesError> {
        let wrong = |why: String| TracesError::Endpoint { at: at.to_owned(), from, why };
        let uri: Uri = at.parse().map_err(|why| wrong(format!("is no URL ({why})")))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(wrong(
                    "asks for TLS, which spans do not have: use a collector nearby".to_owned(),
                ));
            }
            _ => return Err(wrong("does not begin with http://".to_owned())),
        }
        let (Some(host), port) = (uri.host(), uri.port_u16().unwrap_or(80)) else {
            return Err(wrong("has no host".to_owned()));
        };
        let before = uri.path().trim_end_matches('/');
        let path = if for_all { format!("{before}{PATH}") } else { uri.path().to_owned() };
        Ok(Self { authority: format!("{host}:{port}"), path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(at: &str, for_all: bool) -> Result<(String, String), String> {
        let read = TraceEndpoint::read(at, "--otlp", for_all).map_err(|why| why.to_string())?;
        Ok((read.authority, read.path))
    }

    #[test]
    fn an_address_for_all_signals_gets_the_path_for_spans_and_one_for_spans_stays() {
        let of = |authority: &str, path: &str| Ok((authority.to_owned(), path.to_owned()));
        assert_eq!(read("http://10.0.0.1:4318", true), of("10.0.0.1:4318", "/v1/traces"));
        assert_eq!(read("http://collector/otlp/", true), of("collector:80", "/otlp/v1/traces"));
        assert_eq!(read("http://[::1]:4318/spans", false), of("[::1]:4318", "/spans"));
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_to_do() {
        for wrong in ["", "127.0.0.1:4318", "grpc://a:4317", "http://", "http://a b", "https://a:4318"] {
            let why = read(wrong, true).expect_err("refused");
            assert!(why.contains("--otlp") && why.contains(DEFAULT) && !why.contains('\n'), "{why}");
        }
    }
}
