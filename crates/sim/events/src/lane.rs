//! Links whose delay is the same for every packet: what left first arrives first, and needs no sorting.

use sluice_wire::Nanos;

use crate::event_queue::Moment;

/// What is under way on one link, in the order in which it arrives: a ring that grows to what was under way
/// at most.
#[derive(Debug)]
pub(crate) struct Lane<T> {
    /// Empty, or a power of two.
    ring: Vec<(Moment, T)>,
    /// Counts what left and what entered; both go round in the ring.
    head: usize,
    tail: usize,
    last: Nanos,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { ring: Vec::new(), head: 0, tail: 0, last: Nanos(0) }
    }
}

impl<T: Copy> Lane<T> {
    /// The next one, and when it arrives.
    #[inline]
    pub(crate) fn first(&self) -> Option<&(Moment, T)> {
        if self.head == self.tail { None } else { Some(&self.ring[self.place(self.head)]) }
    }

    /// Whether something that arrives then comes after all that was ever under way.
    #[inline]
    pub(crate) fn takes(&self, at: Nanos) -> bool {
        self.last <= at
    }

    /// Adds what arrives last; says whether it is also the first.
    #[inline]
    pub(crate) fn push(&mut self, moment: Moment, item: T) -> bool {
        debug_assert!(self.takes(moment.at), "a lane must be entered in order");
        if self.tail - self.head == self.ring.len() {
            self.grow((moment, item));
        }
        let place = self.place(self.tail);
        self.ring[place] = (moment, item);
        self.last = moment.at;
        self.tail += 1;
        self.tail - self.head == 1
    }

    /// Takes what arrives next out; there is something.
    #[inline]
    pub(crate) fn pop(&mut self) -> T {
        debug_assert!(self.head != self.tail, "nothing is under way");
        let item = self.ring[self.place(self.head)].1;
        self.head += 1;
        item
    }

    #[inline]
    fn place(&self, count: usize) -> usize {
        count & self.ring.len().wrapping_sub(1)
    }

    #[cold]
    fn grow(&mut self, filler: (Moment, T)) {
        let under_way = (self.head..self.tail).map(|count| self.ring[self.place(count)]);
        let mut ring: Vec<_> = under_way.collect();
        (self.head, self.tail) = (0, ring.len());
        ring.resize((2 * ring.len()).max(8), filler);
        self.ring = ring;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_first_arrives_first_however_much_is_under_way() {
        let mut lane = Lane::default();
        let (mut entered, mut left) = (0, 0);
        for round in 0..2_000_u64 {
            for _ in 0..round % 7 {
                assert_eq!(lane.push(Moment::new(Nanos(entered), entered), entered), entered == left);
                entered += 1;
            }
            for _ in 0..round % 6 {
                let first = (Moment::new(Nanos(left), left), left);
                assert_eq!(lane.first(), (left < entered).then_some(&first));
                if left < entered {
                    assert_eq!(lane.pop(), left);
                    left += 1;
                }
            }
        }
        assert!(!lane.takes(Nanos(entered.saturating_sub(2))) && lane.takes(Nanos(entered)));
    }
}
