//! What befalls packets on their way.

use sluice_wire::{Nanos, Packet};

use super::address::Address;

/// A packet's way from one place to another, before anything befalls it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) leaves: Nanos,
    /// When it arrives if nothing befalls it.
    pub(crate) arrives: Nanos,
}

/// When the copies of a packet arrive: none, one or two.
pub(crate) type Copies = [Option<Nanos>; 2];

/// What befalls packets on their way.
pub(crate) trait Weather {
    /// Whether anything ever does.
    fn is_any(&self) -> bool;

    /// What befalls this one.
    fn copies(&mut self, passage: &Passage, packet: &Packet) -> Copies;
}
