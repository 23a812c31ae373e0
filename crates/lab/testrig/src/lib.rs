//! Hosts for measuring a rack on one machine: many on one thread ([`host_group`]), a client that sends a
//! schedule ([`schedule`]), workers with an emulated processor ([`processor`]), and hosts without a
//! scheduler for comparison ([`plain`]).
//!
//! Applications use `sluice-net`, which does not depend on this crate.
#![forbid(unsafe_code)]

mod error;
pub mod host_group;
pub mod plain;
pub mod processor;
pub mod schedule;
mod start;

pub use error::TestrigError;
pub use start::ScheduleStart;
