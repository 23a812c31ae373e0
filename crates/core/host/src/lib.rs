//! The end hosts, as state machines: packets, completions and the time come in; actions and the next deadline
//! go out.
//!
//! No clock, no socket, no thread and no randomness here, so that the simulator, the fault runs and the UDP
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
