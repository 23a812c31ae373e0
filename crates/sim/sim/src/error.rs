//! The errors of simulations, each with what helps.

use sluice_testbed::TestbedError;
use sluice_units::shown;
use sluice_workload::WorkloadError;
use thiserror::Error;

/// Why a point cannot be simulated.
#[derive(Debug, Error)]
pub enum SimError {
    /// The testbed cannot be read or simulated: correct what the error names.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// No policy has this name, or its settings are wrong: use one that the error names.
    #[error("policy `{}`: {}", shown(.text), shown(.why))]
    Policy {
        text: String,
        /// What is wrong, and what to write.
        why: String,
    },
    /// The settings do not fit together: change what the error names.
    #[error("{}", shown(.0))]
    Point(String),
    /// The workload is wrong: correct it.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The run was told to stop.
    #[error("stopped before the end")]
    Stopped,
}
