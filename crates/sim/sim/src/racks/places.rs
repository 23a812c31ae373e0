//! Where everybody is: a node for each kind, a place for each of them. And the world that they are in.

use sluice_events::{Address, Links, World};

use super::packet_loss::PoolLoss;

pub(super) const CLIENTS: Address = Address::node(0);
pub(super) const SPINES: Address = Address::node(1);
/// The racks' switches; a rack that is alone has the first.
pub(super) const LEAVES: Address = Address::node(2);
pub(super) const WORKERS: Address = Address::node(3);
/// The first pool's clock; the others' follow.
const CLOCKS: u8 = 4;
/// Pools that fit one world.
pub(super) const POOLS_MAX: usize = (u8::MAX - CLOCKS) as usize;

/// Where a pool's clock strikes.
pub(super) fn clock_of(pool: usize) -> Address {
    assert!(pool < POOLS_MAX, "as many pools as nodes have clocks");
    Address::node(CLOCKS + pool as u8)
}

/// Whose clock it is.
pub(super) const fn pool_of(clock: Address) -> usize {
    (clock.of_node() - CLOCKS) as usize
}

/// What somebody wants to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheduled {
    /// A worker gets its registration.
    Start,
    /// A host's machine has something to do: at the clients' place of the machine's number, if it is a
    /// client's.
    Tick,
    /// A worker's running task may be near its end.
    Early,
    /// The agents' interval ends: for the rack's switch, where the controller is, as what follows.
    Adapts,
    /// The controller has something to do.
    Controls,
    /// The switch carries out the controller's next step.
    Step,
    /// A descriptor comes to one of a server's cores: at the workers' place of the server's number, as what
    /// follows.
    Descriptor,
    /// A core's reply comes to its NIC.
    Ended,
    /// Queues are looked at.
    Look,
    /// An interval of all pools ends.
    Interval,
    /// The next step of the outages is due.
    Outage,
}

/// The world of curves: packets are lost where the testbed says so.
pub(super) type RackWorld = World<Scheduled, Option<Box<PoolLoss>>>;
pub(super) type RackLinks = Links<Option<Box<PoolLoss>>>;
