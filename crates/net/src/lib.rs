//! Real time: the UDP drivers, the client library, and the controller's service.
//!
//! Everything that decides (the switch's program, the hosts' state machines, the controller) lives in crates
//! without I/O; what stands here only moves bytes, tells the time and keeps threads apart.
#![deny(unsafe_code)]

pub mod clock;
mod error;
pub mod faults;
pub mod hold;
pub mod pin;
pub mod rpc;
pub mod service;
pub mod switch;
pub mod tables;
pub mod udp;

pub use error::NetError;
