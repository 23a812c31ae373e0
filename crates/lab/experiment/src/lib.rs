//! Studies as people ask for them: flags, or a figure's name, become a study that is ready to run, and its
//! result becomes files.
//!
//! The command and the Python package stand on this crate, so that both run the same study, say the same
//! about bad input, and write the same bytes. Left out: how a study's progress is shown, and exit codes.
#![forbid(unsafe_code)]

pub mod args;
pub mod figures;
pub mod files;
pub mod policies;
pub mod shell;

mod figure;
mod kind;
mod ready;
mod requested;
mod words;

use sluice_study::StudyError;

pub use figure::FigurePlan;
pub use kind::PlanKind;
pub use ready::{ReadyStudy, RunningBuild};
pub use requested::RequestedStudy;
pub use words::{from_words, one_line};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What was asked for, or what is wrong with it.
pub type StudyResult<T> = Result<T, StudyError>;

/// The input makes no sense.
fn bad_input(why: impl std::fmt::Display) -> StudyError {
    StudyError::Point(why.to_string())
}
