//! Where the collector is: a flag, or OpenTelemetry's own variables.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use http::Uri;
use sluice_rpc::{CallerTls, ClientTls, RpcError};
use sluice_system::{Attempt, advice};
use tokio_rustls::rustls::pki_types::ServerName;

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
    /// The certificates for the collector do not go with its address: follow the text.
    #[error("the collector's address `{}` (from {from}) {why}", .at.escape_debug())]
    Certificates { at: String, from: &'static str, why: &'static str },
    /// A certificate for the collector cannot be used: follow the text.
    #[error("for the collector: {0}")]
    Tls(#[from] RpcError),
    /// The system has no thread left: follow the text.
    #[error("no thread can be started that sends spans: {why}; {}", advice(Attempt::Thread, .why))]
    Thread { why: std::io::Error },
}

/// The address of a collector.
#[derive(Clone, Debug)]
pub struct TraceEndpoint {
    /// The host and its port.
    pub(crate) authority: String,
    pub(crate) path: String,
    /// The certificates, and the name that the collector's must have; `None` without TLS.
    pub(crate) tls: Option<(Arc<CallerTls>, ServerName<'static>)>,
}

impl TracesError {
    /// Whether the caller's input is at fault.
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Endpoint { .. } | Self::Certificates { .. } | Self::Tls(_))
    }
}

/// The variables of OpenTelemetry that name the collector: for spans, and for all that is exported.
const OF_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const OF_ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

impl TraceEndpoint {
    /// The address in a flag; without one that of `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, which is used as it
    /// is, or `OTEL_EXPORTER_OTLP_ENDPOINT`; else this machine's port 4318.
    ///
    /// An address with `https://` needs `tls`, or what `OTEL_EXPORTER_OTLP_CERTIFICATE` names, the
    /// authority's PEM file; `OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE` and `_CLIENT_KEY` name what is shown.
    /// Variables with `OTLP_TRACES_` go before these.
    ///
    /// # Errors
    /// [`TracesError::Endpoint`] for what is no address, [`TracesError::Certificates`] for https without an
    /// authority and for `tls` without https, [`TracesError::Tls`] for files that cannot be used.
    pub fn found(flag: Option<&str>, tls: Option<&ClientTls>) -> Result<Self, TracesError> {
        if let Some(at) = flag {
            return Self::read(at, ("--otlp", true), tls);
        }
        match (variable(OF_TRACES), variable(OF_ALL)) {
            (Some(at), _) => Self::read(&at, (OF_TRACES, false), tls),
            (None, Some(at)) => Self::read(&at, (OF_ALL, true), tls),
            (None, None) => Self::read(DEFAULT, ("the default", true), tls),
        }
    }

    /// Reads an address; `for_all` says that the path for spans is still to be added.
    fn read(
        at: &str,
        (from, for_all): (&'static str, bool),
        tls: Option<&ClientTls>,
    ) -> Result<Self, TracesError> {
        let wrong = |why: String| TracesError::Endpoint { at: at.to_owned(), from, why };
        let unfit = |why| TracesError::Certificates { at: at.to_owned(), from, why };
        let uri: Uri = at.parse().map_err(|why| wrong(format!("is no URL ({why})")))?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("does not begin with http:// or https://".to_owned())),
        };
        let Some(host) = uri.host() else { return Err(wrong("has no host".to_owned())) };
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let before = uri.path().trim_end_matches('/');
        // Many write the whole address where the one for all signals is wanted.
        let is_whole = !for_all || before.ends_with(PATH);
        let path = if is_whole { uri.path().to_owned() } else { format!("{before}{PATH}") };
        let authority = format!("{host}:{port}");
        if !is_secure {
            let unused = tls.map(|_| unfit("asks for no TLS: with --otlp-ca, write it with https://"));
            return unused.map_or(Ok(Self { authority, path, tls: None }), Err);
        }
        let of_variables = if tls.is_none() { variables_tls()? } else { None };
        let tls = tls.or(of_variables.as_ref()).ok_or_else(|| {
            unfit(
                "asks for TLS: give the PEM file of the authority that signed the collector's certificate \
                 with --otlp-ca",
            )
        })?;
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|why| wrong(format!("has no usable host ({why})")))?;
        Ok(Self { authority, path, tls: Some((Arc::new(tls.renewed()?), name)) })
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The certificates that OpenTelemetry's variables name.
fn variables_tls() -> Result<Option<ClientTls>, RpcError> {
    let file = |what: &str| {
        let of_traces = variable(&format!("OTEL_EXPORTER_OTLP_TRACES_{what}"));
        of_traces.or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{what}"))).map(PathBuf::from)
    };
    let identity = file("CLIENT_CERTIFICATE").zip(file("CLIENT_KEY"));
    let identity = identity.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
    file("CERTIFICATE").map(|authority| ClientTls::from_files(&authority, identity)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(at: &str, for_all: bool) -> Result<(String, String), String> {
        let read = TraceEndpoint::read(at, ("--otlp", for_all), None).map_err(|why| why.to_string())?;
        Ok((read.authority, read.path))
    }

    #[test]
    fn an_address_for_all_signals_gets_the_path_for_spans_and_one_for_spans_stays() {
        let of = |authority: &str, path: &str| Ok((authority.to_owned(), path.to_owned()));
        assert_eq!(read("http://10.0.0.1:4318", true), of("10.0.0.1:4318", "/v1/traces"));
        assert_eq!(read("http://collector/otlp/", true), of("collector:80", "/otlp/v1/traces"));
        assert_eq!(read("http://[::1]:4318/spans", false), of("[::1]:4318", "/spans"));
        assert_eq!(read("http://collector/v1/traces", true), of("collector:80", "/v1/traces"));
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_to_do() {
        for wrong in ["", "127.0.0.1:4318", "grpc://a:4317", "http://", "http://a b"] {
            let why = read(wrong, true).expect_err("refused");
            assert!(why.contains("--otlp") && why.contains(DEFAULT) && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn tls_needs_an_authority_and_an_authority_needs_tls() {
        let why = read("https://a:4318", true).expect_err("whom to trust?");
        assert!(why.contains("--otlp-ca") && !why.contains('\n'), "{why}");
        let tls = ClientTls::new(b"");
        let plain = TraceEndpoint::read("http://a:4318", ("--otlp", true), Some(&tls));
        let why = plain.expect_err("it would go in plain text").to_string();
        assert!(why.contains("https://"), "{why}");
        let empty = TraceEndpoint::read("https://a:4318", ("--otlp", true), Some(&tls));
        let why = empty.expect_err("no certificate").to_string();
        assert!(why.contains("for the collector") && why.contains("holds none"), "{why}");
    }
}
