//! The invariant checksum: CRC-32 over everything that does not change on the way, with what does set to ones.

use crc32fast::Hasher;

use super::layout::{ICRC_BYTES, VARIANT_AT};
use super::path::{IPV6_BYTES, Pseudo, UDP_BYTES};

/// Stands for the link header that the checksum was once defined over.
const LINK_BYTES: usize = 8;
/// A checksum of so many bytes or more uses the processor's own instruction; shorter ones go byte by byte.
const FAST_BYTES: usize = 128;
/// Room for all headers, and for two fast pieces: nothing is ever left over that is too short for one.
const BLOCK_BYTES: usize = LINK_BYTES + IPV6_BYTES + UDP_BYTES + 2 * FAST_BYTES;

/// The checksum as it stands on the wire, of a transport part without it.
#[inline]
pub(super) fn icrc(headers: &Pseudo, transport: &[u8]) -> [u8; ICRC_BYTES] {
    let mut block = [0xff; BLOCK_BYTES];
    let headers = headers.as_bytes();
    let start = LINK_BYTES + headers.len();
    block[LINK_BYTES..start].copy_from_slice(headers);
    // Short packets are checked in one piece. Of long ones the first piece is just long enough to be fast.
    let short = transport.len() <= 2 * FAST_BYTES;
    let (head, rest) = transport.split_at(if short { transport.len() } else { FAST_BYTES });
    block[start..start + head.len()].copy_from_slice(head);
    block[start + VARIANT_AT] = 0xff;
    let mut hasher = Hasher::new();
    hasher.update(&block[..start + head.len()]);
    hasher.update(rest);
    hasher.finalize().to_le_bytes()
}
