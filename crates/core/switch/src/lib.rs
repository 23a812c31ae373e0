//! The switch: a model of its pipeline, and the schedulers written against it.
//!
//! [`pipeline`] states what a switch chip allows (stages in order, one access to each register array a
//! pass) and adds up what a program takes of the chip. A [`Program`] takes packets and the time as
//! arguments and returns the packet that leaves; it has no I/O. [`registry`] knows all programs by name. A
//! shared front stands before their queues: sources, replays, counters, the controller's steps.
//!
//! Rain writes large tasks that wait into servers' memory, if there are servers ([`WriteAhead`]). Otherwise
//! a payload that is too long for a queue entry waits in the driver's memory.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arguments;
mod config;
pub mod draconis;
pub mod early;
mod entry;
mod front;
pub mod horus;
mod known_clients;
pub mod pallas;
pub mod pipeline;
mod program;
pub mod r2p2;
pub mod racksched;
pub mod rain;
mod random;
mod rdma_engine;
mod refusal;
pub mod registry;
mod seats;
pub mod server;
mod settings;

pub use config::Config;
pub use known_clients::KnownClients;
pub use program::{Arrival, Cargo, Circulating, Mirror, Parked, Program, Replica, Verdict, WriteAhead};
pub use random::Random;
pub use refusal::{Refusal, Refusals};
