//! Frames around datagrams: to build frames that the loader itself sends into the program, and to read
//! frames that leave it.

use std::net::{IpAddr, SocketAddr};

/// Header sizes: Ethernet, IPv6 and IPv4, UDP.
const ETHERNET: usize = 14;
const UDP: usize = 8;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const PROTOCOL_UDP: u8 = 17;

/// The Ethernet addresses of a built frame: destination, source.
pub const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// A datagram as a frame; `None` if the two addresses are of different families.
pub fn wrap(from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
    let udp_bytes = (UDP + bytes.len()) as u16;
    let mut frame = MACS.concat();
    let addresses: Vec<u8> = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            frame.extend(IPV4);
            let mut ip =
                [&[0x45, 0][..], &(20 + udp_bytes).to_be_bytes(), &[0, 0, 0x40, 0, 64, PROTOCOL_UDP, 0, 0]]
                    .concat();
            ip.extend([from.octets(), to.octets()].concat());
            let sum = !folded(sum(&ip));
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend(&ip);
            [from.octets(), to.octets()].concat()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            frame.extend(IPV6);
            frame.extend([0x60, 0, 0, 0]);
            frame.extend(udp_bytes.to_be_bytes());
            frame.extend([PROTOCOL_UDP, 64]);
            frame.extend([from.octets(), to.octets()].concat());
            [from.octets(), to.octets()].concat()
        }
        _ => return None,
    };
    let mut udp =
        [from.port().to_be_bytes(), to.port().to_be_bytes(), udp_bytes.to_be_bytes(), [0, 0]].concat();
    udp.extend(bytes);
    let check = match !folded(covered(&addresses, &udp)) {
        0 => 0xffff,
        check => check,
    };
    udp[6..8].copy_from_slice(&check.to_be_bytes());
    frame.extend(udp);
    Some(frame)
}

/// A frame taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwrapped<'a> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// The datagram's bytes.
    pub bytes: &'a [u8],
}

/// Reads the datagram in a frame. An error if an IP or UDP length or checksum, a hop count or a flag is not
/// what the switch sends.
pub fn unwrap(frame: &[u8]) -> Result<Unwrapped<'_>, &'static str> {
    let (ethernet, rest) = frame.split_at_checked(ETHERNET).ok_or("no Ethernet header")?;
    let (addresses, ips, udp) = match [ethernet[12], ethernet[13]] {
        IPV4 => unwrap4(rest)?,
        IPV6 => unwrap6(rest)?,
        _ => return Err("neither IPv4 nor IPv6"),
    };
    let (head, bytes) = udp.split_first_chunk::<UDP>().ok_or("no UDP header")?;
    let [from, to, length, check] = [0, 2, 4, 6].map(|at| u16::from_be_bytes([head[at], head[at + 1]]));
    if usize::from(length) != udp.len() {
        return Err("another UDP length");
    }
    // Over IPv6 the checksum must not be absent.
    let may_lack = addresses.len() == 8;
    if !(check == 0 && may_lack || check != 0 && folded(covered(addresses, udp)) == 0xffff) {
        return Err("a wrong UDP checksum");
    }
    Ok(Unwrapped { from: SocketAddr::new(ips[0], from), to: SocketAddr::new(ips[1], to), bytes })
}

type Opened<'a> = (&'a [u8], [IpAddr; 2], &'a [u8]);

fn unwrap4(rest: &[u8]) -> Result<Opened<'_>, &'static str> {
    let (ip, udp) = rest.split_first_chunk::<20>().ok_or("no IPv4 header")?;
    if ip[0] != 0x45 || ip[9] != PROTOCOL_UDP || ip[6..9] != [0x40, 0, 64] {
        return Err("an IPv4 header that the switch does not send");
    }
    if usize::from(u16::from_be_bytes([ip[2], ip[3]])) != rest.len() || folded(sum(ip)) != 0xffff {
        return Err("a wrong IPv4 length or checksum");
    }
    let part = |at: usize| IpAddr::from([ip[at], ip[at + 1], ip[at + 2], ip[at + 3]]);
    Ok((&rest[12..20], [part(12), part(16)], udp))
}

fn unwrap6(rest: &[u8]) -> Result<Opened<'_>, &'static str> {
    let (ip, udp) = rest.split_first_chunk::<40>().ok_or("no IPv6 header")?;
    if ip[..4] != [0x60, 0, 0, 0] || ip[6..8] != [PROTOCOL_UDP, 64] {
        return Err("an IPv6 header that the switch does not send");
    }
    if usize::from(u16::from_be_bytes([ip[4], ip[5]])) != udp.len() {
        return Err("a wrong IPv6 length");
    }
    let part = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&ip[at..at + 16]).expect("16 bytes"));
    Ok((&rest[8..40], [part(8), part(24)], udp))
}

/// The sum over the bytes that a UDP checksum covers.
fn covered(addresses: &[u8], udp: &[u8]) -> u64 {
    sum(addresses) + u64::from(PROTOCOL_UDP) + udp.len() as u64 + sum(udp)
}

fn sum(bytes: &[u8]) -> u64 {
    let (pairs, last) = bytes.as_chunks::<2>();
    let odd = last.first().map_or(0, |byte| u64::from(*byte) << 8);
    pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>() + odd
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
