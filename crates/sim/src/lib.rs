//! Virtual time: all real state machines together, in one thread, replayed from one seed.
//!
//! [`faults`] runs a whole rack (switch, controller, workers, clients) through losses, crashes and restarts and
//! holds it to the protocol's promises. [`workload`] says what a rack is asked to do, [`stats`] turns what runs measure
//! into numbers with intervals, and [`study`] holds many points of many policies against each other.
#![forbid(unsafe_code)]

mod agenda;
mod dice;
pub mod faults;
pub mod stats;
pub mod study;
pub mod workload;

pub use dice::{Dice, EXPONENTIAL_MAX};
