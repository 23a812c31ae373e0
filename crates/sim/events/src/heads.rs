//! The time of the next event of each source.

use sluice_wire::Nanos;

use crate::event_queue::Moment;
use crate::group::{GROUP, Keys};

/// The most sources of a world: the event queue, the timers, clocks and lanes.
pub(crate) const SOURCES_MAX: usize = GROUP * GROUPS;
/// In a key, the source takes these bits below the order of entry.
const SOURCE_BITS: u32 = 16;
/// Groups of keys; the sources of a rack fit one group.
const GROUPS: usize = 4;

/// The sources' keys, unsorted. An event changes two or three of them, so one search for the earliest of
/// all costs less than a tree that each change has to climb.
#[derive(Debug)]
pub(crate) struct Heads {
    groups: [Keys; GROUPS],
    /// How many groups have sources.
    used: usize,
}

impl Heads {
    /// Room for so many sources, none of which has an event.
    pub(crate) fn new(sources: usize) -> Self {
        let mut heads = Self { groups: [Keys::of(Moment::NEVER.key()); GROUPS], used: 0 };
        heads.make_room(sources);
        heads
    }

    /// Makes room for so many sources; new ones have no event.
    pub(crate) fn make_room(&mut self, sources: usize) {
        assert!(sources <= SOURCES_MAX, "{sources} sources, and there is room for {SOURCES_MAX}");
        self.used = sources.div_ceil(GROUP);
    }

    /// Sets the moment of a source's next event.
    #[inline]
    pub(crate) fn set(&mut self, source: EventSource, Moment { at, order }: Moment) {
        let key = Moment::new(at, order << SOURCE_BITS | u64::from(source.0)).key();
        let source = source.source();
        self.groups[source / GROUP].set(source, key);
    }

    /// The time of the next event of all, and its source.
    #[inline]
    pub(crate) fn first(&self) -> (Nanos, EventSource) {
        let [few, more @ ..] = &self.groups;
        let mut key = few.earliest();
        for group in more.iter().take(self.used - 1) {
            key = key.min(group.earliest());
        }
        (Nanos((key >> 64) as u64), EventSource(key as u16))
    }
}

/// A source of events: its number, its kind, and for a lane the node to which its next message goes. All of
/// these stand in the key, so the next action is known before anything else is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventSource(u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    EventQueue,
    TimerTree,
    Clock,
    Lane,
}

impl EventSource {
    /// The kind stands above the source's number, and the node above the kind.
    const KIND_SHIFT: u32 = SOURCES_MAX.ilog2();
    const NODE_SHIFT: u32 = 8;

    pub(crate) const fn new(source: usize, kind: SourceKind) -> Self {
        Self(source as u16 | (kind as u16) << Self::KIND_SHIFT)
    }

    /// The same source, whose next message goes to this node.
    #[inline]
    pub(crate) const fn to_node(self, node: u8) -> Self {
        Self(self.0 & ((1 << Self::NODE_SHIFT) - 1) | (node as u16) << Self::NODE_SHIFT)
    }

    #[inline]
    pub(crate) const fn source(self) -> usize {
        self.0 as usize % SOURCES_MAX
    }

    /// The node to which the next message of a lane goes.
    #[inline]
    pub(crate) const fn node(self) -> u8 {
        (self.0 >> Self::NODE_SHIFT) as u8
    }

    #[inline]
    pub(crate) const fn kind(self) -> SourceKind {
        match self.0 >> Self::KIND_SHIFT & 3 {
            0 => SourceKind::EventQueue,
            1 => SourceKind::TimerTree,
            2 => SourceKind::Clock,
            _ => SourceKind::Lane,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_dice::Dice;

    #[test]
    fn the_first_is_the_earliest_and_of_one_time_the_one_that_was_entered_first() {
        let mut dice = Dice::new(1, 1);
        for sources in [2, 3, 4, 8, 9, SOURCES_MAX] {
            let mut heads = Heads::new(sources);
            let mut model = vec![(Nanos(u64::MAX), u64::MAX); sources];
            for order in 0..1_000 {
                let source = dice.below(sources as u64) as usize;
                let at = Nanos(dice.below(40));
                let kind = if source.is_multiple_of(2) { SourceKind::Lane } else { SourceKind::Clock };
                let from = EventSource::new(source, kind).to_node(source as u8 + 1);
                heads.set(from, Moment::new(at, order));
                model[source] = (at, order);
                let first = (0..sources).min_by_key(|source| model[*source]).expect("there are some");
                let (at, from) = heads.first();
                assert_eq!((at, from.source()), (model[first].0, first));
                if at < Nanos(u64::MAX) {
                    assert_eq!(usize::from(from.node()), first + 1);
                    assert_eq!(from.kind() == SourceKind::Lane, first.is_multiple_of(2));
                }
            }
        }
    }
}
