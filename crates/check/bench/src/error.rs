//! Errors that prevent a measurement.

use std::io;
use std::path::{Path, PathBuf};

use sluice_net::NetError;
use sluice_switchd::SwitchdError;

/// Why a bench has no result. A missed bound is a result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The command line is invalid.
    #[error(
        "no arguments measures everything; names measure these parts: {0}; --bless writes the table of \
         instruction counts"
    )]
    Usage(String),
    #[error("there is no case `{0}` to count")]
    Case(String),
    /// A file or folder cannot be read or written.
    #[error("{path}: {why}")]
    File {
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// Printing failed.
    #[error("what was measured cannot be written to stdout: {0}; make room there, or send it somewhere else")]
    Print(io::Error),
    /// A program could not be started, or failed.
    #[error("{program}: {why}")]
    Program { program: String, why: String },
    /// A program's output has the wrong form.
    #[error("{program} printed something else than its figures: {why}")]
    Output {
        program: String,
        /// What is wrong with the output.
        why: String,
    },
    /// The golden table cannot be parsed.
    #[error("instructions.json: {0}; write it anew with make bench BLESS=1")]
    Golden(serde_json::Error),
    /// The switch under test failed.
    #[error(transparent)]
    Hub(#[from] SwitchdError),
    /// The hosts under test failed.
    #[error(transparent)]
    Net(#[from] NetError),
}

impl BenchError {
    pub(crate) fn file(path: &Path, why: io::Error) -> Self {
        Self::File { path: path.to_owned(), why }
    }

    pub(crate) fn program(program: &str, why: &impl ToString) -> Self {
        Self::Program { program: program.to_owned(), why: why.to_string() }
    }

    pub(crate) fn output(program: &str, why: &impl ToString) -> Self {
        Self::Output { program: program.to_owned(), why: why.to_string() }
    }
}
