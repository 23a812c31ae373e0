//! The results of runs and studies as values. `schemas/` describes their JSON.
//!
//! Simulations and measurements create these values, and `sluice-report` shows them; neither depends on the
//! other.
#![forbid(unsafe_code)]

pub mod run;
pub mod study;
