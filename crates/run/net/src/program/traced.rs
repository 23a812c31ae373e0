//! The flags that say which tasks are traced, and where their spans go.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sluice_rpc::ClientTls;
use sluice_traces::{RunningExporter, TraceEndpoint, Tracer};

use crate::NetError;

/// Which tasks are traced, and where their spans go. Without flags none is.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
pub struct TraceArgs {
    /// Write the way of one task in N as OpenTelemetry spans; with the same N, all processes write about the
    /// same tasks.
    #[arg(long, value_name = "N")]
    pub trace_one_in: Option<NonZeroU32>,
    /// The collector that takes them, by OTLP over HTTP [default: as OTEL_EXPORTER_OTLP_ENDPOINT, else
    /// http://127.0.0.1:4318].
    #[arg(long, value_name = "URL", requires = "trace_one_in")]
    pub otlp: Option<String>,
    /// PEM file of the authority that signed the certificate of an https:// collector, or of that certificate
    /// itself [default: as OTEL_EXPORTER_OTLP_CERTIFICATE].
    #[arg(long, value_name = "FILE", requires = "trace_one_in")]
    pub otlp_ca: Option<PathBuf>,
    /// PEM files of the certificate to show the collector, and of its key.
    #[arg(long, value_names = ["CERTIFICATE", "KEY"], num_args = 2, requires = "otlp_ca")]
    pub otlp_identity: Option<Vec<PathBuf>>,
}

impl TraceArgs {
    /// Starts what sends spans, if tasks are to be traced, and puts it where the options of a client or a
    /// worker have it.
    ///
    /// # Errors
    /// [`NetError::Traces`] for an address that makes no sense, and for certificates that cannot be used;
    /// [`NetError::Rpc`] for a file that cannot be read.
    pub fn start(&self, process: &str, to: &mut Option<Tracer>) -> Result<Option<RunningExporter>, NetError> {
        let Some(one_in) = self.trace_one_in else { return Ok(None) };
        let identity = match self.otlp_identity.as_deref() {
            Some([certificate, key]) => Some((certificate.as_path(), key.as_path())),
            _ => None,
        };
        let tls = self.otlp_ca.as_deref().map(|ca| ClientTls::from_files(ca, identity)).transpose()?;
        let endpoint = TraceEndpoint::found(self.otlp.as_deref(), tls.as_ref())?;
        let (tracer, running) = Tracer::start(endpoint, one_in, process)?;
        *to = Some(tracer);
        Ok(Some(running))
    }

    fn identity_files(&self) -> &[PathBuf] {
        self.otlp_identity.as_deref().unwrap_or_default()
    }

    /// The flags that say the same.
    pub fn flags(&self) -> Vec<String> {
        let one_in = self.trace_one_in.iter().flat_map(|n| ["--trace-one-in".to_owned(), n.to_string()]);
        let at = self.otlp.iter().flat_map(|at| ["--otlp".to_owned(), at.clone()]);
        let files = [("--otlp-ca", self.otlp_ca.as_slice()), ("--otlp-identity", self.identity_files())];
        let files = files.into_iter().filter(|(_, files)| !files.is_empty()).flat_map(|(flag, files)| {
            let files = files.iter().map(|file| file.display().to_string());
            [flag.to_owned()].into_iter().chain(files).collect::<Vec<_>>()
        });
        one_in.chain(at).chain(files).collect()
    }
}
