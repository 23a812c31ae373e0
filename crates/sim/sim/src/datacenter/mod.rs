//! A datacenter, packet by packet: racks below spines (Horus §3.2), each with its program, in one world.
//!
//! Clients submit to spines, a spine's program chooses a leaf, and a leaf's program a worker. A reply goes
//! through its leaf and, forwarded only, a spine to its client; what leaves tell spines goes as packets of
//! its own. Programs, clients and workers are those of a rack and of the wire.
//!
//! One run is one *pool*, an application's workers; pools share nothing but the switches' stages, so that one
//! that runs with others does what it does alone (a test holds it to that). Left out: congestion on
//! links, unless a fabric is below them, and racks' own controllers, so that a worker is there from the
//! beginning on.

mod below;
mod clients;
mod control;
mod downtime;
mod faults;
mod imbalance;
mod intervals;
mod outages;
mod packet_loss;
mod passes;
mod placement;
mod places;
mod run;
mod switches;
mod system;
mod watch;
mod workers;
mod world;

#[cfg(test)]
mod across;
#[cfg(test)]
mod tests;

pub use faults::{run_faults, run_many_faults};
pub(crate) use run::replicate;
pub use system::System;
pub(crate) use watch::Plain;
