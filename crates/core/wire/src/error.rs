//! Why bytes are no packet, and why a packet cannot be bytes.

use thiserror::Error;

/// Why bytes are refused. Drop them and count the reason; nothing else is known about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ParseError {
    /// Fewer bytes than the header and the payload that it states.
    #[error("shorter than its header says")]
    Short,
    /// More bytes than the header and the payload that it states.
    #[error("longer than its header says")]
    Long,
    /// Another version of the protocol.
    #[error("another version of the protocol")]
    Version,
    /// No kind has this code.
    #[error("unknown kind")]
    Kind,
    /// The header's length is not this version's.
    #[error("wrong header length")]
    HeaderLength,
    /// A payload that no datagram can hold.
    #[error("impossible payload length")]
    PayloadLength,
    /// A field that this kind does not use is not zero.
    #[error("an unused field is not zero")]
    Unused,
    /// The code means nothing for this kind.
    #[error("unknown code")]
    Code,
    /// The inline bytes behind a short payload's end are not zero.
    #[error("the padding behind the payload is not zero")]
    Padding,
    /// A number beyond what its meaning allows.
    #[error("a number out of range")]
    Range,
}

impl ParseError {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Short,
        Self::Long,
        Self::Version,
        Self::Kind,
        Self::HeaderLength,
        Self::PayloadLength,
        Self::Unused,
        Self::Code,
        Self::Padding,
        Self::Range,
    ];

    /// A name to count under: lower case, underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
            Self::Version => "wrong_version",
            Self::Kind => "unknown_kind",
            Self::HeaderLength => "wrong_header_length",
            Self::PayloadLength => "impossible_payload_length",
            Self::Unused => "unused_not_zero",
            Self::Code => "unknown_code",
            Self::Padding => "padding_not_zero",
            Self::Range => "out_of_range",
        }
    }
}

/// Why a packet was not encoded: a mistake of the caller's, never of the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum EncodeError {
    /// The buffer is shorter than [`encoded_len`](crate::encoded_len): offer a larger one.
    #[error("the buffer holds {has} bytes, the packet takes {needs}")]
    Buffer {
        /// What the packet takes, in bytes.
        needs: usize,
        /// What the buffer holds, in bytes.
        has: usize,
    },
    /// The body is not as long as the payload states (or there is one, and the payload is inline).
    #[error("the body holds {has} bytes, the payload states {needs}")]
    Body {
        /// What the payload states, in bytes.
        needs: usize,
        /// What was given, in bytes.
        has: usize,
    },
    /// The payload is longer than [`MAX_PAYLOAD_BYTES`](crate::MAX_PAYLOAD_BYTES).
    #[error("the payload is longer than a datagram holds")]
    PayloadLength,
    /// The inline bytes behind a short payload's end are not zero.
    #[error("the padding behind the payload is not zero")]
    Padding,
}

/// Why bytes are no `RoCEv2` packet that we take. The last six are about the headers below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum RoceError {
    /// Fewer bytes than the headers, or than the opcode's own header.
    #[error("shorter than its headers")]
    Short,
    /// Not a whole number of words.
    #[error("not whole words")]
    Words,
    /// Another version of the transport.
    #[error("another version of the transport")]
    Version,
    /// Another partition than the default one.
    #[error("another partition")]
    Partition,
    /// Neither a reliable nor an unreliable connection.
    #[error("neither RC nor UC")]
    Transport,
    /// More padding than there are bytes.
    #[error("more padding than bytes")]
    Padding,
    /// Nothing that we do, or out of its place.
    #[error("an opcode that is not taken")]
    Opcode,
    /// The length that is stated is not that of the bytes.
    #[error("another length than stated")]
    Length,
    /// An acknowledgement that says nothing.
    #[error("a syndrome without a meaning")]
    Syndrome,
    /// Neither IPv4 nor IPv6.
    #[error("neither IPv4 nor IPv6")]
    EtherType,
    /// An IP header with options, a fragment, or a wrong length.
    #[error("an IP header that is not taken")]
    Ip,
    /// The IPv4 header's checksum is wrong.
    #[error("a wrong IP checksum")]
    IpChecksum,
    /// Not UDP.
    #[error("not UDP")]
    Protocol,
    /// Another UDP port than 4791.
    #[error("another UDP port")]
    Port,
    /// The UDP length is not what the IP packet holds.
    #[error("a wrong UDP length")]
    UdpLength,
}
