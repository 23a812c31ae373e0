//! Errors of gRPC calls, each with what the caller can do about it.

use std::io;

use sluice_system::{Attempt, advice};
use sluice_units::shown;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// A certificate or key is unusable: correct it.
    #[error("TLS: {what}: {why}")]
    Tls {
        /// What it is, and the file that it came from.
        what: String,
        /// What is wrong with the certificate or key.
        why: String,
    },
    /// The text is not the address of a gRPC service: correct it.
    #[error(
        "address `{}`: {}; write it as HOST:PORT, http://HOST:PORT or https://HOST:PORT",
        shown(.text), shown(.why)
    )]
    Address {
        text: String,
        /// What is wrong with the text.
        why: String,
    },
    /// The service cannot be reached, or refused the call: try again, or follow the advice in the text.
    #[error("{what} at {url}: {why}")]
    Call {
        what: &'static str,
        url: String,
        /// Why the call failed.
        why: String,
    },
    /// A thread or its runtime could not be started: follow the advice in the text.
    #[error("cannot start the thread {name}: {why}; {}", advice(Attempt::Thread, .why))]
    Thread { name: &'static str, why: io::Error },
}

impl RpcError {
    /// Whether the caller's input is at fault.
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Tls { .. } | Self::Address { .. })
    }
}
