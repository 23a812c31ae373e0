//! Errors of the outside world, each with what the caller can do about it.

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
    /// The address is in use, not one of this machine's, or not permitted: follow the text.
    #[error("cannot listen on {at}: {why}; {}", advice(Attempt::Listen, .why))]
    Bind {
        /// The address asked for.
        at: SocketAddr,
        why: io::Error,
    },
    /// The socket or its waker failed: give up on it.
    #[error("{what} failed on a UDP socket: {why}; {}", advice(Attempt::Descriptor, .why))]
    Socket {
        /// The call that failed.
        what: &'static str,
        why: io::Error,
    },
    /// The text is not a list of fault rates: correct it.
    #[error(transparent)]
    Faults(#[from] FaultRatesError),
    /// The thread could not be pinned: choose another core, or none.
    #[error("cannot pin a thread to core {core} of 0 to {last}: {why}; {}", advice(Attempt::Pin, .why))]
    Pin {
        /// The core asked for.
        core: usize,
        /// The last core that this process may use.
        last: usize,
        why: io::Error,
    },
    /// The controller cannot be called at this address, or not now: follow the text.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// Shared memory cannot be created or opened: give a folder with room, on a file system in memory.
    #[error("shared memory {}: cannot {doing}: {why}; {}", .path.display(), advice(Attempt::Share, .why))]
    Memory { path: PathBuf, doing: &'static str, why: io::Error },
    /// A region cannot be registered: follow the text.
    #[error("cannot register memory: {0}")]
    Region(#[from] sluice_host::rdma::RdmaError),
    /// A server of many cores cannot be built like this, or has stopped: follow the text.
    #[error("a server of many cores: {0}")]
    Cores(#[from] sluice_cores::CoresError),
    /// A server of many cores does not support this setting: leave it out.
    #[error("a server of many cores takes no {what}: {why}; leave it out, or run workers of one core")]
    NotForCores {
        /// The unsupported setting.
        what: &'static str,
        why: &'static str,
    },
    /// Metrics cannot be served: follow the text.
    #[error(transparent)]
    Metrics(#[from] sluice_metrics::MetricsError),
    /// Spans of traced tasks cannot be sent: follow the text.
    #[error(transparent)]
    Traces(#[from] sluice_traces::TracesError),
    /// The adaptive agent cannot start: follow the text.
    #[error("adaptive agent: {0}")]
    Agent(#[from] sluice_host::agent::AgentError),
    /// The capture file cannot be written: give another file.
    #[error("cannot write the capture {}: {why}; {}", .path.display(), advice(Attempt::Write, .why))]
    Capture { path: PathBuf, why: io::Error },
    /// There is no route to a receiver: correct its address, or this machine's routes.
    #[error("no way to {to}: {why}; {}", advice(Attempt::Route, .why))]
    NoWay { to: SocketAddr, why: io::Error },
    /// The two ends of a path have addresses of different families: give both of one family.
    #[error("cannot send from {from} to {to}: give two addresses of IPv4, or two of IPv6")]
    TwoFamilies { from: SocketAddr, to: SocketAddr },
    /// A sender's pacer cannot be built like this: follow the text.
    #[error("the pacer: {why}")]
    Pacer {
        /// What is wrong with the pacer's settings.
        why: sluice_host::pacer::PacerError,
    },
    /// Frames on links cannot be watched: run as root, or without watching.
    #[error("cannot look at this network's links (--on-link): {why}; {}", advice(Attempt::Tap, .why))]
    NoTap { why: io::Error },
    /// A thread or its runtime cannot be started: follow the text.
    #[error("cannot start the thread {name}: {why}; {}", advice(Attempt::Thread, .why))]
    Thread { name: &'static str, why: io::Error },
    /// The kernel returned no random bits: the caller can do nothing.
    #[error("cannot draw random bits from /dev/urandom: {why}; {}", advice(Attempt::Read, .why))]
    Random { why: io::Error },
    /// Other machines cannot send to this address: listen on one that they can reach.
    #[error(
        "cannot listen on {at}: others need an address that they can send to; name one of this machine's"
    )]
    Unreachable {
        /// The address asked for.
        at: SocketAddr,
    },
    /// The controller refuses this host: follow the text.
    #[error("the controller refuses: {why}")]
    Refused {
        /// The controller's reason, and what would help.
        why: String,
    },
    /// The host was not registered in time: check that the controller runs, or wait longer.
    #[error("not registered with {controller} after {:.1} s: {why}; do as that says, or see that a rack runs there", waited.as_secs_f64())]
    NotRegistered {
        /// The address of the controller.
        controller: String,
        /// For how long.
        waited: Duration,
        /// The last answer or error.
        why: String,
    },
}

impl NetError {
    /// Whether the caller's input is at fault.
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::Rpc(why) => why.is_bad_input(),
            Self::Metrics(why) => why.is_bad_input(),
            Self::Traces(why) => why.is_bad_input(),
            Self::Socket { .. } | Self::Thread { .. } | Self::Random { .. } => false,
            _ => true,
        }
    }
}
