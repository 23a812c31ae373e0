//! Where a rack's nodes are, and the world that they are in.

use super::packet_loss::PacketLoss;
use crate::events::{Address, Links, World};

/// Where the rack's nodes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) switch: Address,
    pub(super) workers: Address,
    pub(super) clients: Address,
    /// Where clients send their tasks: the switch, unless somebody stands before it.
    pub(super) front: Address,
}

impl Places {
    /// Of a rack that has the world to itself.
    pub(super) const ALONE: Self = Self::from(0);

    /// Three nodes from this one on.
    pub(super) const fn from(node: u8) -> Self {
        let switch = Address::node(node);
        Self { switch, workers: Address::node(node + 1), clients: Address::node(node + 2), front: switch }
    }
}

/// What a node wants to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheduled {
    /// A worker gets its registration.
    Start,
    /// A host's machine has something to do.
    Tick,
    /// A worker's running task may be near its end.
    Early,
    /// The agents' interval ends: for the switch's node, where the controller is, as what follows.
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
}

/// The world of curves: packets are lost where the testbed says so.
pub(super) type RackWorld = World<Scheduled, Option<Box<PacketLoss>>>;
pub(super) type RackLinks = Links<Option<Box<PacketLoss>>>;
