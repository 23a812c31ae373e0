//! The addresses of all nodes, a node for each kind of host and a place for each host; and the type of
//! their world.

use sluice_events::{Address, Links, World};

use super::packet_loss::PoolLoss;

pub(super) const CLIENTS: Address = Address::node(0);
pub(super) const SPINES: Address = Address::node(1);
/// The racks' switches; a rack without spines has the first place.
pub(super) const LEAVES: Address = Address::node(2);
pub(super) const WORKERS: Address = Address::node(3);
/// The node of the first pool's clock; those of the other pools follow.
const CLOCKS: u8 = 4;
/// The most pools in one world.
pub(super) const POOLS_MAX: usize = (u8::MAX - CLOCKS) as usize;

pub(super) fn clock_of(pool: usize) -> Address {
    assert!(pool < POOLS_MAX, "as many pools as nodes have clocks");
    Address::node(CLOCKS + pool as u8)
}

/// The pool of a clock's address.
pub(super) const fn pool_of(clock: Address) -> usize {
    (clock.of_node() - CLOCKS) as usize
}

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheduled {
    /// A worker gets its registration.
    Start,
    /// A host's machine has something to do; for a client, at the clients' place with the machine's number.
    Tick,
    /// A worker's running task may be near its end.
    Early,
    /// The agents' interval ends; at the rack's switch, where the controller is, like the next two events.
    Adapts,
    /// The controller has something to do.
    Controls,
    /// The switch carries out the controller's next step.
    Step,
    /// A descriptor arrives at one of a server's cores; at the workers' place with the server's number,
    /// like the next event.
    Descriptor,
    /// A core's reply arrives at its NIC.
    Ended,
    /// A look at the queues.
    Look,
    /// An interval of all pools ends.
    Interval,
    /// The next step of the outages is due.
    Outage,
}

/// The world of curves: packets are lost as the testbed says.
pub(super) type RackWorld = World<Scheduled, Option<Box<PoolLoss>>>;
pub(super) type RackLinks = Links<Option<Box<PoolLoss>>>;
