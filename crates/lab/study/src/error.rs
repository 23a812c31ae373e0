//! What can be wrong with a study, each with what helps.

use std::path::PathBuf;

use sluice_units::shown;
use thiserror::Error;

/// Why a study cannot be run.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A number, range, rate, metric or limit that cannot be read.
    #[error("{what} `{}` {}", shown(.text), shown(.why))]
    Unreadable {
        /// What it should have been.
        what: &'static str,
        text: String,
        /// What is wrong, and what to write.
        why: String,
    },
    /// A plan that cannot be used.
    #[error(
        "plan {}{}: {}",
        shown(.plan), line.map(|line| format!(" line {line}")).unwrap_or_default(), shown(.why)
    )]
    Plan {
        /// Its file or name.
        plan: String,
        /// Where, if that is known.
        line: Option<usize>,
        /// What is wrong, and what to write.
        why: String,
    },
    /// A point that cannot be run.
    #[error("{}", shown(.0))]
    Point(String),
    /// A folder or file of results that cannot be used.
    #[error("{}: {}", shown(&path.to_string_lossy()), shown(.why))]
    Folder {
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Something failed while it ran.
    #[error("{0}")]
    Broken(String),
}

impl StudyError {
    /// Whether what was asked makes no sense or cannot be done here.
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Broken(_))
    }

    pub(crate) fn unreadable(what: &'static str, text: &str, why: impl Into<String>) -> Self {
        Self::Unreadable { what, text: text.to_owned(), why: why.into() }
    }
}
