//! The packets, as values that can only be legal.

use super::{Psn, Qpn, Rkey, Syndrome, Transport};

/// A packet without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// Bytes for a region.
    Write(Write),
    /// What became of them; of reliable connections only.
    Acknowledge(Acknowledge),
}

/// WRITE-Only: a message of one packet that puts its bytes at an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Write {
    /// Of which kind of connection.
    pub transport: Transport,
    /// The receiver's queue pair.
    pub to: Qpn,
    /// Its place in the connection.
    pub psn: Psn,
    /// Whether an answer is asked for; an unreliable connection gives none.
    pub ack_request: bool,
    /// Where the first byte goes, as the receiver numbers its memory.
    pub address: u64,
    /// What lets the writer in.
    pub rkey: Rkey,
}

/// ACK or NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acknowledge {
    /// The writer's queue pair.
    pub to: Qpn,
    /// The last PSN that came in order; for [`NakCode::Sequence`](super::NakCode::Sequence) the one that is
    /// missing, for other refusals the one that is refused.
    pub psn: Psn,
    /// What became of it.
    pub syndrome: Syndrome,
    /// Messages completed so far, modulo 2²⁴.
    pub messages: Psn,
}
