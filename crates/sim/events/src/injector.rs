//! What befalls packets on their way.

use sluice_wire::{Nanos, Packet};

use crate::address::Address;

/// A packet's way from one place to another, before anything befalls it.
#[derive(Clone, Copy, Debug)]
pub struct Transit {
    pub from: Address,
    /// Who it is for.
    pub to: Address,
    pub leaves: Nanos,
    /// When it arrives if nothing befalls it.
    pub arrives: Nanos,
}

/// When the copies of a packet arrive: none, one or two.
pub type Copies = [Option<Nanos>; 2];

/// What befalls packets on their way.
pub trait FaultInjector {
    /// Whether anything ever does.
    fn is_any(&self) -> bool;

    /// What befalls this one.
    fn copies(&mut self, transit: &Transit, packet: &Packet) -> Copies;
}

/// Without one, nothing ever befalls a packet.
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
