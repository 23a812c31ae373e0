//! The flags of what a process serves: its metrics, and whoever may call it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use sluice_support::units;

/// Where the metrics of a process go.
#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    /// Serve what the process counts for Prometheus on this address, at /metrics.
    #[arg(long, value_name = "ADDRESS", value_parser = units::address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Report the same to `sluice up`, at this Unix socket.
    #[arg(long, hide = true, value_name = "PATH")]
    pub(crate) report_metrics: Option<PathBuf>,
}

/// Who may call what is served.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// PEM files of a certificate and its key: needed, with --client-ca, to serve other machines.
    #[arg(long = "tls", value_names = ["CERTIFICATE", "KEY"], num_args = 2)]
    pub(crate) certificate: Option<Vec<PathBuf>>,
    /// PEM file of the authority of those who may call; what each may do, its certificate says.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) client_ca: Option<PathBuf>,
    /// The network has nobody but this rack: what is served needs no TLS.
    #[arg(long, hide = true)]
    pub(crate) own_network: bool,
}
