//! Virtual time: all real state machines together, in one thread, replayed from one seed.
//!
//! [`faults`] runs a whole rack (switch, controller, workers, clients) through losses, crashes and
//! restarts and holds it to the protocol's promises; `racks` measures one, or several below
//! spines, packet by packet; both drive the
//! same `nodes`. [`workload`] says what a rack is asked to do, [`stats`] turns what runs measure into
//! numbers with intervals, and [`study`] holds many points of many policies against each other. A
//! [`point`](point::Point) is one of them: a [`policy`] on a [`testbed`] under one load.
#![forbid(unsafe_code)]

pub mod agents;
mod capacity;
mod complaint;
mod cores_layout;
pub mod datacenter;
mod error;
pub mod fabric;
pub mod faults;
mod files;
pub mod ideal;
mod jobs;
mod names;
mod nodes;
pub mod point;
pub mod policy;
mod racks;
mod replicate;
pub mod server;
pub mod sparrow;
pub mod stats;
pub mod study;
pub mod suits;
pub mod testbed;
pub mod workload;

pub use complaint::toml_complaint;
pub use error::SimError;
pub use jobs::run_jobs;
pub use sluice_events::dice::{Dice, EXPONENTIAL_MAX};

use sluice_events as events;
use sluice_events::dice;
