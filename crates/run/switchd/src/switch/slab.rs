//! Memory for long payloads beside the queue entries: a bounded number of equal cells.

use sluice_wire::Handle;

/// A bounded store for payloads that do not fit into a queue entry.
#[derive(Debug)]
pub(super) struct Slab {
    bytes: Vec<u8>,
    cells: u32,
    cell_bytes: usize,
    free: Vec<u32>,
    /// Cells from this one on were never used, so their memory was never touched.
    fresh: u32,
}

impl Slab {
    /// A slab of at most `slab_bytes`, in cells of `cell_bytes`.
    pub(super) fn new(slab_bytes: usize, cell_bytes: usize) -> Self {
        let cells = (slab_bytes / cell_bytes).min(u32::MAX as usize - 1);
        Self {
            bytes: vec![0; cells * cell_bytes],
            cells: cells as u32,
            cell_bytes,
            free: Vec::with_capacity(cells),
            fresh: 0,
        }
    }

    /// Reserves a cell; `None` if all are taken.
    #[inline]
    pub(super) fn reserve(&mut self) -> Option<Handle> {
        if let Some(cell) = self.free.pop() {
            return Some(Handle(cell));
        }
        if self.fresh == self.cells {
            return None;
        }
        self.fresh += 1;
        Some(Handle(self.fresh - 1))
    }

    /// Copies a waiting task's bytes into its cell.
    #[inline]
    pub(super) fn fill(&mut self, cell: Handle, bytes: &[u8]) {
        let start = cell.0 as usize * self.cell_bytes;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// The first `length` bytes in a cell.
    #[inline]
    pub(super) fn bytes(&self, cell: Handle, length: u16) -> &[u8] {
        let start = cell.0 as usize * self.cell_bytes;
        self.bytes.get(start..start + length as usize).unwrap_or(&[])
    }

    /// Frees a cell.
    #[inline]
    pub(super) fn release(&mut self, cell: Handle) {
        self.free.push(cell.0);
    }

    /// How many cells are taken.
    #[inline]
    pub(super) fn taken(&self) -> usize {
        self.fresh as usize - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_slab_has_no_room_until_a_cell_comes_back() {
        let mut slab = Slab::new(100, 50);
        let first = slab.reserve().expect("two cells");
        let second = slab.reserve().expect("two cells");
        assert_ne!(first, second);
        assert_eq!(slab.reserve(), None);
        slab.release(first);
        assert_eq!(slab.reserve(), Some(first));
        assert_eq!(slab.taken(), 2);
    }
}
