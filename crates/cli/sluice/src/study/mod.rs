//! What the commands that simulate have in common: from flags to a plan, the run with its cost and progress,
//! and the result on screen and in files.

pub(crate) mod args;
mod ask;
mod cost;
mod drive;
mod progress;

pub(crate) use ask::Asked;
pub(crate) use drive::{Job, Ran, run, show};
