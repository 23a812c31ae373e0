//! The packets, as values that can only be legal.

use super::{Psn, Qpn, Rkey, Syndrome, Transport};

/// A packet without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// Writes bytes into a memory region.
    Write(Write),
    /// Answers a WRITE; reliable connections only.
    Acknowledge(Acknowledge),
}

/// WRITE-Only: a message of one packet that puts its bytes at an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Write {
    /// The kind of connection.
    pub transport: Transport,
    /// The receiver's queue pair.
    pub to: Qpn,
    /// The packet's number in the connection.
    pub psn: Psn,
    /// Whether an answer is asked for; unreliable connections give none.
    pub ack_request: bool,
    /// The address of the first byte, as the receiver numbers its memory.
    pub address: u64,
    /// The key that lets the writer into the region.
    pub rkey: Rkey,
}

/// ACK or NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acknowledge {
    /// The writer's queue pair.
    pub to: Qpn,
    /// The last PSN that arrived in order. For [`NakCode::Sequence`](super::NakCode::Sequence) it is the
    /// missing PSN, for other refusals the refused one.
    pub psn: Psn,
    /// What the acknowledgement says.
    pub syndrome: Syndrome,
    /// Messages completed so far, modulo 2²⁴.
    pub messages: Psn,
}
