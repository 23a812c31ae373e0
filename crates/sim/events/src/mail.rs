//! The messages in a world of racks: packets, and recirculations in switches.
//!
//! A packet is stored in one place from its departure to the end of its reception; only its number is
//! passed on.

use sluice_switch::Circulating;
use sluice_wire::Packet;

use crate::address::Address;
use crate::pool::Id;

/// The id of a packet that is under way or waits to be received.
pub type PacketId = Id<Packet>;

/// A message that arrives at a place.
#[derive(Clone, Copy, Debug)]
pub enum Mail {
    /// A packet, from its sender.
    Packet { from: Address, packet: PacketId },
    /// A packet that recirculates in a switch, by its id in the pool.
    Round(Id<Circulating>),
}
