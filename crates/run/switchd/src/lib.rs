//! What stands in the middle of a rack: the switch on a socket, the controller, and the gRPC services of
//! both.
//!
//! Hosts reach it through `sluice-net` and need nothing of it. Everything that decides lives in crates
//! without I/O.
#![forbid(unsafe_code)]

pub mod controller;
pub mod detour;
mod error;
pub mod rpc;
pub mod state;
pub mod switch;

pub use error::SwitchdError;
