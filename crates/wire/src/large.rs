//! What a large task's eight inline bytes hold: enough to know its bytes by (Rain §4).
//!
//! The submitter computes them and the switch only copies them, so that a worker can tell the task's bytes from
//! another's that lay in the same slot.

use crate::INLINE_BYTES;

/// The length and the CRC-32 (IEEE 802.3) of a large payload's bytes, four bytes each, big endian.
///
/// A length beyond 32 bits is cut off; no task is that long.
pub fn large_descriptor(bytes: &[u8]) -> [u8; INLINE_BYTES] {
    let length = bytes.len() as u32;
    let checksum = crc32fast::hash(bytes);
    (u64::from(length) << 32 | u64::from(checksum)).to_be_bytes()
}

/// How many bytes the descriptor was made of.
pub const fn descriptor_len(descriptor: [u8; INLINE_BYTES]) -> u32 {
    (u64::from_be_bytes(descriptor) >> 32) as u32
}

/// Whether these are the bytes that the descriptor was made of.
pub fn check_large(descriptor: [u8; INLINE_BYTES], bytes: &[u8]) -> bool {
    large_descriptor(bytes) == descriptor
}
