//! The P4 programs (`targets/p4`) on BMv2, the reference switch of P4.
//!
//! [`tool`] finds the compiler and the switch, which no package of ours brings. The programs run in two
//! ways: [`Bmv2Switch`] passes frames one at a time, with the time that each frame names, to hold a program
//! to the vectors; [`Bmv2Driver`] runs Rain on a machine's links, for a live rack.
#![forbid(unsafe_code)]

mod driver;
mod entries;
mod error;
mod frames;
mod launch;
mod links;
mod process;
mod program;
mod queues;
mod registers;
mod runtime;
mod seats;
mod servers;
mod sizes;
mod sources;
mod steps;
mod sweeps;
mod switch;
mod tables;
mod tools;

pub use driver::{Bmv2Driver, Bmv2Options};
pub use error::Bmv2Error;
pub use launch::{Bmv2Servers, RuntimeApi, SwitchFrom};
pub use program::P4Program;
pub use runtime::{ActionCall, EntryName};
pub use switch::Bmv2Switch;
pub use tools::tool;
