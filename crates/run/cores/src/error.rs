//! Errors of a server of many cores.

use std::io;

use sluice_host::orchestrator::{OrchestratorError, OrchestratorSetupError};
use sluice_system::{Attempt, advice};
use thiserror::Error;

/// Why a server of many cores cannot be built, or why a request was refused.
#[derive(Debug, Error)]
pub enum CoresError {
    /// The NIC's logic rejects the settings.
    #[error(transparent)]
    Setup(#[from] OrchestratorSetupError),
    /// The NIC's logic refuses a request or a call.
    #[error(transparent)]
    Refused(#[from] OrchestratorError),
    /// A ring is full. This is a bug, since the dispatcher never gives a core more than the ring holds.
    #[error("a core's ring holds {0} requests and takes no more before one comes back")]
    RingFull(u64),
    /// All places are taken.
    #[error("{0} requests are here, as many as may be: send fewer, or allow more")]
    Full(usize),
    /// There is no memory for a coroutine's stack.
    #[error("no stack of {bytes} bytes for a coroutine: {why}; {}", advice(Attempt::Thread, .why))]
    Stack {
        /// The size of the stack, in bytes.
        bytes: usize,
        /// The system's error.
        why: io::Error,
    },
    /// The system has no thread left.
    #[error("no thread for cores: {0}; {helps}", helps = advice(Attempt::Thread, .0))]
    Thread(io::Error),
}
