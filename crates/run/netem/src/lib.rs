//! What a network does to packets on purpose, without I/O: a fault injector whose seed says what is lost,
//! doubled or late, and a queue of packets that leave at their time.
//!
//! A socket or link asks it where it was told to; without faults and delays it is not asked.
#![forbid(unsafe_code)]

mod delay_queue;
mod faults;

pub use delay_queue::{DelayQueue, DelayedBytes, Due};
pub use faults::{FaultCounts, FaultPlan, FaultRatesError, Faults, PacketFate, Rates};
