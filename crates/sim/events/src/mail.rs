//! What comes to places in a world of racks: packets, and what went round in switches.
//!
//! A packet lies in one place from its departure to the end of its reception; what is passed on is its
//! number.

use sluice_switch::Circulating;
use sluice_wire::Packet;

use crate::address::Address;
use crate::pool::Id;

/// Names a packet that is under way or waits to be received.
pub type PacketId = Id<Packet>;

/// Something that comes to a place.
#[derive(Clone, Copy, Debug)]
pub enum Mail {
    /// A packet, from its sender.
    Packet { from: Address, packet: PacketId },
    /// What went round in a switch, by its place in the pool.
    Round(Id<Circulating>),
}
