//! The content of large tasks.
//!
//! No bytes are stored. A piece of a task has a number as its content, which follows from the task, and a
//! piece is right if its number is the one of its task.

use std::collections::BTreeMap;

use sluice_host::PART_BYTES;
use sluice_wire::{Handle, INLINE_BYTES, Payload};

/// The longest first packet of a task in bytes, which is also the size of a slot.
pub(super) const FIRST_BYTES: u16 = 1_400;

/// The pieces of each task in a worker's memory.
pub(super) type Pieces = BTreeMap<Handle, Vec<Handle>>;

/// The content of a task with this descriptor.
pub(super) const fn content(descriptor: [u8; INLINE_BYTES]) -> Handle {
    Handle(u64::from_be_bytes(descriptor) as u32 & 0x7fff_ffff)
}

/// The content of a task in a worker's memory, if all its pieces agree.
pub(super) fn content_of(pieces: &[Handle]) -> Handle {
    let first = pieces.first().copied().unwrap_or(Handle::NONE);
    if pieces.iter().all(|piece| *piece == first) { first } else { Handle::NONE }
}

/// The pieces of a payload of which the first `have` bytes arrived.
pub(super) fn pieces(payload: &Payload, came: Handle, have: u16) -> Vec<Handle> {
    let count = payload.total().div_ceil(PART_BYTES);
    let is_whole = u32::from(have) >= payload.total();
    let there = if is_whole { count } else { u32::from(have) / PART_BYTES };
    (0..count).map(|index| if index < there { came } else { Handle::NONE }).collect()
}

/// Puts the pieces of a part in their places. A part of a few bytes is inline, and its content is not
/// checked.
pub(super) fn put(pieces: &mut [Handle], offset: u32, part: &Payload) -> Result<(), String> {
    let first = (offset / PART_BYTES) as usize;
    let count = u32::from(part.len).div_ceil(PART_BYTES) as usize;
    let room = pieces.get_mut(first..first + count).ok_or("promise 5: a part outside its whole")?;
    room.fill(part.handle);
    Ok(())
}
