//! Errors of the P4 tools and of BMv2.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why the program does not run on BMv2, or why a step failed there.
#[derive(Debug, Error)]
pub enum Bmv2Error {
    /// A tool is neither on the path nor in the folders of `P4_TOOLS`.
    #[error("{0} was not found: name its folder in P4_TOOLS, or put it on the PATH")]
    NoTool(&'static str),
    /// The compiler refuses the program.
    #[error("p4c-bm2-ss refuses {program}:\n{why}")]
    Compile { program: PathBuf, why: String },
    /// The operating system refuses something.
    #[error("cannot {doing}: {why}")]
    System { doing: &'static str, why: io::Error },
    /// The switch ended, or does not answer any more.
    #[error("BMv2 {0}")]
    Gone(String),
    /// The switch refuses a call.
    #[error("BMv2 refuses {call}: {why}")]
    Refused { call: String, why: String },
    /// The program has no table or register for this step of a controller.
    #[error("the P4 program knows nothing of {0}")]
    Unknown(String),
}

impl Bmv2Error {
    /// Wraps what the operating system says.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::System { doing, why }
    }
}
