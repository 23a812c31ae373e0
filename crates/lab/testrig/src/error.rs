//! Errors of hosts that share a thread, each with what the caller can do about it.

use sluice_net::NetError;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestrigError {
    /// An error of the sockets, threads or settings below.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The hosts' thread has ended; a request was not carried out, or only in part.
    #[error("the hosts have stopped, so not all was done that was asked of them: start them again")]
    HostsStopped,
}
