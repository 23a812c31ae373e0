//! The common part of commands that simulate: flags become a plan, the plan runs with an estimate and
//! progress, and the result goes to the screen and to files.

pub(crate) mod args;
mod cost;
mod drive;
mod growing;
mod progress;
pub(crate) mod slurm;

pub(crate) use drive::{FinishedStudy, StudyJob, run, run_ready, run_requested, show};
