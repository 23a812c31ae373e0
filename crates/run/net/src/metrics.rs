//! What workers, servers and clients count, for Prometheus. Their threads publish once a batch, and only if
//! somebody wants it: if the options of a [`Worker`](crate::Worker), a [`Client`](crate::Client) or a
//! [`Server`](crate::server::Server) have a value of these types.
//!
//! ```no_run
//! # fn main() -> Result<(), sluice_net::NetError> {
//! use sluice_net::metrics::{ClientMetrics, MetricsOutlets};
//! let metrics = ClientMetrics::default();
//! let mut options = sluice_net::ClientOptions::new("127.0.0.1:7400")?;
//! options.metrics = Some(metrics.clone());
//! let address = "127.0.0.1:9100".parse().expect("an address");
//! let _served = MetricsOutlets::bind(Some(address), None)?.serve(vec![metrics.source()])?;
//! # Ok(())
//! # }
//! ```

pub use crate::client::ClientMetrics;
pub use crate::server::ServerMetrics;
pub use crate::worker::WorkerMetrics;
pub use sluice_metrics::{
    MetricSource, MetricsError, MetricsOutlets, ReportedProcesses, ServedMetrics, labelled,
};
