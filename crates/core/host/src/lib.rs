//! The end hosts as state machines. Inputs are packets, completions and the time; outputs are actions and
//! the next deadline.
//!
//! This crate has no clock, socket, thread or randomness. So the simulator, the fault runs and the UDP
//! driver run the same code, and one seed replays one run. Payload bytes stay with the driver, which names
//! them by a [`Handle`](sluice_wire::Handle).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agent;
pub mod client;
pub mod orchestrator;
pub mod pacer;
mod parts;
pub mod rdma;
pub mod rtt;
pub mod slow;
pub mod worker;

pub use parts::PART_BYTES;
