//! Why a vector does not hold.

use std::net::SocketAddr;

use thiserror::Error;

/// Why a plane and a vector differ, or why a text is no vector.
#[derive(Debug, Error)]
pub enum VectorError {
    /// The text is no vector of this version: make it anew.
    #[error("not a vector: {0}")]
    Format(#[from] serde_json::Error),
    /// Something else left the plane: look at this step.
    #[error("{vector}, step {step}: expected {expected}, found {found}")]
    Differs {
        vector: String,
        /// The step, counted from zero.
        step: usize,
        /// What has to leave.
        expected: String,
        found: String,
    },
    /// The plane stands otherwise at the end.
    #[error("{vector}, at the end: expected {expected}, found {found}")]
    After {
        vector: String,
        /// How it has to stand, where it differs.
        expected: String,
        /// How it stands there.
        found: String,
    },
    /// The plane cannot take the step.
    #[error("{vector}, step {step}: {why}")]
    Plane {
        vector: String,
        /// The step, counted from zero.
        step: usize,
        why: String,
    },
    /// A host's address is of a family in which the plane has none.
    #[error("the plane has no address of {0}'s family")]
    Family(SocketAddr),
}
