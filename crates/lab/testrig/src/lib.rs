//! Hosts for measuring a rack on one machine: many on one thread ([`host_group`]), a client that sends a
//! schedule ([`schedule`]), workers whose processor is a testbed's ([`processor`]), and hosts without a
//! scheduler to hold them against ([`plain`]).
//!
//! What an application embeds is `sluice-net`, which knows nothing of this.
#![forbid(unsafe_code)]

mod error;
pub mod host_group;
pub mod plain;
pub mod processor;
pub mod schedule;
mod start;

pub use error::TestrigError;
pub use start::ScheduleStart;
