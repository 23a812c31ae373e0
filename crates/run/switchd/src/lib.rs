//! The middle of a rack: the switch on a socket, the controller, and the gRPC services of both.
//!
//! Hosts talk to it through `sluice-net` and do not link this crate. All decisions are made in crates
//! without I/O.
#![forbid(unsafe_code)]

pub mod controller;
pub mod detour;
mod error;
mod health;
pub mod rpc;
pub mod state;
pub mod switch;

pub use error::SwitchdError;
