//! What happens next: by time, then by order of entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sluice_wire::Nanos;

/// Events in the order in which they happen.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    entered: u64,
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), entered: 0 }
    }

    pub(crate) fn add(&mut self, at: Nanos, event: E) {
        self.entered += 1;
        self.heap.push(Reverse(Entry { at, order: self.entered, event }));
    }

    pub(crate) fn next(&mut self) -> Option<(Nanos, E)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

#[derive(Debug)]
struct Entry<E> {
    at: Nanos,
    order: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
