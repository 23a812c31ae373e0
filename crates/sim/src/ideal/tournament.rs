//! The smallest of a fixed number of keys, of which one changes at a time.

/// A winner tree. With few entries this is quicker than a heap: a change costs one comparison a level, which the
/// processor can do without guessing a branch.
#[derive(Clone, Debug)]
pub(super) struct Tournament {
    /// Leaves stand in the upper half; the node `n` holds the smaller of `2n` and `2n + 1`.
    nodes: Vec<u64>,
    leaves: usize,
    entry_bits: u32,
}

impl Tournament {
    /// So many entries, all with the same key.
    pub(super) fn new(entries: usize, key: u64) -> Self {
        let leaves = entries.next_power_of_two();
        let entry_bits = leaves.trailing_zeros();
        let mut tournament = Self { nodes: vec![u64::MAX; 2 * leaves], leaves, entry_bits };
        for entry in 0..entries {
            tournament.set(entry, key);
        }
        tournament
    }

    /// Keys above this count as this.
    fn key_max(&self) -> u64 {
        u64::MAX >> self.entry_bits
    }

    /// Gives an entry another key.
    #[inline]
    pub(super) fn set(&mut self, entry: usize, key: u64) {
        let mut best = key.min(self.key_max()) << self.entry_bits | entry as u64;
        let mut at = self.leaves + entry;
        self.nodes[at] = best;
        while at > 1 {
            best = best.min(self.nodes[at ^ 1]);
            at /= 2;
            self.nodes[at] = best;
        }
    }

    /// The smallest key and its entry; of equal keys, the first entry's.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        // With one leaf, that leaf is the root.
        let best = self.nodes[1];
        (best >> self.entry_bits, best as usize & (self.leaves - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    #[test]
    fn the_smallest_key_wins_and_of_equal_ones_the_first() {
        let mut dice = Dice::new(1, 1);
        for entries in [1, 2, 3, 7, 64, 100] {
            let mut keys = vec![50; entries];
            let mut tournament = Tournament::new(entries, 50);
            for _ in 0..1_000 {
                let entry = dice.below(entries as u64) as usize;
                keys[entry] = dice.below(40);
                tournament.set(entry, keys[entry]);
                let least = *keys.iter().min().expect("there are keys");
                let first = keys.iter().position(|key| *key == least).expect("it is one of them");
                assert_eq!(tournament.first(), (least, first));
            }
        }
    }

    #[test]
    fn the_largest_key_still_loses_to_every_other() {
        let mut tournament = Tournament::new(5, u64::MAX);
        tournament.set(3, 1 << 50);
        assert_eq!(tournament.first(), (1 << 50, 3));
    }
}
