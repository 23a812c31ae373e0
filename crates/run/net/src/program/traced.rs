//! The flags that say which tasks are traced, and where their spans go.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
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
}

impl TraceArgs {
    /// Starts what sends spans, if tasks are to be traced, and puts it where the options of a client or a
    /// worker have it.
    ///
    /// # Errors
    /// [`NetError::Traces`] for an address that makes no sense.
    pub fn start(&self, process: &str, to: &mut Option<Tracer>) -> Result<Option<RunningExporter>, NetError> {
        let Some(one_in) = self.trace_one_in else { return Ok(None) };
        let endpoint = TraceEndpoint::found(self.otlp.as_deref())?;
        let (tracer, running) = Tracer::start(endpoint, one_in, process)?;
        *to = Some(tracer);
        Ok(Some(running))
    }

    /// The flags that say the same.
    pub fn flags(&self) -> Vec<String> {
        let one_in = self.trace_one_in.iter().flat_map(|n| ["--trace-one-in".to_owned(), n.to_string()]);
        one_in.chain(self.otlp.iter().flat_map(|at| ["--otlp".to_owned(), at.clone()])).collect()
    }
}
