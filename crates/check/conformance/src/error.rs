//! Errors of vectors.

use std::net::SocketAddr;

use thiserror::Error;

/// How a plane and a vector differ, or why a text is not a vector.
#[derive(Debug, Error)]
pub enum VectorError {
    /// The text is not a vector of this version: generate it again.
    #[error("not a vector: {0}")]
    Format(#[from] serde_json::Error),
    /// A file or folder cannot be read.
    #[error("cannot read vectors: {0}")]
    Read(#[from] std::io::Error),
    /// The plane's output at this step differs.
    #[error("{vector}, step {step}: expected {expected}, found {found}")]
    Differs {
        vector: String,
        /// The step, counted from zero.
        step: usize,
        /// The expected output.
        expected: String,
        found: String,
    },
    /// The plane's final state differs.
    #[error("{vector}, at the end: expected {expected}, found {found}")]
    After {
        vector: String,
        /// The expected values, where they differ.
        expected: String,
        /// The plane's values in the same places.
        found: String,
    },
    /// The plane cannot perform the step.
    #[error("{vector}, step {step}: {why}")]
    Plane {
        vector: String,
        /// The step, counted from zero.
        step: usize,
        why: String,
    },
    /// A host's address is of a family for which the plane has no address.
    #[error("the plane has no address of {0}'s family")]
    Family(SocketAddr),
}
