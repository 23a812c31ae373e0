//! When something first comes from each source.

use sluice_wire::Nanos;

use super::agenda::Moment;

/// Most sources of a world: the agenda, the alarms, clocks and lanes.
pub(crate) const SOURCES_MAX: usize = 1 << LEVELS_MAX;
/// Levels of the largest tree, and bits of a source's number, which stands below a moment's order.
const LEVELS_MAX: u32 = 5;
/// Levels of a rack's tree, which has code of its own: every event climbs it two or three times.
const LEVELS_FEW: u32 = 3;
/// Places in the tree.
const NODES: usize = 2 * SOURCES_MAX;

/// A winner tree over the sources, in one place.
#[derive(Debug)]
pub(crate) struct Heads {
    /// Leaves stand behind as many other nodes; the node `n` holds the earlier of `2n` and `2n + 1`.
    nodes: [u128; NODES],
    are_few: bool,
}

impl Heads {
    /// So many sources, of which nothing comes.
    pub(crate) fn new(sources: usize) -> Self {
        assert!(sources <= SOURCES_MAX, "{sources} sources, and there is room for {SOURCES_MAX}");
        Self { nodes: [Moment::NEVER.key(); NODES], are_few: sources <= 1 << LEVELS_FEW }
    }

    /// When something next comes from a source.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, Moment { at, order }: Moment) {
        let key = Moment::new(at, order << LEVELS_MAX | source as u64).key();
        if self.are_few {
            self.climb::<LEVELS_FEW>(source, key);
        } else {
            self.climb::<LEVELS_MAX>(source, key);
        }
    }

    #[inline]
    fn climb<const LEVELS: u32>(&mut self, source: usize, mut best: u128) {
        let leaves = 1 << LEVELS;
        // So that no place is out of bounds.
        let mut place = leaves + source % leaves;
        self.nodes[place] = best;
        for _ in 0..LEVELS {
            best = best.min(self.nodes[(place ^ 1) % NODES]);
            place /= 2;
            self.nodes[place % NODES] = best;
        }
    }

    /// When the first of all comes, and from which source.
    #[inline]
    pub(crate) const fn first(&self) -> (Nanos, usize) {
        let key = self.nodes[1];
        (Nanos((key >> 64) as u64), key as usize % SOURCES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    #[test]
    fn the_first_is_the_earliest_and_of_one_time_the_one_that_was_entered_first() {
        let mut dice = Dice::new(1, 1);
        for sources in [2, 3, 4, 8, 9, SOURCES_MAX] {
            let mut heads = Heads::new(sources);
            let mut model = vec![(Nanos(u64::MAX), u64::MAX); sources];
            for order in 0..1_000 {
                let source = dice.below(sources as u64) as usize;
                let at = Nanos(dice.below(40));
                heads.set(source, Moment::new(at, order));
                model[source] = (at, order);
                let first = (0..sources).min_by_key(|source| model[*source]).expect("there are some");
                assert_eq!(heads.first(), (model[first].0, first));
            }
        }
    }
}
