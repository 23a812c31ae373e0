//! A replication cut into consecutive parts, with the tasks of each counted in coarse cells.
//!
//! Values come from [`Distribution`](super::Distribution)s. The parts show how far chance moves these
//! values. Tasks of one busy time share their fate, so a million tasks may say as much as a thousand
//! independent ones, and only a comparison of the run's parts can show it.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::distribution::{self, VALUE_MAX};

/// Parts of a steady run: enough to see how far tasks depend on each other, and few enough to be kept.
pub const PARTS: u32 = 32;

/// There are 2⁴ cells from a value to its double.
const CELLS_BITS: u32 = 4;
/// Cells of a part; there is one more edge than cells.
const CELLS: usize = distribution::index_of(VALUE_MAX, CELLS_BITS) as usize + 1;

/// The sizes of the values in each part of a replication. Recording never allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The part that is being recorded.
    at: usize,
    /// The counts of cells, one row per part.
    counts: Vec<u32>,
    /// The exact sum of each part's values.
    sums: Vec<u64>,
}

impl Parts {
    /// So many empty parts; none if chance is not to be estimated.
    pub(super) fn new(parts: u32) -> Self {
        let parts = parts as usize;
        Self { at: 0, counts: vec![0; parts * CELLS], sums: vec![0; parts] }
    }

    /// Adds these values to the present part.
    #[inline]
    pub(super) fn record_all(&mut self, values: impl IntoIterator<Item = u64>) {
        let Some(of_part) = self.sums.get_mut(self.at) else { return };
        let (counts, mut sum) = (&mut self.counts[self.at * CELLS..][..CELLS], *of_part);
        for value in values {
            let value = value.min(VALUE_MAX);
            counts[cell_of(value)] += 1;
            sum = sum.saturating_add(value);
        }
        *of_part = sum;
    }

    /// Begins the next part; the last part goes on to the end.
    pub(super) fn next(&mut self) {
        self.at = (self.at + 1).min(self.sums.len().saturating_sub(1));
    }

    /// How many parts there are.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// How many values of a part lie below a cell's lower edge.
    pub(super) fn below(&self, part: usize, edge: usize) -> u64 {
        self.row(part)[..edge].iter().map(|count| u64::from(*count)).sum()
    }

    /// How many values a part has.
    pub(super) fn count(&self, part: usize) -> u64 {
        self.below(part, CELLS)
    }

    /// The sum of a part's values.
    pub(super) fn sum(&self, part: usize) -> u64 {
        self.sums[part]
    }

    /// Adds another class's values of the same parts.
    pub(super) fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }

    /// The same parts with each value multiplied by `factor`, to a cell.
    #[must_use]
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let mut scaled = Self::new(self.len() as u32);
        for part in 0..self.len() {
            for (cell, count) in self.row(part).iter().enumerate().filter(|(_, count)| **count > 0) {
                let middle = f64::midpoint(edge(cell) as f64, edge(cell + 1) as f64);
                let to = cell_of(((middle * factor) as u64).min(VALUE_MAX));
                scaled.counts[part * CELLS + to] += count;
            }
            scaled.sums[part] = (self.sums[part] as f64 * factor) as u64;
        }
        scaled
    }

    fn row(&self, part: usize) -> &[u32] {
        &self.counts[part * CELLS..][..CELLS]
    }
}

/// The cell of a value; its two edges are the cell's own number and the next number.
pub(super) fn cell_of(value: u64) -> usize {
    distribution::index_of(value, CELLS_BITS) as usize
}

/// The smallest value of a cell.
fn edge(cell: usize) -> u64 {
    distribution::lowest_of(cell as u64, CELLS_BITS)
}

/// A part on disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    sum: u64,
    counts: Vec<i64>,
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = |part: usize| {
            let cells = self.row(part).iter().enumerate().filter(|(_, count)| **count > 0);
            let counts = distribution::packed(cells.map(|(cell, count)| (cell as u64, u64::from(*count))));
            Stored { sum: self.sums[part], counts }
        };
        serializer.collect_seq((0..self.len()).map(stored))
    }
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored: Vec<Stored> = Vec::deserialize(deserializer)?;
        let parts = u32::try_from(stored.len()).map_err(D::Error::custom)?;
        let mut read = Self::new(parts);
        for (part, Stored { sum, counts }) in stored.into_iter().enumerate() {
            for (cell, count) in
                distribution::unpacked(&counts, CELLS as u64 - 1).map_err(D::Error::custom)?
            {
                read.counts[part * CELLS + cell as usize] = u32::try_from(count).map_err(D::Error::custom)?;
            }
            read.sums[part] = sum;
        }
        read.at = read.len().saturating_sub(1);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(first: &[u64], second: &[u64]) -> Parts {
        let mut parts = Parts::new(2);
        for value in first {
            parts.record_all([*value]);
        }
        parts.next();
        for value in second {
            parts.record_all([*value]);
        }
        parts
    }

    #[test]
    fn each_part_knows_its_own_values() {
        let parts = two(&[10, 2_000], &[5_000]);
        assert_eq!([parts.count(0), parts.count(1)], [2, 1]);
        assert_eq!([parts.sum(0), parts.sum(1)], [2_010, 5_000]);
        assert_eq!([parts.below(0, cell_of(1_000)), parts.below(1, cell_of(1_000))], [1, 0]);
    }

    #[test]
    fn the_last_part_goes_on_to_the_end() {
        let mut parts = two(&[10], &[20]);
        parts.next();
        parts.record_all([30]);
        assert_eq!([parts.count(0), parts.count(1)], [1, 2]);
    }

    #[test]
    fn what_was_stored_comes_back_the_same() {
        let parts = two(&[0, 1, 31, 32, 1_000_000, u64::MAX], &[7; 1_000]);
        let text = serde_json::to_string(&parts).expect("it can be written");
        assert_eq!(serde_json::from_str::<Parts>(&text).expect("it can be read"), parts);
        assert!(serde_json::from_str::<Parts>(r#"[{"sum":1,"counts":[-9999,1]}]"#).is_err());
        assert!(serde_json::from_str::<Parts>(r#"[{"sum":1,"counts":[4294967296]}]"#).is_err());
    }

    #[test]
    fn scaling_moves_values_to_where_they_belong() {
        let scaled = two(&[10_000; 3], &[20_000; 4]).scaled(0.1);
        assert_eq!([scaled.below(0, cell_of(900)), scaled.below(0, cell_of(1_200))], [0, 3]);
        assert_eq!([scaled.below(1, cell_of(1_200)), scaled.below(1, cell_of(2_200))], [0, 4]);
        assert_eq!(scaled.sum(1), 8_000);
    }

    #[test]
    fn without_parts_nothing_is_kept() {
        let mut none = Parts::new(0);
        none.record_all([5]);
        none.next();
        assert_eq!(none.len(), 0);
    }
}
