//! Requests of people, agents and strangers to the controller during a run, drawn from a stream of its own.

use std::fmt;

use sluice_events::dice::Dice;
use sluice_wire::tallies::SliceTally;
use sluice_wire::{Nanos, SliceId, WorkerId};

use super::hosts::Host;
use super::limits::{FAULTS_END, LEASE};
use super::scenario::Scenario;

/// Task types in requests; the last ones are more than the switch can map.
const TYPES: u64 = 6;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Read the whole state, as `sluice status` shows it.
    Look,
    /// Move a worker, perhaps to a slice that does not exist.
    Move { worker: usize, slice: usize },
    /// Map a type to another slice, or to none.
    Map { task_type: u16, slice: Option<usize> },
    /// A server's agent reports its interval.
    Report { server: usize, tallies: Vec<SliceTally> },
    /// Say goodbye for a life that is over, or that never was.
    Goodbye(Host),
    /// Register a server, at a switch that writes nothing ahead as far as the controller knows, and leave.
    Server,
    /// Read the switch's tables.
    Read,
    /// The controller's machine is busy for so long.
    Slip(Nanos),
    /// Start a standby. The former controller is cut off or not, and looks at the switch after a while.
    Standby { looks_after: Nanos, is_cut: bool },
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Look => write!(f, "show the rack"),
            Self::Move { worker, slice } => write!(f, "move worker {worker} to slice {slice}"),
            Self::Map { task_type, slice: Some(slice) } => write!(f, "map type {task_type} to slice {slice}"),
            Self::Map { task_type, slice: None } => write!(f, "map type {task_type} to no slice"),
            Self::Report { server, .. } => write!(f, "server {server}'s agent reports its interval"),
            Self::Goodbye(Host::Worker(worker)) => {
                write!(f, "goodbye of a life that worker {worker} has not")
            }
            Self::Goodbye(Host::Client(client)) => {
                write!(f, "goodbye of a life that client {client} has not")
            }
            Self::Goodbye(Host::Server(server)) => {
                write!(f, "goodbye of a life that server {server} has not")
            }
            Self::Server => write!(f, "a server registers and leaves at once"),
            Self::Read => write!(f, "someone else reads the switch's tables"),
            Self::Slip(lasts) => write!(f, "the controller's machine is busy for {} us", lasts.0 / 1_000),
            Self::Standby { is_cut: true, .. } => {
                write!(f, "a standby controller takes over; the one before is cut off")
            }
            Self::Standby { is_cut: false, .. } => write!(f, "a standby controller is started too"),
        }
    }
}

/// The requests of a run, with their times.
pub(super) fn orders(seed: u64, scenario: &Scenario) -> Vec<(Nanos, Order)> {
    let dice = &mut Dice::named(seed, "operators", 0);
    let count = dice.pick(&[0, 4, 12, 40]);
    let at = |dice: &mut Dice| dice.span(Nanos::from_millis(1), FAULTS_END);
    let mut orders: Vec<_> = (0..count).map(|_| (at(dice), order(dice, scenario))).collect();
    if dice.chance(200) {
        let looks_after = dice.span(Nanos::from_micros(50), LEASE.times(3));
        orders.push((at(dice), Order::Standby { looks_after, is_cut: dice.chance(500) }));
    }
    orders
}

fn order(dice: &mut Dice, scenario: &Scenario) -> Order {
    let worker = dice.below(scenario.workers as u64) as usize;
    let client = dice.below(scenario.clients as u64) as usize;
    let slices = scenario.slices as u64;
    match dice.below(12) {
        0..=3 => Order::Look,
        4 => Order::Move { worker, slice: dice.below(slices + 1) as usize },
        5 => {
            let slice = (!dice.chance(200)).then(|| dice.below(slices + 1) as usize);
            Order::Map { task_type: dice.below(TYPES) as u16, slice }
        }
        6 | 7 => Order::Report { server: worker / 2, tallies: tallies(dice, scenario) },
        8 => Order::Goodbye(if dice.chance(500) { Host::Worker(worker) } else { Host::Client(client) }),
        9 => Order::Server,
        10 => Order::Read,
        _ => Order::Slip(dice.span(Nanos::from_micros(100), Nanos::from_millis(3))),
    }
}

/// Tallies of workers that may be in the slices: one slice overloaded, one idle, or neither.
fn tallies(dice: &mut Dice, scenario: &Scenario) -> Vec<SliceTally> {
    let tally = |slice: usize, dice: &mut Dice| SliceTally {
        slice: SliceId(slice as u16),
        overloads: dice.below(3) as u32,
        idle_milli: dice.below(4_000) as u32,
        depths: (0..scenario.worker_rows).map(|index| (WorkerId(index), dice.below(10) as u8)).collect(),
        tasks: dice.below(1_000),
    };
    (0..=scenario.slices).map(|slice| tally(slice, dice)).collect()
}
