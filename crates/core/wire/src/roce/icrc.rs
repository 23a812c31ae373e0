//! The invariant checksum: CRC-32 over everything that does not change on the way, with what does set to
//! ones.
//!
//! It begins with eight bytes for the link and the IP and UDP headers. On one path these differ in two
//! lengths only, so that their part of the checksum is computed once per path, and the lengths are put in
//! from tables: a CRC is linear.

use crc32fast::Hasher;

use super::layout::{ICRC_BYTES, IPV4_BYTES, IPV6_BYTES, UDP_BYTES, VARIANT_AT};

/// Stands for the link header that the checksum was once defined over.
const LINK: [u8; 8] = [0xff; 8];
/// CRC-32's polynomial, lowest power in the highest bit.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The checksum so far, behind the link, IP and UDP headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Prefix(u32);

impl Prefix {
    /// Of headers in which all bits are set that may change.
    pub(super) fn of(headers: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(&LINK);
        hasher.update(headers);
        Self(hasher.finalize())
    }

    /// Of headers whose lengths, zero before, are these.
    #[inline]
    pub(super) fn with_lengths(self, is_v4: bool, ip: u16, udp: u16) -> Self {
        let tables = if is_v4 { &V4 } else { &V6 };
        let ([ip_high, ip_low], [udp_high, udp_low]) = (ip.to_be_bytes(), udp.to_be_bytes());
        let places = tables.iter().zip([ip_high, ip_low, udp_high, udp_low]);
        Self(places.fold(self.0, |sum, (table, byte)| sum ^ table[usize::from(byte)]))
    }

    /// The checksum as it stands on the wire, of a transport part without it.
    ///
    /// The byte that may change counts as ones, and is not touched: what it would have to differ by is put
    /// into what stands before it, so that all is one piece.
    #[inline]
    pub(super) fn icrc(self, transport: &[u8]) -> [u8; ICRC_BYTES] {
        let missing = transport.get(VARIANT_AT).map_or(0, |byte| !byte);
        let mut hasher = Hasher::new_with_initial(self.0 ^ AHEAD[usize::from(missing)]);
        hasher.update(transport);
        hasher.finalize().to_le_bytes()
    }
}

/// What each value of each of four bytes adds to the checksum: the length in the IP header, then that in the
/// UDP header.
type Lengths = [[u32; 256]; 4];

static V4: Lengths = lengths(IPV4_BYTES, 2);
static V6: Lengths = lengths(IPV6_BYTES, 4);

/// The tables for an IP header of so many bytes whose length stands here.
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

/// What a byte adds with so many bytes behind it.
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

/// What the checksum in front of the transport part must differ by, so that its byte that may change counts
/// as if it differed by this: the steps of a CRC, taken backwards.
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
