//! Why a gateway cannot start, each with what to do about it.

use std::io;
use std::net::SocketAddr;

use sluice_rpc::RpcError;
use sluice_system::{Attempt, advice};

/// Any failure at a gateway's start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The address is in use, not one of this machine's, or not permitted: follow the text.
    #[error("cannot serve {protocol} on {at}: {why}; {}", advice(Attempt::Listen, .why))]
    Bind {
        protocol: &'static str,
        /// The address asked for.
        at: SocketAddr,
        why: io::Error,
    },
    /// Strangers could send tasks: give certificates, or listen on this machine alone.
    #[error(
        "cannot serve {protocol} on {at} {without}: whoever reaches it could send tasks; give a certificate \
         and a key with --tls, and the authority of those who may send with --client-ca, or listen on \
         127.0.0.1"
    )]
    Open {
        protocol: &'static str,
        /// The address asked for.
        at: SocketAddr,
        /// What is missing.
        without: &'static str,
    },
    /// The certificates cannot be used: follow the text.
    #[error(transparent)]
    Tls(#[from] RpcError),
    /// A method is mapped to a type that the rack does not have: correct the flag, or the plan.
    #[error(
        "--grpc-map: the rack's plan has no type `{}` for {path}: give one of its names, or a number",
        .task_type.escape_debug()
    )]
    UnknownType { path: String, task_type: String },
    /// A method is mapped to two types: leave one out.
    #[error("--grpc-map: {path} is mapped to two types: leave one out")]
    TwoTypes { path: String },
    /// No thread or runtime can be had: follow the text.
    #[error("cannot start the gateway's thread: {why}; {}", advice(Attempt::Thread, .why))]
    Thread { why: io::Error },
    /// The descriptor of the queue of ended tasks cannot be had: follow the text.
    #[error(transparent)]
    Net(#[from] sluice_net::NetError),
}

impl GatewayError {
    /// Whether the caller's input is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Bind { .. } | Self::Open { .. } | Self::UnknownType { .. } | Self::TwoTypes { .. } => true,
            Self::Tls(why) => why.is_bad_input(),
            Self::Thread { .. } => false,
            Self::Net(why) => why.is_bad_input(),
        }
    }
}
