//! Lanes: all links of one delay. A packet that left first arrives first, so packets need no sorting.

use sluice_wire::Nanos;

use crate::event_queue::Moment;

/// The packets under way on one lane, in order of arrival: a ring that grows to the largest number that was
/// ever under way.
#[derive(Debug)]
pub(crate) struct Lane<T> {
    /// Empty, or with a length that is a power of two.
    ring: Vec<(Moment, T)>,
    /// Counts of packets that left the ring and that entered it; modulo the length they are places in it.
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
    /// The next packet, and when it arrives.
    #[inline]
    pub(crate) fn first(&self) -> Option<&(Moment, T)> {
        if self.head == self.tail { None } else { Some(&self.ring[self.place(self.head)]) }
    }

    /// Whether a packet with this arrival comes after all that were ever in the lane.
    #[inline]
    pub(crate) fn takes(&self, at: Nanos) -> bool {
        self.last <= at
    }

    /// Adds a packet that arrives last; returns whether it is also the first.
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

    /// Takes the packet that arrives next; the lane must not be empty.
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
