//! What can go wrong with the outside world, and what the caller can do about it.

use std::io;
use std::net::SocketAddr;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The address is taken, or not one of this machine's: choose another.
    #[error("cannot listen on {at}: {why}; choose a free port, or 0 to let the kernel choose")]
    Bind {
        /// The address asked for.
        at: SocketAddr,
        /// The kernel's reason.
        why: io::Error,
    },
    /// The socket or its waker stopped working: give up on it.
    #[error("{what} failed on a UDP socket: {why}")]
    Socket {
        /// The call that failed.
        what: &'static str,
        /// The kernel's reason.
        why: io::Error,
    },
    /// The text does not say which faults to inject: correct it.
    #[error("faults `{text}`: {why}; write them as loss=0.01,dup=0.01,reorder=0.05,delay=2ms")]
    Faults {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The thread could not be pinned: choose another core, or none.
    #[error("cannot pin a thread to core {core}: {why}; this process may use cores 0 to {last}")]
    Pin {
        /// The core asked for.
        core: usize,
        /// The last core that this process may expect.
        last: usize,
        /// The kernel's reason.
        why: io::Error,
    },
    /// The switch's thread has ended: nothing was done.
    #[error("the switch has stopped")]
    SwitchStopped,
}
