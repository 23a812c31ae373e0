//! Errors of serving metrics, each with what the caller can do about it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use sluice_system::{Attempt, advice};

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The address is in use, not one of this machine's, or not permitted: follow the text.
    #[error("metrics cannot be served on {at}: {why}; {}", advice(Attempt::Listen, .why))]
    Bind {
        /// The address asked for.
        at: SocketAddr,
        why: io::Error,
    },
    /// The socket that reports to a launcher cannot be made: follow the text.
    #[error("metrics cannot be reported at {}: {why}; {}", .path.display(), advice(Attempt::Share, .why))]
    Report { path: PathBuf, why: io::Error },
    /// A thread or its runtime cannot be started: follow the text.
    #[error("cannot start the thread sluice-metrics: {why}; {}", advice(Attempt::Thread, .why))]
    Thread { why: io::Error },
}

impl MetricsError {
    /// Whether the caller's input is at fault.
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Thread { .. })
    }
}
