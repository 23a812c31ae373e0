//! Packet vectors: what goes into a switch, what has to come out, and how it stands then.
//!
//! A [`Vector`] is a file (of `targets/vectors`): the switch's size, the controller's steps and datagrams in
//! their order, each datagram with the time, its sender, its bytes and what leaves for it, and at the end the
//! state. [`model`] is the model's own [`Plane`]; [`explore`] makes vectors from it at random, and [`cover`]
//! a few short ones of those. Any data plane that can be loaded, given the time and read out is a [`Plane`]
//! too, and is held to the model by [`play`].
//!
//! Left out: what several packets in flight at once do, and overtaking by recirculation (what goes round here
//! goes on at once); the headers below UDP, which each plane's own tests look at; reliable queue pairs and
//! the iCRC of tasks that are written ahead.
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
pub use vector::{After, Shape, SliceAfter, Step, TaskAfter, Vector, WorkerAfter};
