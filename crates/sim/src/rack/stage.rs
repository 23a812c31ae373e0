//! What the rack's nodes act on: the world, and who counts and looks on.

use sluice_wire::{Nanos, Packet};

use super::books::Books;
use super::fates::Fates;
use super::meter::Meter;
use crate::stats::Observer;
use crate::world::{Address, Links, World};

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
pub(super) enum Cue {
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
}

/// The world of curves: packets are lost where the testbed says so.
pub(super) type RackWorld = World<Cue, Option<Box<Fates>>>;
pub(super) type RackLinks = Links<Option<Box<Fates>>>;

/// Everything that is not a node.
#[derive(Debug)]
pub(super) struct Stage<O> {
    pub(super) world: RackWorld,
    pub(super) meter: Meter<O>,
    pub(super) books: Books,
}

impl<O: Observer> Stage<O> {
    /// A world with nobody in it, for so many workers; whether a task can be in several places.
    pub(super) fn new(observer: O, workers: u32, has_copies: bool) -> Self {
        Self { world: World::new(None), meter: Meter::new(observer, workers), books: Books::new(has_copies) }
    }

    #[inline]
    pub(super) const fn now(&self) -> Nanos {
        self.world.now
    }

    /// Sends a packet that leaves then, and is made where it lies until it has been received.
    #[inline]
    pub(super) fn send(&mut self, from: Address, to: Address, leaves: Nanos, make: impl FnOnce(&mut Packet)) {
        self.meter.counts.packets += 1;
        let packet = self.world.packets.make(make);
        let copies = self.world.send(from, to, leaves, packet);
        self.meter.counts.lost_packets += u64::from(copies == 0);
    }

    /// Reminds whoever is at this place then.
    pub(super) fn cue(&mut self, at: Nanos, whom: Address, cue: Cue) {
        self.world.engine.cue(at, whom, cue);
    }
}
