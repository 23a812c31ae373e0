//! What can go wrong with hosts that share a thread, and what the caller can do about it.

use sluice_net::NetError;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestrigError {
    /// As for any other end of a rack.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The thread of the hosts has ended: what was asked of them was not done, or not all of it.
    #[error("the hosts have stopped, so not all was done that was asked of them: start them again")]
    HostsStopped,
}
