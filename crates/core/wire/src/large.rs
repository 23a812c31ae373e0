//! A large task's descriptor: its length and a checksum of its bytes, which fit the eight bytes that the
//! switch keeps of a task (Rain §4).
//!
//! The client computes the descriptor and the switch only copies it. A worker checks with it whether the
//! bytes in a slot are this task's, or those of another task that used the slot before or after.

use crate::{INLINE_BYTES, Incarnation, Serial, TaskId};

/// Bytes at the start of a slot that hold the task's id; the task's bytes follow.
pub const SLOT_HEAD_BYTES: usize = 12;

/// The most bytes that a task or a reply may have.
pub const TASK_BYTES_MAX: u32 = 64 * 1024;

/// The length and the CRC-32 (IEEE 802.3) of a large payload's bytes, four bytes each, big endian.
///
/// A length beyond 32 bits is cut off; no task is that long.
pub fn large_descriptor(bytes: &[u8]) -> [u8; INLINE_BYTES] {
    let length = bytes.len() as u32;
    let checksum = crc32fast::hash(bytes);
    (u64::from(length) << 32 | u64::from(checksum)).to_be_bytes()
}

/// The first bytes of a slot that holds this task: incarnation (8 bytes) and sequence (4 bytes), big
/// endian.
pub fn slot_head(task: TaskId) -> [u8; SLOT_HEAD_BYTES] {
    let mut head = [0; SLOT_HEAD_BYTES];
    let (incarnation, sequence) = head.split_at_mut(8);
    incarnation.copy_from_slice(&task.incarnation.0.to_be_bytes());
    sequence.copy_from_slice(&task.sequence.0.to_be_bytes());
    head
}

/// The task that a slot's first bytes name, and the bytes behind them.
pub fn read_slot(slot: &[u8]) -> Option<(TaskId, &[u8])> {
    let (incarnation, rest) = slot.split_first_chunk()?;
    let (sequence, bytes) = rest.split_first_chunk()?;
    let incarnation = Incarnation(u64::from_be_bytes(*incarnation));
    Some((TaskId { incarnation, sequence: Serial(u32::from_be_bytes(*sequence)) }, bytes))
}

/// The length that the descriptor states, in bytes.
pub const fn descriptor_len(descriptor: [u8; INLINE_BYTES]) -> u32 {
    (u64::from_be_bytes(descriptor) >> 32) as u32
}

/// Whether the descriptor was computed from these bytes.
pub fn check_large(descriptor: [u8; INLINE_BYTES], bytes: &[u8]) -> bool {
    large_descriptor(bytes) == descriptor
}
