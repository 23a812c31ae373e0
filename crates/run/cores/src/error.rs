//! What can go wrong with a server of many cores.

use std::io;

use sluice_host::orchestrator::{OrchestratorError, OrchestratorSetupError};
use sluice_system::{Attempt, advice};
use thiserror::Error;

/// Why a server of many cores cannot be set up, or does not take a request.
#[derive(Debug, Error)]
pub enum CoresError {
    /// The logic refuses how it is to be built.
    #[error(transparent)]
    Setup(#[from] OrchestratorSetupError),
    /// The logic refuses a request or a call.
    #[error(transparent)]
    Refused(#[from] OrchestratorError),
    /// A ring takes no more; whoever dispatches keeps to what a core may hold, so that this is a bug.
    #[error("a core's ring holds {0} requests and takes no more before one comes back")]
    RingFull(u64),
    /// As many requests are here as may be.
    #[error("{0} requests are here, as many as may be: send fewer, or allow more")]
    Full(usize),
    /// No stack for a coroutine.
    #[error("no stack of {bytes} bytes for a coroutine: {why}; {}", advice(Attempt::Thread, .why))]
    Stack {
        /// As many as were wanted.
        bytes: usize,
        /// What the system says.
        why: io::Error,
    },
    /// The system has no thread left.
    #[error("no thread for cores: {0}; {helps}", helps = advice(Attempt::Thread, .0))]
    Thread(io::Error),
}
