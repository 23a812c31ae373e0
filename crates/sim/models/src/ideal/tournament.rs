//! The smallest of a fixed number of keys, one of which changes at a time.

/// A tournament tree. With few entries it is faster than a heap: a change costs one comparison per level,
/// without branches that the processor could mispredict.
///
/// A key contains the number of its entry in its lowest bits, which the caller sets; so no two keys are
/// equal.
#[derive(Clone, Debug)]
pub(crate) struct Tournament<K> {
    /// Leaves stand in the upper half; node `n` holds the smaller of `2n` and `2n + 1`.
    nodes: Vec<K>,
    leaves: usize,
}

impl<K: Ord + Copy> Tournament<K> {
    /// At least so many entries, all with this key, which must not be smaller than any other.
    pub(crate) fn new(entries: usize, last: K) -> Self {
        let leaves = entries.max(1);
        Self { nodes: vec![last; 2 * leaves], leaves }
    }

    #[inline]
    pub(crate) fn set(&mut self, entry: usize, key: K) {
        let mut best = key;
        let mut at = self.leaves + entry;
        self.nodes[at] = best;
        while at > 1 {
            best = best.min(self.nodes[at ^ 1]);
            at /= 2;
            self.nodes[at] = best;
        }
    }

    /// The smallest key.
    #[inline]
    pub(crate) fn first(&self) -> K {
        // With one leaf, the leaf is the root.
        self.nodes[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_events::dice::Dice;

    #[test]
    fn the_smallest_key_wins() {
        let mut dice = Dice::new(1, 1);
        for entries in [1, 2, 3, 7, 64, 100] {
            let mut keys = vec![u64::MAX; entries];
            let mut tournament = Tournament::new(entries, u64::MAX);
            for _ in 0..1_000 {
                let entry = dice.below(entries as u64) as usize;
                keys[entry] = dice.below(40) << 32 | entry as u64;
                tournament.set(entry, keys[entry]);
                assert_eq!(Some(tournament.first()), keys.iter().min().copied());
            }
        }
    }
}
