//! What the rack's nodes act on: the world, and who counts and looks on.

use sluice_wire::{Nanos, Packet};

use super::adaptation::Adaptation;
use super::books::Books;
use super::meter::Meter;
use crate::stats::Observer;
use crate::world::{Address, World};

/// Where the rack's nodes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) switch: Address,
    pub(super) workers: Address,
    pub(super) clients: Address,
    /// Where clients send their tasks: the switch, unless somebody stands before it.
    pub(super) front: Address,
    /// The alarm of its first worker.
    pub(super) alarms: u32,
}

impl Places {
    /// Of a rack that has the world to itself.
    pub(super) const ALONE: Self = Self::from(0, 0);

    /// Three nodes from this one on, and alarms.
    pub(super) const fn from(node: u8, alarms: u32) -> Self {
        let switch = Address::node(node);
        let (workers, clients) = (Address::node(node + 1), Address::node(node + 2));
        Self { switch, workers, clients, front: switch, alarms }
    }
}

/// What is to be done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cue {
    /// A host wants to be reminded.
    Host(Address, Reminder),
    /// The agents' interval ends.
    Adapts,
    /// The controller has something to do.
    Controls,
    /// The switch carries out the controller's next step.
    Step,
}

/// What a host wants to be reminded of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reminder {
    /// A worker gets its registration.
    Start,
    /// The machine has something to do.
    Tick,
    /// A worker's running task may be near its end.
    Early,
}

/// Everything that is not a node.
#[derive(Debug)]
pub(super) struct Stage<O> {
    pub(super) world: World<Cue>,
    pub(super) meter: Meter<O>,
    pub(super) books: Books,
    /// Where depths are found at run time.
    pub(super) adaptation: Option<Box<Adaptation>>,
}

impl<O: Observer> Stage<O> {
    #[inline]
    pub(super) const fn now(&self) -> Nanos {
        self.world.now
    }

    /// Sends a packet that leaves then, and is made where it lies until it has been received.
    #[inline]
    pub(super) fn send(&mut self, from: Address, to: Address, leaves: Nanos, make: impl FnOnce(&mut Packet)) {
        self.meter.counts.packets += 1;
        let packet = self.world.engine.packets.make(make);
        let copies = self.world.send(from, to, leaves, packet);
        self.meter.counts.lost_packets += u64::from(copies == 0);
    }

    /// Reminds a node then.
    pub(super) fn cue(&mut self, at: Nanos, cue: Cue) {
        self.world.engine.cue(at, cue);
    }
}
