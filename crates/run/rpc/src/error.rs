//! What can go wrong with a gRPC call, and what the caller can do about it.

use std::io;

use sluice_system::{Attempt, advice};
use sluice_units::shown;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// A certificate or key cannot be used: correct it.
    #[error("TLS: {what}: {why}")]
    Tls {
        /// Which one, and where it came from.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The text does not name a gRPC service that could be called: correct it.
    #[error(
        "address `{}`: {}; write it as HOST:PORT, http://HOST:PORT or https://HOST:PORT",
        shown(.text), shown(.why)
    )]
    Address {
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The other side of a gRPC call cannot be reached, or said no: try again, or do as it says.
    #[error("{what} at {url}: {why}")]
    Call {
        what: &'static str,
        url: String,
        /// What came of it.
        why: String,
    },
    /// A thread or its runtime cannot be started: do as it says.
    #[error("cannot start the thread {name}: {why}; {}", advice(Attempt::Thread, .why))]
    Thread { name: &'static str, why: io::Error },
}

impl RpcError {
    /// Whether the caller can make it go away by asking for something else.
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Tls { .. } | Self::Address { .. })
    }
}
