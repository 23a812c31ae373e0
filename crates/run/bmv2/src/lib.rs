//! Rain's P4 program (`targets/p4`) on BMv2, the reference switch of P4.
//!
//! [`tool`] finds the compiler and the switch, which no package of ours brings. [`Bmv2Switch`] compiles the
//! program for a size, starts the switch, and carries out a controller's steps on it. Frames go in and come
//! out one at a time, with the time that each frame names.
//!
//! Left out: links, and real time.
#![forbid(unsafe_code)]

mod entries;
mod error;
mod frames;
mod registers;
mod runtime;
mod servers;
mod switch;
mod tools;

pub use error::Bmv2Error;
pub use switch::Bmv2Switch;
pub use tools::tool;
