//! A queue of packets that leave at a given time: for a testbed's delays, delaying faults, and paced
//! senders.
//!
//! A heap of due times over a slab of buffers. Buffers keep their capacity, so a queue in use does not
//! allocate. Packets with the same due time leave in the order in which they came.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sluice_wire::Nanos;

/// Items that wait for their due time, each with its bytes.
#[derive(Debug)]
pub struct DelayQueue<T> {
    due: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    cells: Vec<Cell<T>>,
    free: Vec<u32>,
    arrivals: u64,
    most: usize,
}

#[derive(Debug)]
struct Cell<T> {
    item: Option<T>,
    bytes: Vec<u8>,
}

/// An item that left a [`DelayQueue`]. Its bytes stay until [`DelayQueue::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due<T> {
    /// The due time.
    pub at: Nanos,
    pub item: T,
    /// The buffer with the item's bytes.
    pub cell: DelayedBytes,
}

/// Names the bytes of an item that left a [`DelayQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedBytes(u32);

impl<T> DelayQueue<T> {
    /// A queue for at most `most` packets. Allocates nothing before the first packet.
    pub const fn new(most: usize) -> Self {
        Self { due: BinaryHeap::new(), cells: Vec::new(), free: Vec::new(), arrivals: 0, most }
    }

    /// Stores `item` and a copy of `bytes` until `due`. Returns false, and stores nothing, if the queue is
    /// full.
    pub fn put(&mut self, due: Nanos, item: T, bytes: &[u8]) -> bool {
        let Some(cell) = self.vacant() else { return false };
        let place = &mut self.cells[cell as usize];
        place.item = Some(item);
        place.bytes.clear();
        place.bytes.extend_from_slice(bytes);
        self.due.push(Reverse((due, self.arrivals, cell)));
        self.arrivals += 1;
        true
    }

    /// When the next packet is due.
    pub fn next_due(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse((due, _, _))| *due)
    }

    /// Takes the next packet that is due at `now`.
    pub fn pop_due(&mut self, now: Nanos) -> Option<Due<T>> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse((at, _, cell)) = self.due.pop()?;
        let item = self.cells[cell as usize].item.take()?;
        Some(Due { at, item, cell: DelayedBytes(cell) })
    }

    /// The bytes of an item that left and was not released.
    pub fn bytes(&self, cell: DelayedBytes) -> &[u8] {
        &self.cells[cell.0 as usize].bytes
    }

    /// Moves the bytes out, for an owner that changes the queue while it reads them.
    pub fn take_bytes(&mut self, cell: DelayedBytes) -> Vec<u8> {
        std::mem::take(&mut self.cells[cell.0 as usize].bytes)
    }

    /// Returns a buffer that [`Self::take_bytes`] moved out, for reuse.
    pub fn put_bytes(&mut self, cell: DelayedBytes, bytes: Vec<u8>) {
        self.cells[cell.0 as usize].bytes = bytes;
    }

    /// Frees the buffer of an item that left.
    pub fn release(&mut self, cell: DelayedBytes) {
        self.free.push(cell.0);
    }

    /// How many packets are held.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether no packet is held.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    fn vacant(&mut self) -> Option<u32> {
        if let Some(cell) = self.free.pop() {
            return Some(cell);
        }
        if self.cells.len() >= self.most {
            return None;
        }
        self.cells.push(Cell { item: None, bytes: Vec::new() });
        Some(self.cells.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut DelayQueue<u32>, now: Nanos) -> Vec<(u32, Vec<u8>)> {
        let mut out = Vec::new();
        while let Some(due) = queue.pop_due(now) {
            out.push((due.item, queue.bytes(due.cell).to_vec()));
            queue.release(due.cell);
        }
        out
    }

    #[test]
    fn packets_leave_by_time_and_ties_by_arrival() {
        let mut queue = DelayQueue::new(8);
        for (at, item) in [(30, 1), (10, 2), (30, 3), (20, 4)] {
            assert!(queue.put(Nanos(at), item, &[item as u8]));
        }
        assert_eq!(queue.next_due(), Some(Nanos(10)));
        assert_eq!(drain(&mut queue, Nanos(20)), [(2, vec![2]), (4, vec![4])]);
        assert_eq!(drain(&mut queue, Nanos(29)), []);
        assert_eq!(drain(&mut queue, Nanos(30)), [(1, vec![1]), (3, vec![3])]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_takes_nothing_until_a_place_is_released() {
        let mut queue = DelayQueue::new(1);
        assert!(queue.put(Nanos(1), 1, b"a"));
        assert!(!queue.put(Nanos(1), 2, b"b"));
        let due = queue.pop_due(Nanos(1)).expect("it is due");
        assert!(!queue.put(Nanos(1), 2, b"b"));
        queue.release(due.cell);
        assert!(queue.put(Nanos(1), 2, b"b"));
    }
}
