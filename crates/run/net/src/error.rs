//! What can go wrong with the outside world, and what the caller can do about it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sluice_netem::FaultRatesError;
use sluice_rpc::RpcError;
use sluice_system::{Attempt, advice};

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The address is taken, not one of this machine's, or not for this user: do as it says.
    #[error("cannot listen on {at}: {why}; {}", advice(Attempt::Listen, .why))]
    Bind {
        /// The address asked for.
        at: SocketAddr,
        why: io::Error,
    },
    /// The socket or its waker stopped working: give up on it.
    #[error("{what} failed on a UDP socket: {why}; {}", advice(Attempt::Descriptor, .why))]
    Socket {
        /// The call that failed.
        what: &'static str,
        why: io::Error,
    },
    /// The text does not say which faults to inject: correct it.
    #[error(transparent)]
    Faults(#[from] FaultRatesError),
    /// The thread could not be pinned: choose another core, or none.
    #[error("cannot pin a thread to core {core} of 0 to {last}: {why}; {}", advice(Attempt::Pin, .why))]
    Pin {
        /// The core asked for.
        core: usize,
        /// The last core that this process may expect.
        last: usize,
        why: io::Error,
    },
    /// The controller cannot be called so, or not now: do as it says.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// Memory that workers share cannot be had: give a folder with room, on a file system in memory.
    #[error("shared memory {}: cannot {doing}: {why}; {}", .path.display(), advice(Attempt::Share, .why))]
    Memory { path: PathBuf, doing: &'static str, why: io::Error },
    /// A region cannot be registered: do as it says.
    #[error("cannot register memory: {0}")]
    Region(#[from] sluice_host::rdma::RdmaError),
    /// A server of many cores cannot be had so, or has stopped: do as it says.
    #[error("a server of many cores: {0}")]
    Cores(#[from] sluice_cores::CoresError),
    /// The same, for what it has no use for: leave that out.
    #[error("a server of many cores takes no {what}: {why}; leave it out, or run workers of one core")]
    NotForCores {
        /// What was asked for.
        what: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// The adaptive agent cannot start: do as it says.
    #[error("adaptive agent: {0}")]
    Agent(#[from] sluice_host::agent::AgentError),
    /// The capture cannot be written: give another file.
    #[error("cannot write the capture {}: {why}; {}", .path.display(), advice(Attempt::Write, .why))]
    Capture { path: PathBuf, why: io::Error },
    /// There is no way to a receiver: correct its address, or this machine's routes.
    #[error("no way to {to}: {why}; {}", advice(Attempt::Route, .why))]
    NoWay { to: SocketAddr, why: io::Error },
    /// The ends of a path are of two families: give both of one.
    #[error("cannot send from {from} to {to}: give two addresses of IPv4, or two of IPv6")]
    TwoFamilies { from: SocketAddr, to: SocketAddr },
    /// A sender's pacer cannot be had so: do as it says.
    #[error("the pacer: {why}")]
    Pacer {
        /// What is wrong with its settings.
        why: sluice_host::pacer::PacerError,
    },
    /// Links cannot be looked at: run as root, or without looking.
    #[error("cannot look at this network's links (--on-link): {why}; {}", advice(Attempt::Tap, .why))]
    NoTap { why: io::Error },
    /// A thread or its runtime cannot be started: do as it says.
    #[error("cannot start the thread {name}: {why}; {}", advice(Attempt::Thread, .why))]
    Thread { name: &'static str, why: io::Error },
    /// The kernel has no random bits to give: nothing can be done here.
    #[error("cannot draw random bits from /dev/urandom: {why}; {}", advice(Attempt::Read, .why))]
    Random { why: io::Error },
    /// Others are to send to this address, and cannot: listen on one that they can reach.
    #[error(
        "cannot listen on {at}: others need an address that they can send to; name one of this machine's"
    )]
    Unreachable {
        /// The address asked for.
        at: SocketAddr,
    },
    /// The controller will not have this host: do as it says.
    #[error("the controller refuses: {why}")]
    Refused {
        /// Its reason, and what would help.
        why: String,
    },
    /// No registration in time: see that the controller runs, or wait longer.
    #[error("not registered with {controller} after {:.1} s: {why}; do as that says, or see that a rack runs there", waited.as_secs_f64())]
    NotRegistered {
        /// Where the controller was looked for.
        controller: String,
        /// For how long.
        waited: Duration,
        /// What was last heard.
        why: String,
    },
}

impl NetError {
    /// Whether the caller can make it go away by asking for something else.
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::Rpc(why) => why.is_bad_input(),
            Self::Socket { .. } | Self::Thread { .. } | Self::Random { .. } => false,
            _ => true,
        }
    }
}
