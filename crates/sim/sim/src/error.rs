//! What can be wrong with a simulation, each with what helps.

use sluice_testbed::TestbedError;
use sluice_units::shown;
use sluice_workload::WorkloadError;
use thiserror::Error;

/// Why a point cannot be simulated.
#[derive(Debug, Error)]
pub enum SimError {
    /// A testbed that does not parse or cannot be: correct what is named.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// No policy is called so, or its settings are wrong: take one of those that are named.
    #[error("policy `{}`: {}", shown(.text), shown(.why))]
    Policy {
        text: String,
        /// What is wrong, and what to write.
        why: String,
    },
    /// Settings that make no sense together: change what is named.
    #[error("{}", shown(.0))]
    Point(String),
    /// The workload is wrong: correct it.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// It was asked to stop.
    #[error("stopped before the end")]
    Stopped,
}
