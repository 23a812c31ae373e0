//! A queue of events: by time, then by order of entry.

use sluice_wire::Nanos;

/// The time of an event and its position in the order of entry; no two events have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at: Nanos,
    pub(crate) order: u64,
}

impl Moment {
    /// Later than every event.
    pub(crate) const NEVER: Self = Self { at: Nanos(u64::MAX), order: u64::MAX };

    pub(crate) const fn new(at: Nanos, order: u64) -> Self {
        Self { at, order }
    }

    /// The time and position as one number, so that a comparison needs no branch.
    #[inline]
    pub(crate) const fn key(self) -> u128 {
        (self.at.0 as u128) << 64 | self.order as u128
    }
}

/// Children of a node of the heap: with four its depth is half of a binary heap's.
const ARITY: usize = 4;

/// Events in the order in which they happen. The heap sorts where they lie: an event may be large, and is not
/// moved until it happens.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    heap: Vec<(Moment, u32)>,
    places: Vec<Option<E>>,
    /// Places of events that have happened.
    free: Vec<u32>,
}

impl<E> EventQueue<E> {
    pub(crate) const fn new() -> Self {
        Self { heap: Vec::new(), places: Vec::new(), free: Vec::new() }
    }

    /// Enters an event. No two events may have the same moment: the caller counts entries.
    #[inline]
    pub(crate) fn enter(&mut self, moment: Moment, event: E) {
        let lies = self.keep(event);
        let mut place = self.heap.len();
        self.heap.push((moment, lies));
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.key(parent) < moment.key() {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = (moment, lies);
    }

    /// The moment of the next event.
    #[inline]
    pub(crate) fn first(&self) -> Moment {
        self.heap.first().map_or(Moment::NEVER, |(moment, _)| *moment)
    }

    /// Takes the next event out.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(Moment, E)> {
        let last = self.heap.pop()?;
        let (moment, lies) = self.heap.first().copied().unwrap_or(last);
        if !self.heap.is_empty() {
            self.sink(last);
        }
        self.free.push(lies);
        self.places[lies as usize].take().map(|event| (moment, event))
    }

    fn keep(&mut self, event: E) -> u32 {
        if let Some(lies) = self.free.pop() {
            self.places[lies as usize] = Some(event);
            return lies;
        }
        self.places.push(Some(event));
        self.places.len() as u32 - 1
    }

    /// Puts an entry where it belongs below the first place, which is free.
    fn sink(&mut self, entry: (Moment, u32)) {
        let mut place = 0;
        loop {
            let first = (place * ARITY + 1).min(self.heap.len());
            let children = &self.heap[first..(first + ARITY).min(self.heap.len())];
            let (mut child, mut least) = (place, entry);
            for (at, other) in (first..).zip(children) {
                if other.0.key() < least.0.key() {
                    (child, least) = (at, *other);
                }
            }
            if child == place {
                break;
            }
            self.heap[place] = least;
            place = child;
        }
        self.heap[place] = entry;
    }

    #[inline]
    fn key(&self, place: usize) -> u128 {
        self.heap[place].0.key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_dice::Dice;

    fn next(event_queue: &mut EventQueue<u64>) -> Option<(Nanos, u64)> {
        event_queue.take().map(|(moment, event)| (moment.at, event))
    }

    #[test]
    fn events_come_by_time_and_ties_in_the_order_of_entry() {
        let (mut dice, mut event_queue, mut model) = (Dice::new(1, 0), EventQueue::new(), Vec::new());
        for number in 0..5_000_u64 {
            let at = Nanos(dice.below(50));
            event_queue.enter(Moment::new(at, number), number);
            model.push((at, number));
            if dice.chance(400) {
                model.sort_unstable();
                assert_eq!(next(&mut event_queue), Some(model.remove(0)));
            }
        }
        model.sort_unstable();
        assert!(model.into_iter().all(|expected| next(&mut event_queue) == Some(expected)));
        assert_eq!(event_queue.first(), Moment::NEVER);
    }
}
