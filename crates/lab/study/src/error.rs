//! Errors of studies, each with what helps.

use std::path::PathBuf;

use sluice_units::shown;
use thiserror::Error;

/// Why a study cannot be run.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A number, range, rate, metric or limit is not readable.
    #[error("{what} `{}` {}", shown(.text), shown(.why))]
    Unreadable {
        /// What the text should have been.
        what: &'static str,
        text: String,
        /// What is wrong, and what to write.
        why: String,
    },
    /// The plan is invalid.
    #[error(
        "plan {}{}: {}",
        shown(.plan), line.map(|line| format!(" line {line}")).unwrap_or_default(), shown(.why)
    )]
    Plan {
        /// The plan's file or name.
        plan: String,
        /// The line of the error, if it is known.
        line: Option<usize>,
        /// What is wrong, and what to write.
        why: String,
    },
    /// A point cannot be run.
    #[error("{}", shown(.0))]
    Point(String),
    /// The folder or file of results cannot be used.
    #[error("{}: {}", shown(&path.to_string_lossy()), shown(.why))]
    Folder {
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A failure during the run.
    #[error("{0}")]
    Broken(String),
}

impl StudyError {
    /// Whether the caller's input is at fault.
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Broken(_))
    }

    pub(crate) fn unreadable(what: &'static str, text: &str, why: impl Into<String>) -> Self {
        Self::Unreadable { what, text: text.to_owned(), why: why.into() }
    }
}
