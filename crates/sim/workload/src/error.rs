//! The errors of workloads.

use std::path::PathBuf;

use sluice_system::text::TextError;
use sluice_units::shown;

/// Why a workload was refused. Each message is one line that says what helps.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// No distribution has this name: use the nearest one, or another of the list.
    #[error("service `{}`: {}", shown(.text), shown(.unknown))]
    UnknownDistribution {
        text: String,
        /// The unknown name, the nearest known one, and all known ones.
        unknown: String,
    },
    /// The values of a distribution make no sense: correct them.
    #[error("service `{}`: {}", shown(.text), shown(.why))]
    Service {
        text: String,
        /// What is wrong, and how to write it.
        why: String,
    },
    /// The classes do not fit together, or the text cannot be read: correct it.
    #[error("workload `{}`: {}", shown(.text), shown(.why))]
    Workload {
        /// The workload, as far as it is known.
        text: String,
        /// What is wrong, and how to write it.
        why: String,
    },
    /// The arrivals cannot be read: correct them.
    #[error("arrivals `{}`: {}", shown(.text), shown(.why))]
    Arrivals {
        /// The whole text of the arrivals.
        text: String,
        /// What is wrong, and how to write it.
        why: String,
    },
    /// The content of a file is wrong: correct it there.
    #[error("{}:{line}:{column}: {}", shown(&path.to_string_lossy()), shown(.why))]
    Content {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
        /// What is wrong, and what should stand there.
        why: String,
    },
    /// A file is not text, or the system refuses it: follow the system's message.
    #[error("{}: {source}", shown(&path.to_string_lossy()))]
    File {
        path: PathBuf,
        /// Where the file is not text, or the system's message.
        source: TextError,
    },
}
