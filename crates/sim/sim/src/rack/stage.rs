//! What the rack's nodes act on: the world, and who counts and looks on.

use sluice_wire::{Nanos, Packet};

use super::below::Below;
use super::books::Books;
use super::meter::Meter;
pub(super) use super::places::{Places, RackWorld, Scheduled};
use crate::events::{Address, World};
use crate::stats::Observer;

/// Everything that is not a node.
#[derive(Debug)]
pub(super) struct Stage<O> {
    pub(super) world: RackWorld,
    pub(super) meter: Meter<O>,
    pub(super) books: Books,
    /// The fabric that packets cross, if there is one.
    pub(super) below: Option<Box<Below>>,
}

impl<O: Observer> Stage<O> {
    /// A world with nobody in it, for so many workers; whether a task can be in several places.
    pub(super) fn new(observer: O, workers: u32, has_copies: bool) -> Self {
        let (meter, books) = (Meter::new(observer, workers), Books::new(has_copies));
        Self { world: World::new(None), meter, books, below: None }
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
        if let Some(below) = &mut self.below {
            return below.send(&mut self.world, from, to, leaves, packet);
        }
        let copies = self.world.send(from, to, leaves, packet);
        self.meter.counts.lost_packets += u64::from(copies == 0);
    }

    /// Reminds whoever is at this place then.
    pub(super) fn schedule(&mut self, at: Nanos, whom: Address, schedule: Scheduled) {
        self.world.engine.schedule(at, whom, schedule);
    }
}
