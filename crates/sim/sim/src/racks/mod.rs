//! Racks, packet by packet: one rack without spines, or racks below spines (Horus §3.2), in one world. Its
//! nodes are the switches' programs and the state machines of workers and clients that also run live.
//!
//! Fault runs drive the same nodes (`nodes`). `docs/manual/simulator.md` describes the model: a delay for
//! each link, a pass through the pipeline, a packet's cost at a worker's core. Packets are header fields
//! and never become bytes.
//!
//! In a rack without spines all hosts register with the real controller before the run begins; the fault
//! runs test what may go wrong there. Below spines, clients submit to spines, a spine's program chooses a
//! leaf, and a leaf's program a worker. A reply goes through its leaf and then, forwarded only, through a
//! spine to its client. What leaves tell spines goes as packets of its own. One run has one or more
//! *pools*, each an application's workers. Pools share nothing but the switches' stages, so a pool that
//! runs with others does what it does alone (a test checks that).
//!
//! Left out: congestion on links except those to servers, unless a fabric is below the racks; the time that
//! a client takes; and the own controllers of racks below spines, so that a worker is there from the
//! beginning.

mod adaptation;
mod adapting;
mod alone;
mod clients;
mod control;
mod controller;
mod cores;
mod downtime;
mod early;
mod effects;
mod fairness;
mod faults;
mod guess;
mod imbalance;
mod intervals;
mod meter;
#[cfg(test)]
mod mistakes;
#[cfg(test)]
mod on_fabric;
mod outages;
mod packet_loss;
mod placement;
mod places;
#[cfg(test)]
mod pools;
mod rack_fabric;
mod servers;
mod setup;
mod stalls;
mod switch;
mod task_places;
mod tiers;
#[cfg(test)]
mod tiers_on_fabric;
mod watch;
mod workers;
mod world;

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_switch::registry::Choice;

use crate::error::SimError;
use crate::point::Point;
use crate::system::System;
pub use faults::{run_faults, run_many_faults};
use placement::Placement;
pub(crate) use watch::CurveObserver;
use watch::TaskObserver;
use world::{RackRunResult, SimulatedRacks};

/// The stop flag is read after so many events.
const EVENTS_A_LOOK: u32 = 1 << 14;

/// Runs one replication of a point under a switch's program, until `observer` is complete or no request is
/// left.
pub(crate) fn replicate<O: TaskObserver>(
    point: &Point,
    choice: &Choice,
    replication: u32,
    observer: O,
    stop: &AtomicBool,
) -> Result<RackRunResult<O>, SimError> {
    run_one(SimulatedRacks::alone(point, choice, replication, observer), stop)
}

/// Runs one replication of racks below spines.
pub(crate) fn replicate_below_spines<O: TaskObserver>(
    point: &Point,
    system: System,
    replication: u32,
    observer: O,
    stop: &AtomicBool,
) -> Result<RackRunResult<O>, SimError> {
    let pool = (point, Placement::of(point), observer);
    run_one(SimulatedRacks::below_spines(system, replication, vec![pool]), stop)
}

fn run_one<O: TaskObserver>(
    racks: SimulatedRacks<O>,
    stop: &AtomicBool,
) -> Result<RackRunResult<O>, SimError> {
    Ok(run(racks, stop)?.pop().expect("one pool ran"))
}

/// Runs to the end, and returns the result of each pool.
fn run<O: TaskObserver>(
    mut racks: SimulatedRacks<O>,
    stop: &AtomicBool,
) -> Result<Vec<RackRunResult<O>>, SimError> {
    while !racks.run(EVENTS_A_LOOK)? {
        if stop.load(Ordering::Relaxed) {
            return Err(SimError::Stopped);
        }
    }
    Ok(racks.finish())
}
