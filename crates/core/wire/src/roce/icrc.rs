//! The invariant checksum: a CRC-32 over everything that does not change on the way; fields that change
//! count as ones.
//!
//! It begins with eight bytes for the link and with the IP and UDP headers. On one path these headers
//! differ in two lengths only. So their part of the checksum is computed once per path, and tables add the
//! lengths, because a CRC is linear.

use crc32fast::Hasher;

use super::layout::{ICRC_BYTES, IPV4_BYTES, IPV6_BYTES, UDP_BYTES, VARIANT_AT};

/// These bytes stand for the link header over which the checksum was once defined.
const LINK: [u8; 8] = [0xff; 8];
/// CRC-32's polynomial, lowest power in the highest bit.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The checksum so far, behind the link, IP and UDP headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Prefix(u32);

impl Prefix {
    /// The checksum of headers in which all bits that may change are set.
    pub(super) fn of(headers: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(&LINK);
        hasher.update(headers);
        Self(hasher.finalize())
    }

    /// The checksum of headers whose lengths were zero and are these now.
    #[inline]
    pub(super) fn with_lengths(self, is_v4: bool, ip: u16, udp: u16) -> Self {
        let tables = if is_v4 { &V4 } else { &V6 };
        let ([ip_high, ip_low], [udp_high, udp_low]) = (ip.to_be_bytes(), udp.to_be_bytes());
        let places = tables.iter().zip([ip_high, ip_low, udp_high, udp_low]);
        Self(places.fold(self.0, |sum, (table, byte)| sum ^ table[usize::from(byte)]))
    }

    /// The checksum of a transport part without its iCRC, as it stands on the wire.
    ///
    /// The byte that may change counts as ones, without a write to the buffer. Instead its difference is
    /// added to the checksum before it, so that the bytes stay in one piece.
    #[inline]
    pub(super) fn icrc(self, transport: &[u8]) -> [u8; ICRC_BYTES] {
        let missing = transport.get(VARIANT_AT).map_or(0, |byte| !byte);
        let mut hasher = Hasher::new_with_initial(self.0 ^ AHEAD[usize::from(missing)]);
        hasher.update(transport);
        hasher.finalize().to_le_bytes()
    }
}

/// How much each value of each of four bytes adds to the checksum: the length in the IP header, then the
/// length in the UDP header.
type Lengths = [[u32; 256]; 4];

static V4: Lengths = lengths(IPV4_BYTES, 2);
static V6: Lengths = lengths(IPV6_BYTES, 4);

/// The tables for an IP header of so many bytes, whose length stands at this offset.
const fn lengths(ip_bytes: usize, length_at: usize) -> Lengths {
    let end = ip_bytes + UDP_BYTES;
    let udp_length_at = ip_bytes + 4;
    [
        added_by(end - length_at - 1),
        added_by(end - length_at - 2),
        added_by(end - udp_length_at - 1),
        added_by(end - udp_length_at - 2),
    ]
}

/// How much each value of a byte adds, with so many bytes behind it.
const fn added_by(behind: usize) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut sum = byte as u32;
        let mut bits = 8 * (behind + 1);
        while bits > 0 {
            sum = sum >> 1 ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 };
            bits -= 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

/// The difference to add to the checksum in front of the transport part, so that its byte that may change
/// counts as if it differed by the index. It is found by the steps of a CRC, taken backwards.
static AHEAD: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut sum = byte as u32;
        let mut bits = 8 * VARIANT_AT;
        while bits > 0 {
            sum = if sum >> 31 == 1 { (sum ^ POLYNOMIAL) << 1 | 1 } else { sum << 1 };
            bits -= 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};
