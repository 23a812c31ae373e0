//! The reasons why bytes are refused as a packet, and why a packet cannot be encoded.

use thiserror::Error;

/// Why bytes are refused. Drop them and count the reason; nothing else in them can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ParseError {
    /// There are fewer bytes than the header and the payload length that it states.
    #[error("shorter than its header says")]
    Short,
    /// There are more bytes than the header and the payload length that it states.
    #[error("longer than its header says")]
    Long,
    /// The version of the protocol is another one.
    #[error("another version of the protocol")]
    Version,
    /// No kind has this code.
    #[error("unknown kind")]
    Kind,
    /// The header's length is not this version's.
    #[error("wrong header length")]
    HeaderLength,
    /// The stated payload is longer than any datagram can hold.
    #[error("impossible payload length")]
    PayloadLength,
    /// A field that this kind does not use is not zero.
    #[error("an unused field is not zero")]
    Unused,
    /// The code has no meaning for this kind.
    #[error("unknown code")]
    Code,
    /// The inline bytes behind a short payload's end, or the trailer of a SUBMIT, are not zero.
    #[error("the padding behind the payload is not zero")]
    Padding,
    /// A number is larger than its meaning allows.
    #[error("a number out of range")]
    Range,
}

impl ParseError {
    /// All reasons.
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

    /// A name for counters: lower case, underscores.
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

/// Why a packet was not encoded: always a mistake of the caller, never of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum EncodeError {
    /// The buffer is shorter than [`encoded_len`](crate::encoded_len): offer a larger one.
    #[error("the buffer holds {has} bytes, the packet takes {needs}")]
    Buffer {
        /// How many bytes the packet needs.
        needs: usize,
        /// How many bytes the buffer has.
        has: usize,
    },
    /// The body is not as long as the payload states; or there is a body, and the payload is inline.
    #[error("the body holds {has} bytes, the payload states {needs}")]
    Body {
        /// How many bytes the payload states.
        needs: usize,
        /// How many bytes the body has.
        has: usize,
    },
    /// The payload is longer than [`MAX_PAYLOAD_BYTES`](crate::MAX_PAYLOAD_BYTES).
    #[error("the payload is longer than a datagram holds")]
    PayloadLength,
    /// The inline bytes behind a short payload's end are not zero.
    #[error("the padding behind the payload is not zero")]
    Padding,
}

/// Why bytes are refused as a `RoCEv2` packet. The last six reasons are about the headers below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum RoceError {
    /// There are fewer bytes than the headers, or than the opcode's own header.
    #[error("shorter than its headers")]
    Short,
    /// The length is not a whole number of words.
    #[error("not whole words")]
    Words,
    /// The version of the transport is another one.
    #[error("another version of the transport")]
    Version,
    /// The partition is not the default one.
    #[error("another partition")]
    Partition,
    /// The connection is neither reliable nor unreliable.
    #[error("neither RC nor UC")]
    Transport,
    /// The stated padding is longer than the bytes.
    #[error("more padding than bytes")]
    Padding,
    /// The opcode is not supported, or out of place.
    #[error("an opcode that is not taken")]
    Opcode,
    /// The stated length is not that of the bytes.
    #[error("another length than stated")]
    Length,
    /// The acknowledgement's syndrome has no meaning.
    #[error("a syndrome without a meaning")]
    Syndrome,
    /// The frame is neither IPv4 nor IPv6.
    #[error("neither IPv4 nor IPv6")]
    EtherType,
    /// The IP header has options, is a fragment, or states a wrong length.
    #[error("an IP header that is not taken")]
    Ip,
    /// The IPv4 header's checksum is wrong.
    #[error("a wrong IP checksum")]
    IpChecksum,
    /// The IP packet is not UDP.
    #[error("not UDP")]
    Protocol,
    /// The UDP port is not 4791.
    #[error("another UDP port")]
    Port,
    /// The UDP length differs from what the IP packet holds.
    #[error("a wrong UDP length")]
    UdpLength,
}
