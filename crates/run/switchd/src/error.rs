//! Errors of a rack's switch and controller, each with what the caller can do about it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use sluice_etcd::EtcdError;
use sluice_net::NetError;
use sluice_rpc::RpcError;
use sluice_system::{Attempt, advice};

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SwitchdError {
    /// An error of the sockets, threads or settings below.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A gRPC peer cannot be reached, or refused: the text says what to do.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// etcd cannot be used: the text says what to do.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// The switch's thread has ended, and nothing was done.
    #[error("the switch has stopped, so nothing was done: start it again")]
    SwitchStopped,
    /// The switch cannot store its epoch, so it must not start: give it a folder that it can write.
    #[error("state folder {}: cannot {doing}: {why}; {} (--state)", .path.display(), advice(Attempt::Write, .why))]
    StateFolder { path: PathBuf, doing: &'static str, why: io::Error },
    /// Another switch uses the folder: stop that switch, or choose another folder.
    #[error("state folder {}: another switch is using it; stop that one, or give another folder (--state of `sluice switch`, --out of `sluice up`)", path.display())]
    StateFolderTaken { path: PathBuf },
    /// Anyone who reaches the address could control the rack: configure TLS, or serve this machine only.
    #[error(
        "cannot serve gRPC on {at} without TLS: hosts beyond this machine could read and change everything; give a certificate and a key with --tls, and the authority of those who may call with --client-ca, or listen on 127.0.0.1"
    )]
    Insecure {
        /// The address asked for.
        at: SocketAddr,
    },
    /// TLS without client certificates admits everyone: say which authority to trust, or serve this machine
    /// only.
    #[error(
        "cannot serve gRPC on {at} to callers that show no certificate: anybody who reaches it could change everything; give the authority that signs the certificates of your hosts and operators with --client-ca, or listen on 127.0.0.1"
    )]
    OpenToAll {
        /// The address asked for.
        at: SocketAddr,
    },
    /// The plan is invalid: correct it.
    #[error("{0}")]
    Plan(#[from] sluice_control::PlanError),
}

impl SwitchdError {
    /// Whether the caller's input is at fault.
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::Net(why) => why.is_bad_input(),
            Self::Rpc(why) => why.is_bad_input(),
            Self::Etcd(why) => why.is_bad_input(),
            Self::SwitchStopped => false,
            _ => true,
        }
    }
}
