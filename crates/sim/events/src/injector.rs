//! The interface of fault injectors: which packets are lost, repeated or late.

use sluice_wire::{Nanos, Packet};

use crate::address::Address;

/// A packet's way from one place to another, before any fault.
#[derive(Clone, Copy, Debug)]
pub struct Transit {
    pub from: Address,
    /// The place that it goes to.
    pub to: Address,
    pub leaves: Nanos,
    /// When it arrives without a fault.
    pub arrives: Nanos,
}

/// When the copies of a packet arrive: none, one or two.
pub type Copies = [Option<Nanos>; 2];

/// Decides which packets are lost, repeated or late.
pub trait FaultInjector {
    /// Whether there are any faults at all.
    fn is_any(&self) -> bool;

    /// When the copies of this packet arrive.
    fn copies(&mut self, transit: &Transit, packet: &Packet) -> Copies;
}

/// `None` injects no faults.
impl<W: FaultInjector> FaultInjector for Option<Box<W>> {
    #[inline]
    fn is_any(&self) -> bool {
        self.as_ref().is_some_and(|injector| injector.is_any())
    }

    #[inline]
    fn copies(&mut self, transit: &Transit, packet: &Packet) -> Copies {
        self.as_mut().map_or([Some(transit.arrives), None], |injector| injector.copies(transit, packet))
    }
}
