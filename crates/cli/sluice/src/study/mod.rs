//! The common part of commands that simulate: flags become a plan, the plan runs with an estimate and
//! progress, and the result goes to the screen and to files.

pub(crate) mod args;
mod cost;
mod drive;
mod growing;
mod progress;
mod requested;

pub(crate) use drive::{FinishedStudy, StudyJob, run, show};
pub(crate) use requested::RequestedStudy;
