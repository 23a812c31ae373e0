//! What can be wrong with a workload.

use std::path::PathBuf;

use sluice_system::text::TextError;
use sluice_units::shown;

/// Why a workload was refused; each message is one line that says what helps.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// No distribution has this name: take the nearest, or one of the list.
    #[error("service `{}`: {}", shown(.text), shown(.unknown))]
    UnknownDistribution {
        text: String,
        /// What is unknown, what is near, and what is known.
        unknown: String,
    },
    /// A distribution's values make no sense: correct them.
    #[error("service `{}`: {}", shown(.text), shown(.why))]
    Service {
        text: String,
        /// What is wrong, and how it is written.
        why: String,
    },
    /// The classes do not fit together, or the text does not parse: correct it.
    #[error("workload `{}`: {}", shown(.text), shown(.why))]
    Workload {
        /// The workload as far as it is known.
        text: String,
        /// What is wrong, and how it is written.
        why: String,
    },
    /// The arrivals do not parse: correct them.
    #[error("arrivals `{}`: {}", shown(.text), shown(.why))]
    Arrivals {
        /// The whole of the arrivals.
        text: String,
        /// What is wrong, and how it is written.
        why: String,
    },
    /// A file holds something else than it should: correct it there.
    #[error("{}:{line}:{column}: {}", shown(&path.to_string_lossy()), shown(.why))]
    Content {
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong, and what stands there otherwise.
        why: String,
    },
    /// A file is no text, or the system does not give it: do as it says.
    #[error("{}: {source}", shown(&path.to_string_lossy()))]
    File {
        path: PathBuf,
        /// Where it is no text, or what the system says.
        source: TextError,
    },
}
