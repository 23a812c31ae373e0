//! Payload bytes, stored beside the state machines, which name them by [`Handle`].
//!
//! A slab of buffers. Buffers keep their capacity unless it is large, so a host in steady state does not
//! allocate. The number of payloads is bounded; beyond the bound none is accepted.

use sluice_wire::{Handle, INLINE_BYTES, Payload, check_large, large_descriptor};

/// A buffer that grew beyond this size, in bytes, is freed: few payloads are long, but in time each buffer
/// would have held one.
const CAPACITY_KEPT: usize = 4_096;

/// The bytes of the payloads that a host keeps.
#[derive(Debug)]
pub(crate) struct Payloads {
    cells: Vec<Cell>,
    free: Vec<u32>,
    most: usize,
}

#[derive(Debug, Default)]
struct Cell {
    bytes: Vec<u8>,
    taken: bool,
}

impl Payloads {
    /// A store for at most `most` payloads. Allocates nothing before the first.
    pub(crate) const fn new(most: usize) -> Self {
        Self { cells: Vec::new(), free: Vec::new(), most }
    }

    /// Copies `bytes` in; `None` if the store is full.
    pub(crate) fn insert(&mut self, bytes: &[u8]) -> Option<Handle> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.cells.len() < self.most => {
                self.cells.push(Cell::default());
                self.cells.len() as u32 - 1
            }
            None => return None,
        };
        let cell = &mut self.cells[index as usize];
        cell.taken = true;
        cell.bytes.clear();
        cell.bytes.extend_from_slice(bytes);
        Some(Handle(index))
    }

    /// A payload of `bytes`, which are stored here if they are too many to be inline. One packet brings at
    /// most `most` of them. `None` if the store is full.
    pub(crate) fn keep_first(&mut self, bytes: &[u8], most: usize) -> Option<Payload> {
        let len = u16::try_from(bytes.len().min(most)).ok()?;
        let mut inline = [0; INLINE_BYTES];
        if let Some(place) = inline.get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
            return Some(Payload { len, inline, handle: Handle::NONE });
        }
        let handle = self.insert(bytes)?;
        Some(Payload { len, inline: large_descriptor(bytes), handle })
    }

    /// The bytes of a handle; empty for [`Handle::NONE`] and for a released handle.
    pub(crate) fn get(&self, handle: Handle) -> &[u8] {
        let cell = self.cells.get(handle.0 as usize).filter(|cell| cell.taken);
        cell.map(|cell| &cell.bytes[..]).unwrap_or_default()
    }

    /// A payload's bytes, inline or stored.
    pub(crate) fn bytes<'a>(&'a self, payload: &'a Payload) -> &'a [u8] {
        let inline = payload.inline.get(..usize::from(payload.len));
        inline.unwrap_or_else(|| self.get(payload.handle))
    }

    /// The bytes behind the header of a payload's first packet; empty if they are inline.
    pub(crate) fn first(&self, payload: &Payload) -> &[u8] {
        let all = if payload.is_large() { self.get(payload.handle) } else { &[] };
        all.get(..usize::from(payload.len)).unwrap_or_default()
    }

    /// Reserves room for all bytes of a task, and copies in the first ones.
    pub(crate) fn begin(&mut self, first: &[u8], total: usize) -> Option<Handle> {
        let handle = self.insert(first)?;
        self.cells[handle.0 as usize].bytes.resize(total, 0);
        Some(handle)
    }

    /// Copies a part's bytes to their offset in a task's bytes.
    pub(crate) fn place(&mut self, at: Handle, offset: u32, part: &Payload) {
        let bytes = self.bytes(part).to_vec();
        let whole = self.cells.get_mut(at.0 as usize).filter(|cell| cell.taken);
        let start = offset as usize;
        if let Some(room) = whole.and_then(|cell| cell.bytes.get_mut(start..start + bytes.len())) {
            room.copy_from_slice(&bytes);
        }
    }

    /// Releases the bytes of a handle.
    pub(crate) fn release(&mut self, handle: Handle) {
        if let Some(cell) = self.cells.get_mut(handle.0 as usize).filter(|cell| cell.taken) {
            cell.taken = false;
            if cell.bytes.capacity() > CAPACITY_KEPT {
                cell.bytes = Vec::new();
            }
            self.free.push(handle.0);
        }
    }

    /// How many payloads are kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.cells.len() - self.free.len()
    }
}

/// The bytes of a payload that came with `body` behind its header; `None` if they do not match its
/// descriptor.
pub(crate) fn received<'a>(payload: &'a Payload, body: &'a [u8]) -> Option<&'a [u8]> {
    if payload.is_large() {
        check_large(payload.inline, body).then_some(body)
    } else {
        payload.inline.get(..usize::from(payload.len))
    }
}

/// Splits a packet's part of a task or reply into the payload in the packet's header and the bytes behind
/// the header. Bytes that fit stand inline; otherwise the header contains `descriptor`, which describes the
/// whole.
pub(crate) fn described(bytes: &[u8], descriptor: [u8; INLINE_BYTES]) -> (Payload, &[u8]) {
    let len = bytes.len() as u16;
    let mut inline = [0; INLINE_BYTES];
    match inline.get_mut(..bytes.len()) {
        Some(place) => {
            place.copy_from_slice(bytes);
            (Payload { len, inline, handle: Handle::NONE }, &[])
        }
        None => (Payload { len, inline: descriptor, handle: Handle::NONE }, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_until_they_are_released() {
        let mut payloads = Payloads::new(2);
        let payload = payloads.keep_first(b"longer than eight", 1_400).expect("there is room");
        assert_eq!(payloads.get(payload.handle), b"longer than eight");
        payloads.release(payload.handle);
        payloads.release(payload.handle);
        assert_eq!(payloads.get(payload.handle), b"");
        assert_eq!(payloads.len(), 0);
    }

    #[test]
    fn at_the_bound_only_inline_payloads_are_taken() {
        let mut payloads = Payloads::new(1);
        assert!(payloads.keep_first(&[1; 9], 1_400).is_some());
        assert!(payloads.keep_first(&[2; 9], 1_400).is_none());
        assert_eq!(payloads.keep_first(&[3; 8], 1_400).map(|payload| payload.inline), Some([3; 8]));
    }

    #[test]
    fn bytes_that_are_not_the_described_ones_are_refused() {
        let mut payloads = Payloads::new(1);
        let payload = payloads.keep_first(b"some nine", 1_400).expect("there is room");
        assert_eq!(received(&payload, b"some nine"), Some(&b"some nine"[..]));
        assert_eq!(received(&payload, b"none nine"), None);
        let short = payloads.keep_first(b"abc", 1_400).expect("it is inline");
        assert_eq!(received(&short, b""), Some(&b"abc"[..]));
    }
}
