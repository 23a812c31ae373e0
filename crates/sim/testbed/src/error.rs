//! The error of a testbed, with what helps.

use sluice_units::shown;
use thiserror::Error;

/// Why a testbed cannot be read or simulated: correct what it names.
#[derive(Debug, Error)]
#[error("testbed{place}: {}", shown(.why))]
pub struct TestbedError {
    /// The line, if it is known.
    pub place: String,
    /// What is wrong, and what to write.
    pub why: String,
}
