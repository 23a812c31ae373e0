//! Payload bytes beside the state machines, which name them by [`Handle`].
//!
//! A slab of buffers that keep their capacity unless it is large, so that a host in steady state does not
//! allocate. Bounded: at the bound nothing more is taken.

use sluice_wire::{Handle, INLINE_BYTES, Payload, check_large, large_descriptor};

/// A buffer that grew beyond this is given back: few payloads are long, and in time each buffer would have
/// held one.
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
    /// Room for at most `most` payloads. Nothing is allocated before the first.
    pub(crate) const fn new(most: usize) -> Self {
        Self { cells: Vec::new(), free: Vec::new(), most }
    }

    /// Copies `bytes` in. `None` when it is full.
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

    /// A payload made of `bytes`, which are kept here if they are too many to be inline; one packet brings at
    /// most `most` of them. `None` when it is full.
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

    /// The bytes behind a handle; none behind [`Handle::NONE`] or one that was released.
    pub(crate) fn get(&self, handle: Handle) -> &[u8] {
        let cell = self.cells.get(handle.0 as usize).filter(|cell| cell.taken);
        cell.map(|cell| &cell.bytes[..]).unwrap_or_default()
    }

    /// A payload's bytes, wherever they are.
    pub(crate) fn bytes<'a>(&'a self, payload: &'a Payload) -> &'a [u8] {
        let inline = payload.inline.get(..usize::from(payload.len));
        inline.unwrap_or_else(|| self.get(payload.handle))
    }

    /// The bytes that one packet brings, as far as they lie behind its header: none if they are inline.
    pub(crate) fn first(&self, payload: &Payload) -> &[u8] {
        let all = if payload.is_large() { self.get(payload.handle) } else { &[] };
        all.get(..usize::from(payload.len)).unwrap_or_default()
    }

    /// Room for all bytes of a task, of which these are the first.
    pub(crate) fn begin(&mut self, first: &[u8], total: usize) -> Option<Handle> {
        let handle = self.insert(first)?;
        self.cells[handle.0 as usize].bytes.resize(total, 0);
        Some(handle)
    }

    /// Copies a part's bytes to their place among a task's.
    pub(crate) fn place(&mut self, at: Handle, offset: u32, part: &Payload) {
        let bytes = self.bytes(part).to_vec();
        let whole = self.cells.get_mut(at.0 as usize).filter(|cell| cell.taken);
        let start = offset as usize;
        if let Some(room) = whole.and_then(|cell| cell.bytes.get_mut(start..start + bytes.len())) {
            room.copy_from_slice(&bytes);
        }
    }

    /// Forgets the bytes behind a handle.
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

/// The bytes of a payload that came with `body` behind its header; `None` if they are not the ones it
/// describes.
pub(crate) fn received<'a>(payload: &'a Payload, body: &'a [u8]) -> Option<&'a [u8]> {
    if payload.is_large() {
        check_large(payload.inline, body).then_some(body)
    } else {
        payload.inline.get(..usize::from(payload.len))
    }
}

/// The payload of a packet that brings these bytes of a whole with this descriptor, and what stands behind
/// its header.
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
