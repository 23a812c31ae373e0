//! An event of a model's queue.

use core::cmp::Ordering;

use sluice_wire::Nanos;

/// An event; events are ordered by time, then by order of entry.
#[derive(Debug)]
pub(crate) struct QueuedEvent<E> {
    pub(crate) at: Nanos,
    pub(crate) entered: u64,
    pub(crate) event: E,
}

impl<E> PartialEq for QueuedEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.entered) == (other.at, other.entered)
    }
}

impl<E> Eq for QueuedEvent<E> {}

impl<E> PartialOrd for QueuedEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for QueuedEvent<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.entered).cmp(&(other.at, other.entered))
    }
}
