//! The entry with the smallest number; of equal ones the first.

use super::tournament::Tournament;

/// A number for each of a fixed number of entries.
#[derive(Clone, Debug)]
pub(super) struct Least {
    tree: Tournament<u64>,
    entry_bits: u32,
}

impl Least {
    /// So many entries, all with the same number.
    pub(super) fn new(entries: usize, number: u64) -> Self {
        let entry_bits = entries.next_power_of_two().trailing_zeros();
        let mut least = Self { tree: Tournament::new(entries, u64::MAX), entry_bits };
        for entry in 0..entries {
            least.set(entry, number);
        }
        least
    }

    /// Larger numbers count as this one.
    fn number_max(&self) -> u64 {
        u64::MAX >> self.entry_bits
    }

    #[inline]
    pub(super) fn set(&mut self, entry: usize, number: u64) {
        self.tree.set(entry, number.min(self.number_max()) << self.entry_bits | entry as u64);
    }

    /// The smallest number and its entry.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        let best = self.tree.first();
        (best >> self.entry_bits, best as usize & ((1 << self.entry_bits) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_events::dice::Dice;

    #[test]
    fn the_least_number_comes_first_and_of_equal_ones_the_first_entry() {
        let mut dice = Dice::new(1, 1);
        for entries in [1, 2, 3, 7, 64, 100] {
            let mut numbers = vec![50; entries];
            let mut least = Least::new(entries, 50);
            for _ in 0..1_000 {
                let entry = dice.below(entries as u64) as usize;
                numbers[entry] = dice.below(40);
                least.set(entry, numbers[entry]);
                let number = *numbers.iter().min().expect("there are some");
                let first = numbers.iter().position(|other| *other == number).expect("it is one of them");
                assert_eq!(least.first(), (number, first));
            }
        }
    }

    #[test]
    fn the_largest_number_still_comes_after_every_other() {
        let mut least = Least::new(5, u64::MAX);
        least.set(3, 1 << 50);
        assert_eq!(least.first(), (1 << 50, 3));
    }
}
