//! Why packets are refused, and counters for the reasons.

use core::fmt;

use sluice_wire::RoceError;
use thiserror::Error;

/// Why a packet was refused; none of its bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoceRefusal {
    /// The packet is too short, not in whole words, or has more padding than bytes.
    Form,
    /// The transport version is unknown.
    Version,
    /// Another partition.
    Partition,
    /// No pair has this number.
    UnknownPair,
    /// The iCRC does not match the packet and its path.
    Icrc,
    /// The packet comes from another address than the pair's writer.
    Peer,
    /// The packet is of another transport than the pair.
    Transport,
    /// The pair is in its error state.
    PairInError,
    /// Reliable connections: an earlier packet is missing. The pair asks for it with a NAK.
    Gap,
    /// Reliable connections: the packet came before. The pair acknowledges it again.
    Duplicate,
    /// The packet is the middle or the end of a message that has no beginning.
    OpcodeSequence,
    /// The opcode is not supported.
    Opcode,
    /// The packet's length differs from the length that it states.
    Length,
    /// The packet has more bytes than the pair's MTU.
    Mtu,
    /// No region has this key.
    Key,
    /// Some of the bytes lie outside the region.
    Bounds,
    /// The packet is in order but has no bytes. Its sequence number counts.
    Empty,
}

impl RoceRefusal {
    /// All reasons, in the order in which they are tested.
    pub const ALL: [Self; 17] = [
        Self::Form,
        Self::Version,
        Self::Partition,
        Self::UnknownPair,
        Self::Icrc,
        Self::Peer,
        Self::Transport,
        Self::PairInError,
        Self::Gap,
        Self::Duplicate,
        Self::OpcodeSequence,
        Self::Opcode,
        Self::Length,
        Self::Mtu,
        Self::Key,
        Self::Bounds,
        Self::Empty,
    ];

    /// A counter name: lower case with underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Version => "wrong_version",
            Self::Partition => "wrong_partition",
            Self::UnknownPair => "unknown_pair",
            Self::Icrc => "wrong_icrc",
            Self::Peer => "wrong_peer",
            Self::Transport => "wrong_transport",
            Self::PairInError => "pair_in_error",
            Self::Gap => "gap",
            Self::Duplicate => "duplicate",
            Self::OpcodeSequence => "opcode_sequence",
            Self::Opcode => "unknown_opcode",
            Self::Length => "wrong_length",
            Self::Mtu => "over_mtu",
            Self::Key => "wrong_key",
            Self::Bounds => "out_of_bounds",
            Self::Empty => "empty",
        }
    }

    pub(super) const fn of_form(why: RoceError) -> Self {
        match why {
            RoceError::Version => Self::Version,
            RoceError::Partition => Self::Partition,
            RoceError::Transport => Self::Transport,
            _ => Self::Form,
        }
    }
}

impl fmt::Display for RoceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counters of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RdmaCounts {
    /// Packets that were accepted, with a place for their bytes.
    pub placed: u64,
    /// Payload bytes of the accepted packets.
    pub bytes: u64,
    /// Unreliable connections: accepted packets whose number was not the next.
    pub resynchronised: u64,
    refused: [u64; RoceRefusal::ALL.len()],
}

impl RdmaCounts {
    /// Packets refused for this reason.
    pub const fn refused(&self, why: RoceRefusal) -> u64 {
        self.refused[why as usize]
    }

    pub(super) fn place(&mut self, bytes: usize) {
        self.placed += 1;
        self.bytes += bytes as u64;
    }

    pub(super) fn refuse(&mut self, why: RoceRefusal) {
        self.refused[why as usize] += 1;
    }
}

/// Why memory could not be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum RdmaError {
    /// Another region has this key: draw another.
    #[error("another region has this key: draw another")]
    KeyTaken,
    /// The region has no bytes.
    #[error("a region of no bytes cannot be registered: give it some")]
    NoBytes,
    /// The region would reach past the last address: begin it lower.
    #[error("the region reaches past the last address: begin it lower")]
    Address,
}
