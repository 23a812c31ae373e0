//! What can be wrong with a testbed, with what helps.

use sluice_units::shown;
use thiserror::Error;

/// Why a testbed does not parse or cannot be: correct what is named.
#[derive(Debug, Error)]
#[error("testbed{place}: {}", shown(.why))]
pub struct TestbedError {
    /// The line, if that is known.
    pub place: String,
    /// What is wrong, and what to write.
    pub why: String,
}
