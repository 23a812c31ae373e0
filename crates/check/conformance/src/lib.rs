//! Packet vectors: the inputs of a switch, the expected outputs, and the expected final state.
//!
//! A [`Vector`] is a file (in `targets/vectors`). It contains the switch's size; the controller's steps and
//! datagrams in order, each datagram with its time, sender, bytes and expected output; and the final state.
//! [`model`] is the model's own [`Plane`]. [`explore`] generates random vectors from it, and [`cover`]
//! selects a few short ones. Any data plane that can be loaded, given the time and read out can be a
//! [`Plane`], and [`play`] compares it with the vectors.
//!
//! Left out: several packets in flight at once, and overtaking by recirculation (a recirculated packet
//! passes again at once); the headers below UDP, which each plane's own tests check; reliable queue pairs,
//! and the iCRC of tasks that are written ahead.
#![forbid(unsafe_code)]

pub mod cover;
mod error;
pub mod explore;
mod hex;
pub mod model;
mod play;
mod sent;
mod vector;

pub use error::VectorError;
pub use hex::{parse_hex, to_hex};
pub use play::{Plane, play};
pub use sent::Sent;
pub use vector::{FinalSlice, FinalState, FinalTask, FinalWorker, Shape, Step, TestedProgram, Vector, all};
