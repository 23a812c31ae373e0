//! Advice for errors of the operating system, and text files as people write them.
#![forbid(unsafe_code)]

pub mod advice;
pub mod text;

pub use advice::{Attempt, advice};
