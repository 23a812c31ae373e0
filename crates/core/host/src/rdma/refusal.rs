//! Why a packet is refused, and how many were.

use core::fmt;

use sluice_wire::RoceError;
use thiserror::Error;

/// Why nothing of a packet is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoceRefusal {
    /// Too short, not whole words, or more padding than bytes.
    Form,
    /// Another version of the transport.
    Version,
    /// Another partition.
    Partition,
    /// No pair has this number.
    UnknownPair,
    /// The iCRC is not that of the packet and its path.
    Icrc,
    /// It comes from another address than the pair's writer.
    Peer,
    /// Of another transport than the pair.
    Transport,
    /// The pair is in its error state.
    PairInError,
    /// Reliable connections: an earlier packet is missing; it is asked for once.
    Gap,
    /// Reliable connections: it came before, and is acknowledged again.
    Duplicate,
    /// The middle or the end of a message that has no beginning.
    OpcodeSequence,
    /// An opcode that is not taken.
    Opcode,
    /// Its length is not the one that it states.
    Length,
    /// More bytes than the pair's MTU.
    Mtu,
    /// No region has this key.
    Key,
    /// Not all of its bytes lie in the region.
    Bounds,
    /// It is in order, but has no bytes; its sequence number counts.
    Empty,
}

impl RoceRefusal {
    /// All of them, in the order in which they are looked for.
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

    /// A name to count under: lower case, underscores.
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

/// What has come to an endpoint so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RdmaCounts {
    /// Packets with a place for their bytes.
    pub placed: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Unreliable connections: packets taken that were not the next.
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

/// Why memory is not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum RdmaError {
    /// Another region has this key: draw another.
    #[error("another region has this key: draw another")]
    KeyTaken,
    /// A region of no bytes.
    #[error("a region of no bytes cannot be registered: give it some")]
    NoBytes,
    /// The region would reach past the last address: begin it lower.
    #[error("the region reaches past the last address: begin it lower")]
    Address,
}
