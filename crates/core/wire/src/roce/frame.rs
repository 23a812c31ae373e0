//! The whole Ethernet frame: what a capture shows, and what a data plane writes that has no kernel below
//! it.
//!
//! UDP checksums are not checked, since the iCRC covers more. They are written over IPv6 only, which
//! requires them.

use super::icrc::Prefix;
use super::layout::{IPV4_BYTES, IPV6_BYTES, UDP_BYTES};
use super::path::{DONT_FRAGMENT, IPV4_ADDRESSES_AT, IPV6_ADDRESSES_AT, PORT, UDP_PROTOCOL, found};
use super::{Path, View};
use crate::{EncodeError, Endpoint, RoceError};

/// An Ethernet address.
pub type Mac = [u8; 6];

const ETHERNET_BYTES: usize = 14;
const ETHERTYPE_AT: usize = 12;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
/// How many routers a frame may pass.
const HOPS: u8 = 64;

/// The two ends of an Ethernet hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Link {
    pub from: Mac,
    pub to: Mac,
}

/// How many bytes a frame takes with a transport part of `transport` bytes.
pub const fn frame_len(path: &Path, transport: usize) -> usize {
    ETHERNET_BYTES + path.header_bytes() + transport
}

/// Writes a frame around a transport part to the front of `out` and returns how many bytes it wrote:
/// [`frame_len`]. The headers are those that a [`Path`]'s iCRC assumes.
pub fn encode_frame(
    link: &Link,
    path: &Path,
    transport: &[u8],
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let udp_bytes = u16::try_from(UDP_BYTES + transport.len()).map_err(|_| EncodeError::PayloadLength)?;
    let total = udp_bytes.checked_add(IPV4_BYTES as u16).ok_or(EncodeError::PayloadLength)?;
    let needs = frame_len(path, transport.len());
    let has = out.len();
    let out = out.get_mut(..needs).ok_or(EncodeError::Buffer { needs, has })?;
    let (ethernet, behind) = out.split_at_mut(ETHERNET_BYTES);
    ethernet[..6].copy_from_slice(&link.to);
    ethernet[6..12].copy_from_slice(&link.from);
    ethernet[ETHERTYPE_AT..].copy_from_slice(if path.is_v4() { &ETHERTYPE_IPV4 } else { &ETHERTYPE_IPV6 });
    let (ip, datagram) = behind.split_at_mut(path.header_bytes() - UDP_BYTES);
    datagram[..2].copy_from_slice(&path.from().port.to_be_bytes());
    datagram[2..4].copy_from_slice(&path.to().port.to_be_bytes());
    datagram[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
    datagram[6..8].fill(0);
    datagram[UDP_BYTES..].copy_from_slice(transport);
    if path.is_v4() {
        ipv4(ip, path, total);
    } else {
        ipv6(ip, path, udp_bytes);
        let checksum = udp_checksum(&ip[IPV6_ADDRESSES_AT..], datagram);
        datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
    }
    Ok(needs)
}

fn ipv4(out: &mut [u8], path: &Path, total: u16) {
    out.fill(0);
    out[0] = 0x45;
    out[2..4].copy_from_slice(&total.to_be_bytes());
    out[6..8].copy_from_slice(&DONT_FRAGMENT);
    out[8] = HOPS;
    out[9] = UDP_PROTOCOL;
    out[IPV4_ADDRESSES_AT..16].copy_from_slice(&path.from().ip[12..]);
    out[16..].copy_from_slice(&path.to().ip[12..]);
    let checksum = !ones_sum(out);
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn ipv6(out: &mut [u8], path: &Path, payload: u16) {
    out.fill(0);
    out[0] = 0x60;
    out[4..6].copy_from_slice(&payload.to_be_bytes());
    out[6] = UDP_PROTOCOL;
    out[7] = HOPS;
    out[IPV6_ADDRESSES_AT..24].copy_from_slice(&path.from().ip);
    out[24..].copy_from_slice(&path.to().ip);
}

/// The checksum of a UDP datagram over IPv6, computed with zero in its checksum field.
fn udp_checksum(addresses: &[u8], datagram: &[u8]) -> u16 {
    let rest = datagram.len() as u64 + u64::from(UDP_PROTOCOL);
    match !folded(sum_of_words(addresses) + sum_of_words(datagram) + rest) {
        // A zero in the field would mean that there is no checksum.
        0 => 0xffff,
        checksum => checksum,
    }
}

/// The Internet's ones' complement sum of 16-bit words; all ones over a header with a right checksum.
fn ones_sum(header: &[u8]) -> u16 {
    folded(sum_of_words(header))
}

fn sum_of_words(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(2).map(|two| u64::from(u16::from_be_bytes([two[0], two[1]]))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A frame whose headers are valid, up to the transport part.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    pub link: Link,
    pub path: Path,
    /// The bytes of the UDP datagram, for [`View`] to read.
    pub transport: &'a [u8],
    prefix: Prefix,
}

impl<'a> Frame<'a> {
    /// Checks Ethernet, IP and UDP. Bytes behind the IP packet are Ethernet padding and are left out.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RoceError> {
        let (ethernet, ip) = bytes.split_first_chunk::<ETHERNET_BYTES>().ok_or(RoceError::Short)?;
        let [to @ .., _, _, _, _, _, _, _, _] = *ethernet;
        let [_, _, _, _, _, _, from @ .., _, _] = *ethernet;
        let (is_v4, packet) = match [ethernet[ETHERTYPE_AT], ethernet[ETHERTYPE_AT + 1]] {
            ETHERTYPE_IPV4 => (true, whole_ipv4(ip)?),
            ETHERTYPE_IPV6 => (false, whole_ipv6(ip)?),
            _ => return Err(RoceError::EtherType),
        };
        let (header, datagram) = packet.split_at(if is_v4 { IPV4_BYTES } else { IPV6_BYTES });
        let (udp, transport) = datagram.split_first_chunk::<UDP_BYTES>().ok_or(RoceError::Short)?;
        let word = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
        if word(2) != PORT {
            return Err(RoceError::Port);
        }
        if usize::from(word(4)) != datagram.len() {
            return Err(RoceError::UdpLength);
        }
        let path = path_of(header, is_v4, word(0), word(2)).ok_or(RoceError::Ip)?;
        let prefix = found(&packet[..header.len() + UDP_BYTES], is_v4);
        Ok(Self { link: Link { from, to }, path, transport, prefix })
    }

    /// Whether `view`, of this frame's transport part, has the iCRC for these headers.
    pub fn icrc_holds(&self, view: &View<'_>) -> bool {
        view.icrc_holds_behind(self.prefix)
    }
}

/// Checks that this is an unfragmented IPv4 packet of UDP without options, whose checksum holds.
fn whole_ipv4(ip: &[u8]) -> Result<&[u8], RoceError> {
    let header = ip.get(..IPV4_BYTES).ok_or(RoceError::Short)?;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0xbfff;
    if header[0] != 0x45 || fragment != 0 {
        return Err(RoceError::Ip);
    }
    if ones_sum(header) != 0xffff {
        return Err(RoceError::IpChecksum);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    udp_packet(ip, IPV4_BYTES, header[9], total)
}

/// Checks that this is an IPv6 packet of UDP without extension headers.
fn whole_ipv6(ip: &[u8]) -> Result<&[u8], RoceError> {
    let header = ip.get(..IPV6_BYTES).ok_or(RoceError::Short)?;
    if header[0] >> 4 != 6 {
        return Err(RoceError::Ip);
    }
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    udp_packet(ip, IPV6_BYTES, header[6], IPV6_BYTES + payload)
}

fn udp_packet(ip: &[u8], header: usize, protocol: u8, total: usize) -> Result<&[u8], RoceError> {
    if protocol != UDP_PROTOCOL {
        return Err(RoceError::Protocol);
    }
    if total < header + UDP_BYTES {
        return Err(RoceError::Ip);
    }
    ip.get(..total).ok_or(RoceError::Short)
}

fn path_of(header: &[u8], is_v4: bool, from_port: u16, to_port: u16) -> Option<Path> {
    let (from, to) = if is_v4 {
        (mapped(&header[IPV4_ADDRESSES_AT..16]), mapped(&header[16..20]))
    } else {
        (array(&header[IPV6_ADDRESSES_AT..24]), array(&header[24..40]))
    };
    let path = Path::between(Endpoint { ip: from, port: from_port }, Endpoint { ip: to, port: to_port })?;
    // IPv4-mapped addresses in IPv6 headers never leave a host.
    (path.is_v4() == is_v4).then_some(path)
}

fn mapped(v4: &[u8]) -> [u8; 16] {
    let mut ip = [0; 16];
    ip[10..12].fill(0xff);
    ip[12..].copy_from_slice(v4);
    ip
}

fn array(v6: &[u8]) -> [u8; 16] {
    let mut ip = [0; 16];
    ip.copy_from_slice(v6);
    ip
}
