//! What a run or a study came to, as values: `schemas/` describes their JSON.
//!
//! Whoever simulates or measures makes them, `sluice-report` tells them, and neither needs the other.
#![forbid(unsafe_code)]

pub mod run;
pub mod study;
