//! From where to where, and the part of the IP and UDP headers that the iCRC covers.

use core::net::SocketAddr;

use crate::Endpoint;

/// The UDP port that `RoCEv2` is received at.
pub const PORT: u16 = 4_791;

pub(super) const IPV4_BYTES: usize = 20;
pub(super) const IPV6_BYTES: usize = 40;
pub(super) const UDP_BYTES: usize = 8;
/// Where the addresses stand in an IP header.
pub(super) const IPV4_ADDRESSES_AT: usize = 12;
pub(super) const IPV6_ADDRESSES_AT: usize = 8;
pub(super) const UDP_PROTOCOL: u8 = 17;
/// The first two bytes of the third word: do not fragment, first fragment.
pub(super) const DONT_FRAGMENT: [u8; 2] = [0x40, 0];

const V4_MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// The two ends of a datagram, of one address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    from: Endpoint,
    to: Endpoint,
    is_v4: bool,
}

impl Path {
    /// From one address to another; `None` when they are of two families.
    ///
    /// The addresses must be those that the headers show: a socket bound to the unspecified address has not got one yet.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Option<Self> {
        Self::between(from.into(), to.into())
    }

    /// As [`Path::new`], of addresses as the wire carries them.
    pub fn between(from: Endpoint, to: Endpoint) -> Option<Self> {
        let is_v4 = is_v4(from);
        (is_v4 == self::is_v4(to)).then_some(Self { from, to, is_v4 })
    }

    /// Where it comes from.
    pub const fn from(&self) -> Endpoint {
        self.from
    }

    /// Where it goes to.
    pub const fn to(&self) -> Endpoint {
        self.to
    }

    /// Whether both ends are IPv4.
    pub const fn is_v4(&self) -> bool {
        self.is_v4
    }

    /// The way back.
    #[must_use]
    pub const fn back(&self) -> Self {
        Self { from: self.to, to: self.from, is_v4: self.is_v4 }
    }

    /// Bytes of the IP and UDP headers.
    pub(super) const fn header_bytes(&self) -> usize {
        UDP_BYTES + if self.is_v4 { IPV4_BYTES } else { IPV6_BYTES }
    }
}

fn is_v4(at: Endpoint) -> bool {
    at.ip[..12] == V4_MAPPED
}

/// IP and UDP headers with all bits set that may change on the way, as the iCRC takes them.
#[derive(Clone, Copy)]
pub(super) struct Pseudo {
    bytes: [u8; IPV6_BYTES + UDP_BYTES],
    len: usize,
}

impl Pseudo {
    /// The headers that a plain socket's kernel writes: no options, DF, identification 0.
    #[inline]
    pub(super) fn assumed(path: &Path, transport_bytes: usize) -> Self {
        let mut bytes = [0xff; IPV6_BYTES + UDP_BYTES];
        let udp_bytes = (UDP_BYTES + transport_bytes) as u16;
        let ip_bytes = if path.is_v4 {
            let total = (IPV4_BYTES as u16).wrapping_add(udp_bytes).to_be_bytes();
            bytes[0] = 0x45;
            bytes[2..4].copy_from_slice(&total);
            bytes[4..6].fill(0);
            bytes[6..8].copy_from_slice(&DONT_FRAGMENT);
            bytes[9] = UDP_PROTOCOL;
            bytes[12..16].copy_from_slice(&path.from.ip[12..]);
            bytes[16..20].copy_from_slice(&path.to.ip[12..]);
            IPV4_BYTES
        } else {
            bytes[0] = 0x6f;
            bytes[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
            bytes[6] = UDP_PROTOCOL;
            bytes[8..24].copy_from_slice(&path.from.ip);
            bytes[24..40].copy_from_slice(&path.to.ip);
            IPV6_BYTES
        };
        let udp = &mut bytes[ip_bytes..ip_bytes + UDP_BYTES];
        udp[..2].copy_from_slice(&path.from.port.to_be_bytes());
        udp[2..4].copy_from_slice(&path.to.port.to_be_bytes());
        udp[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
        Self { bytes, len: ip_bytes + UDP_BYTES }
    }

    /// Headers as they came: IPv4 without options or IPv6 without extensions, then UDP. Longer ones are cut off.
    pub(super) fn found(headers: &[u8], is_v4: bool) -> Self {
        let mut bytes = [0; IPV6_BYTES + UDP_BYTES];
        let len = headers.len().min(bytes.len());
        bytes[..len].copy_from_slice(&headers[..len]);
        if is_v4 {
            bytes[1] = 0xff;
            bytes[8] = 0xff;
            bytes[10..12].fill(0xff);
            bytes[IPV4_BYTES + 6..IPV4_BYTES + 8].fill(0xff);
        } else {
            bytes[0] |= 0x0f;
            bytes[1..4].fill(0xff);
            bytes[7] = 0xff;
            bytes[IPV6_BYTES + 6..].fill(0xff);
        }
        Self { bytes, len }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
