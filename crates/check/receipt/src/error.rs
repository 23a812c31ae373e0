//! Errors of the receipt.

use std::io;
use std::path::{Path, PathBuf};

use sluice_bmv2::Bmv2Error;
use sluice_conformance::VectorError;
use thiserror::Error;

/// Why a receipt cannot be made, read or written.
#[derive(Debug, Error)]
pub enum ReceiptError {
    /// A file cannot be read or written.
    #[error("cannot {doing} {}: {why}", path.display())]
    File { doing: &'static str, path: PathBuf, why: io::Error },
    /// A file is not in its format.
    #[error("{} is not as expected: {why}", path.display())]
    Format { path: PathBuf, why: serde_json::Error },
    /// The receipt has another version.
    #[error("the receipt's schema is {0}; make p4 writes it anew")]
    Schema(String),
    /// A tool cannot be run.
    #[error("cannot run {tool}: {why}")]
    Tool { tool: String, why: io::Error },
    /// A tool or a test says no.
    #[error("{what}:\n{said}")]
    Refused { what: String, said: String },
    /// Vectors cannot be read.
    #[error(transparent)]
    Vectors(#[from] VectorError),
    /// An error of the P4 tools.
    #[error(transparent)]
    Bmv2(#[from] Bmv2Error),
}

impl ReceiptError {
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::File { doing, path: path.to_owned(), why }
    }

    pub(crate) fn format(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        move |why| Self::Format { path: path.to_owned(), why }
    }
}
