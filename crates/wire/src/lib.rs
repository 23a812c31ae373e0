//! What is on the wire.
//!
//! [`Packet`] can hold legal packets only; [`View`] reads them from bytes and refuses everything else with a
//! reason; [`encode`] writes them. [`tables`] is what a controller writes into a switch. No allocation, no I/O,
//! and no input makes anything here panic.
//!
//! Left out: `RoCEv2` (the RDMA engine's packets).
#![no_std]
#![forbid(unsafe_code)]

mod ids;
mod packet;
pub mod tables;

pub use ids::*;
pub use packet::*;
