//! Studies in the words of a command line, for callers that have no command line of their own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

use crate::args::{CurvesArgs, FigureArgs, ThroughputArgs};
use crate::{FigurePlan, ReadyStudy, RequestedStudy, StudyResult, bad_input};

/// The questions that such words can ask.
#[derive(Debug, Parser)]
#[command(name = "sluice", no_binary_name = true, disable_help_flag = true)]
enum Question {
    Sweep(CurvesArgs),
    Compare(CurvesArgs),
    Throughput(ThroughputArgs),
    Reproduce {
        plan: PathBuf,
        #[command(flatten)]
        asked: FigureArgs,
    },
}

/// The study that these words ask for, such as `sweep rain:2 --load 0.5`: the same that the command runs.
///
/// # Errors
/// What is wrong, in the command's words.
pub fn from_words(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> StudyResult<ReadyStudy> {
    match Question::try_parse_from(words).map_err(|why| bad_input(one_line(&why)))? {
        Question::Sweep(asked) => RequestedStudy::sweep(&asked)?.ready(),
        Question::Compare(asked) => RequestedStudy::compare(&asked)?.ready(),
        Question::Throughput(asked) => RequestedStudy::throughput(&asked)?.ready(),
        Question::Reproduce { plan, asked } => asked.ready(&FigurePlan::find_one(&plan.to_string_lossy())?),
    }
}

/// An error of the command line in one line (what, why, what next), without the usage text.
pub fn one_line(why: &clap::Error) -> String {
    let rendered = why.render().to_string();
    let text = rendered.lines().take_while(|line| !line.starts_with("Usage:"));
    let text: Vec<&str> = text.map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = text.join("; ");
    let line = line.trim_start_matches("error: ");
    line.replace("; For more information, try '--help'.", "") + "; see --help"
}
