//! What the operating system refuses and what to do about it, and text files as people write them.
#![forbid(unsafe_code)]

pub mod advice;
pub mod text;

pub use advice::{Attempt, advice};
