//! A fixed number of timers, and which of them expires first.

use sluice_wire::Nanos;

use crate::event_queue::Moment;
use crate::group::{GROUP, Keys};

/// In a key, the timer takes these bits below the order of entry.
const ALARM_BITS: u32 = 24;

/// The id of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId(pub(crate) u32);

impl TimerId {
    /// The timer of a node's place, given the timer of the node's first place.
    #[inline]
    #[must_use]
    pub const fn of_place(self, place: u32) -> Self {
        Self(self.0 + place)
    }
}

/// A tournament tree of groups of keys.
#[derive(Debug)]
pub(crate) struct TimerTree {
    /// The levels, lowest first: each key of a level is the earliest of a group of the level below.
    levels: Vec<Vec<Keys>>,
    first: u128,
}

impl TimerTree {
    /// So many timers, none of which is set.
    pub(crate) fn new(timers: u32) -> Self {
        assert!(timers < 1 << ALARM_BITS, "{timers} timers are too many");
        let mut groups = timers as usize;
        let mut levels = Vec::new();
        while groups > 1 || levels.is_empty() {
            groups = groups.div_ceil(GROUP).max(1);
            levels.push(vec![Keys::of(Moment::NEVER.key()); groups]);
        }
        Self { levels, first: Moment::NEVER.key() }
    }

    /// Sets when the timer expires; the end of time means never.
    #[inline]
    pub(crate) fn set(&mut self, TimerId(timer): TimerId, Moment { at, order }: Moment) {
        let mut key = Moment::new(at, order << ALARM_BITS | u64::from(timer)).key();
        let mut place = timer as usize;
        for level in &mut self.levels {
            let group = &mut level[place / GROUP];
            group.set(place, key);
            key = group.earliest();
            place /= GROUP;
        }
        self.first = key;
    }

    /// The timer that expires first, and when it does.
    #[inline]
    pub(crate) const fn first(&self) -> (Moment, TimerId) {
        let (at, below) = ((self.first >> 64) as u64, self.first as u64);
        let moment = Moment::new(Nanos(at), below >> ALARM_BITS);
        (moment, TimerId(below as u32 & ((1 << ALARM_BITS) - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_dice::Dice;

    #[test]
    fn the_first_is_the_earliest_and_of_one_time_the_one_that_was_entered_first() {
        let mut dice = Dice::new(1, 1);
        for count in [1, 2, 7, 8, 9, 64, 65, 600] {
            let mut timers = TimerTree::new(count);
            let mut model = vec![(u64::MAX, u64::MAX); count as usize];
            for order in 0..3_000 {
                let (timer, at) = (dice.below(count.into()) as u32, dice.below(40));
                timers.set(TimerId(timer), Moment::new(Nanos(at), order));
                model[timer as usize] = (at, order);
                let (first, rings) = timers.first();
                let expected = model.iter().min().expect("there are some");
                assert_eq!((first.at.0, first.order), *expected);
                assert_eq!(model[rings.0 as usize], *expected);
            }
        }
    }
}
