//! The two ends of a datagram, and the part of its IP and UDP headers that the iCRC covers.

use core::net::SocketAddr;

use super::icrc::Prefix;
use super::layout::{IPV4_BYTES, IPV6_BYTES, UDP_BYTES};
use crate::Endpoint;

/// The UDP port of `RoCEv2`.
pub const PORT: u16 = 4_791;

/// Offsets of the addresses in an IP header.
pub(super) const IPV4_ADDRESSES_AT: usize = 12;
pub(super) const IPV6_ADDRESSES_AT: usize = 8;
pub(super) const UDP_PROTOCOL: u8 = 17;
/// The first two bytes of the third word: do not fragment, first fragment.
pub(super) const DONT_FRAGMENT: [u8; 2] = [0x40, 0];

const V4_MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// The two ends of a datagram, of one address family, and the start of the iCRC between them. Make one per
/// peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    from: Endpoint,
    to: Endpoint,
    is_v4: bool,
    /// The start of the iCRC, with lengths of zero.
    prefix: Prefix,
}

impl Path {
    /// The path from one address to another; `None` if they are of two families.
    ///
    /// The addresses must be those in the headers: a socket that is bound to the unspecified address has
    /// none yet.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Option<Self> {
        Self::between(from.into(), to.into())
    }

    /// As [`Path::new`], with addresses as the wire carries them.
    pub fn between(from: Endpoint, to: Endpoint) -> Option<Self> {
        let is_v4 = is_v4(from);
        (is_v4 == self::is_v4(to)).then(|| Self { from, to, is_v4, prefix: assumed(from, to, is_v4) })
    }

    /// The sender's address.
    pub const fn from(&self) -> Endpoint {
        self.from
    }

    /// The receiver's address.
    pub const fn to(&self) -> Endpoint {
        self.to
    }

    /// Whether both ends are IPv4.
    pub const fn is_v4(&self) -> bool {
        self.is_v4
    }

    /// The path in the other direction.
    #[must_use]
    pub fn back(&self) -> Self {
        let prefix = assumed(self.to, self.from, self.is_v4);
        Self { from: self.to, to: self.from, is_v4: self.is_v4, prefix }
    }

    /// The start of the iCRC for a datagram with so many bytes in its transport part.
    #[inline]
    pub(super) fn prefix(&self, transport_bytes: usize) -> Prefix {
        let udp = (UDP_BYTES + transport_bytes) as u16;
        let ip = if self.is_v4 { udp.wrapping_add(IPV4_BYTES as u16) } else { udp };
        self.prefix.with_lengths(self.is_v4, ip, udp)
    }

    /// How many bytes the IP and UDP headers have.
    pub(super) const fn header_bytes(&self) -> usize {
        UDP_BYTES + if self.is_v4 { IPV4_BYTES } else { IPV6_BYTES }
    }
}

fn is_v4(at: Endpoint) -> bool {
    at.ip[..12] == V4_MAPPED
}

/// The headers that a plain socket's kernel writes: no options, DF, identification 0. Lengths are zero.
fn assumed(from: Endpoint, to: Endpoint, is_v4: bool) -> Prefix {
    let mut bytes = [0; IPV6_BYTES + UDP_BYTES];
    let ip_bytes = if is_v4 {
        bytes[0] = 0x45;
        bytes[6..8].copy_from_slice(&DONT_FRAGMENT);
        bytes[9] = UDP_PROTOCOL;
        bytes[IPV4_ADDRESSES_AT..16].copy_from_slice(&from.ip[12..]);
        bytes[16..20].copy_from_slice(&to.ip[12..]);
        IPV4_BYTES
    } else {
        bytes[0] = 0x60;
        bytes[6] = UDP_PROTOCOL;
        bytes[IPV6_ADDRESSES_AT..24].copy_from_slice(&from.ip);
        bytes[24..40].copy_from_slice(&to.ip);
        IPV6_BYTES
    };
    bytes[ip_bytes..ip_bytes + 2].copy_from_slice(&from.port.to_be_bytes());
    bytes[ip_bytes + 2..ip_bytes + 4].copy_from_slice(&to.port.to_be_bytes());
    found(&bytes[..ip_bytes + UDP_BYTES], is_v4)
}

/// The headers of a received packet: IPv4 without options or IPv6 without extensions, then UDP. Shorter
/// headers are filled up with zeros, longer ones are cut off.
pub(super) fn found(headers: &[u8], is_v4: bool) -> Prefix {
    let mut bytes = [0; IPV6_BYTES + UDP_BYTES];
    let given = headers.len().min(bytes.len());
    bytes[..given].copy_from_slice(&headers[..given]);
    let ip_bytes = if is_v4 {
        bytes[1] = 0xff;
        bytes[8] = 0xff;
        bytes[10..12].fill(0xff);
        IPV4_BYTES
    } else {
        bytes[0] |= 0x0f;
        bytes[1..4].fill(0xff);
        bytes[7] = 0xff;
        IPV6_BYTES
    };
    bytes[ip_bytes + 6..ip_bytes + UDP_BYTES].fill(0xff);
    Prefix::of(&bytes[..ip_bytes + UDP_BYTES])
}
