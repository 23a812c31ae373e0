//! Racks, packet by packet: one rack alone, or racks below spines (Horus §3.2), in one world whose nodes are
//! the switches' programs and the workers' and the clients' state machines as they run on the wire.
//!
//! The nodes are those of fault runs (`nodes`). The model is `docs/manual/simulator.md`: one way over each
//! link, a pass through the pipeline, a packet's cost at a worker's core. Packets are header fields and
//! never become bytes.
//!
//! In a rack that is alone everyone registers with the real controller before the run begins; what may go
//! wrong there is the fault runs' affair. Below spines clients submit to spines, a spine's program chooses a
//! leaf, and a leaf's program a worker. A reply goes through its leaf and, forwarded only, a spine to its
//! client; what leaves tell spines goes as packets of its own. One run is one *pool*, an application's
//! workers; pools share nothing but the switches' stages, so that one that runs with others does what it does
//! alone (a test holds it to that).
//!
//! Left out: congestion on links but those to servers, unless a fabric is below the racks, the time that a
//! client takes, and the own controllers of racks below spines, so that a worker is there from the beginning
//! on.

#[cfg(test)]
mod across;
#[cfg(test)]
mod across_tiers;
mod adaptation;
mod adapting;
mod alone;
mod below;
mod books;
mod clients;
mod control;
mod controller;
mod cores;
mod downtime;
mod early;
mod faults;
mod guess;
mod imbalance;
mod intervals;
mod meter;
mod outages;
mod packet_loss;
mod placement;
mod places;
#[cfg(test)]
mod pools;
mod servers;
mod setup;
mod stalls;
mod switch;
mod tiers;
mod watch;
mod workers;
mod world;
#[cfg(test)]
mod wrong;

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_switch::registry::Choice;

use crate::error::SimError;
use crate::point::Point;
use crate::system::System;
pub use faults::{run_faults, run_many_faults};
use placement::Placement;
pub(crate) use watch::Plain;
use watch::TaskWatch;
use world::{Ran, SimulatedRacks};

/// Events between two looks at whether the run is to stop.
const EVENTS_A_LOOK: u32 = 1 << 14;

/// Runs one replication of a point under a switch's program, until `observer` has seen enough or no request
/// is left.
pub(crate) fn replicate<O: TaskWatch>(
    point: &Point,
    choice: &Choice,
    replication: u32,
    observer: O,
    stop: &AtomicBool,
) -> Result<Ran<O>, SimError> {
    run_one(SimulatedRacks::alone(point, choice, replication, observer), stop)
}

/// The same of racks below spines.
pub(crate) fn replicate_below_spines<O: TaskWatch>(
    point: &Point,
    system: System,
    replication: u32,
    observer: O,
    stop: &AtomicBool,
) -> Result<Ran<O>, SimError> {
    let pool = (point, Placement::of(point), observer);
    run_one(SimulatedRacks::below_spines(system, replication, vec![pool]), stop)
}

fn run_one<O: TaskWatch>(racks: SimulatedRacks<O>, stop: &AtomicBool) -> Result<Ran<O>, SimError> {
    Ok(run(racks, stop)?.pop().expect("one pool ran"))
}

/// Gives what each pool came to.
fn run<O: TaskWatch>(mut racks: SimulatedRacks<O>, stop: &AtomicBool) -> Result<Vec<Ran<O>>, SimError> {
    while !racks.run(EVENTS_A_LOOK)? {
        if stop.load(Ordering::Relaxed) {
            return Err(SimError::Stopped);
        }
    }
    Ok(racks.finish())
}
