//! Advice for errors of the operating system, text files as people write them, and what this machine is.
#![forbid(unsafe_code)]

pub mod advice;
mod machine;
pub mod text;

pub use advice::{Attempt, advice};
pub use machine::{machine, processor};
