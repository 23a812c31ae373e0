//! The P4 programs (`targets/p4`) on BMv2, the reference switch of P4.
//!
//! [`tool`] finds the compiler and the switch, which no package of ours brings. [`Bmv2Switch`] compiles a
//! program for a size, starts the switch, and carries out a controller's steps on it. Frames go in and come
//! out one at a time, with the time that each frame names.
//!
//! Left out: links, and real time.
#![forbid(unsafe_code)]

mod entries;
mod error;
mod frames;
mod program;
mod queues;
mod registers;
mod runtime;
mod seats;
mod servers;
mod sizes;
mod switch;
mod tools;

pub use error::Bmv2Error;
pub use program::P4Program;
pub use switch::Bmv2Switch;
pub use tools::tool;
