//! What the commands that simulate have in common: from flags to a plan, the run with its cost and progress, and the
//! result on screen and in files.

pub(crate) mod args;
mod ask;
mod cost;
mod drive;
mod progress;

pub(crate) use ask::Asked;
pub(crate) use drive::{Job, Ran, run, show};

use sluice_sim::study::StudyError;

use crate::fail::Failure;

impl From<StudyError> for Failure {
    fn from(why: StudyError) -> Self {
        if why.is_bad_input() { Self::bad_input(why) } else { Self::broken(why) }
    }
}
