//! Network emulation without I/O: a seeded fault injector, which decides which packets are lost, duplicated
//! or late, and a queue of packets that leave at their due time.
//!
//! Sockets and links call this crate only if faults or delays are configured.
#![forbid(unsafe_code)]

mod delay_queue;
mod faults;

pub use delay_queue::{DelayQueue, DelayedBytes, Due};
pub use faults::{FaultCounts, FaultPlan, FaultRatesError, Faults, PacketFate, Rates};
