//! The one histogram type of the simulator.

use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The largest value that is told apart: 18 minutes in nanoseconds, or a slowdown of 10⁹ in thousandths.
pub(super) const VALUE_MAX: u64 = (1 << 40) - 1;

/// There are 2¹⁰ cells from a value to its double, so values are kept to a thousandth.
const CELLS_BITS: u32 = 10;
const CELLS: usize = index_of(VALUE_MAX, CELLS_BITS) as usize + 1;

/// A distribution of whole numbers: latencies in nanoseconds, slowdowns in thousandths.
///
/// Its size is fixed (about 240 KiB), so recording never allocates. Quantiles are right to a thousandth,
/// and the mean is exact. Distributions are merged; their quantiles are never averaged. The cells are those
/// of an HDR histogram of three digits, which `load` uses. Each task of a curve is counted in three
/// distributions, so counting has to be fast here.
#[derive(Clone)]
pub struct Distribution {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
}

impl Distribution {
    /// An empty distribution.
    pub fn new() -> Self {
        Self { counts: vec![0; CELLS], count: 0, sum: 0 }
    }

    /// Adds a value; a value above the range counts as the largest of the range.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_all([value]);
    }

    /// Adds these values.
    #[inline]
    pub(super) fn record_all(&mut self, values: impl IntoIterator<Item = u64>) {
        let (counts, mut count, mut sum) = (&mut self.counts[..], self.count, self.sum);
        for value in values {
            counts[cell(value)] += 1;
            count += 1;
            sum = sum.saturating_add(value);
        }
        (self.count, self.sum) = (count, sum);
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: &Self) {
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(count, more)| *count = count.saturating_add(*more));
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Forgets all values and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.sum) = (0, 0);
    }

    /// How many values were seen.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values, exact.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The mean of all values, exact; 0 if there are none.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 }
    }

    /// The smallest value that at least this share of all values does not exceed; 0 if there are none.
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.quantiles([quantile])[0]
    }

    /// Several quantiles in one pass; the shares must rise.
    ///
    /// Within a cell of the histogram, values count as uniformly spread: the cell's upper end would be up
    /// to a thousandth too high every time.
    pub fn quantiles<const N: usize>(&self, rising: [f64; N]) -> [u64; N] {
        let mut found = [0; N];
        let (mut at, mut below) = (0, 0.0);
        for (lowest, count) in self.cells() {
            let (_, end) = Self::cell_of(lowest);
            let width = end - lowest;
            while at < N && rising[at] * self.count() as f64 <= below + count as f64 {
                let share = (rising[at] * self.count() as f64 - below) / count as f64;
                found[at] = lowest + ((width as f64 * share.max(0.0)) as u64).min(width - 1);
                at += 1;
            }
            if at == N {
                break;
            }
            below += count as f64;
        }
        found
    }

    /// The ends of the cell that holds this quantile: it is known no better, however many values there are.
    /// Zeros if there are none.
    pub fn cell_at(&self, quantile: f64) -> (u64, u64) {
        Self::cell_of(self.quantile(quantile))
    }

    /// The ends of the cell that a value falls into.
    pub fn cell_of(value: u64) -> (u64, u64) {
        let cell = cell(value) as u64;
        (lowest_of(cell, CELLS_BITS), lowest_of(cell + 1, CELLS_BITS))
    }

    /// The smallest value, to a thousandth; 0 if there are none.
    pub fn min(&self) -> u64 {
        self.cells().next().map_or(0, |(lowest, _)| lowest)
    }

    /// The largest value, to a thousandth; 0 if there are none.
    pub fn max(&self) -> u64 {
        self.cells().last().map_or(0, |(lowest, _)| Self::cell_of(lowest).1 - 1)
    }

    /// The cells that are not empty, rising: the smallest value of each, and how many values it holds.
    pub fn cells(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut left = self.count;
        let all = self.counts.iter().enumerate().take_while(move |(_, count)| {
            let is_any = left > 0;
            left = left.saturating_sub(**count);
            is_any
        });
        all.filter(|(_, count)| **count > 0).map(|(cell, count)| (lowest_of(cell as u64, CELLS_BITS), *count))
    }

    /// The same values multiplied by `factor`, to a thousandth.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let mut scaled = Self::new();
        for (lowest, count) in self.cells() {
            let (_, end) = Self::cell_of(lowest);
            scaled.fill(cell(((lowest + (end - lowest) / 2) as f64 * factor) as u64), count);
        }
        scaled.sum = (self.sum as f64 * factor) as u64;
        scaled
    }

    fn fill(&mut self, cell: usize, times: u64) {
        self.counts[cell] = self.counts[cell].saturating_add(times);
        self.count = self.count.saturating_add(times);
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Distribution {
    fn eq(&self, other: &Self) -> bool {
        self.sum == other.sum && self.cells().eq(other.cells())
    }
}

impl Eq for Distribution {}

impl fmt::Debug for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99] = self.quantiles([0.5, 0.99]);
        f.debug_struct("Distribution")
            .field("count", &self.count())
            .field("mean", &self.mean())
            .field("p50", &p50)
            .field("p99", &p99)
            .finish()
    }
}

/// The form on disk: the exact sum, and the count of each cell from the cell of 0 on. A negative number
/// stands for so many empty cells.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    sum: u64,
    counts: Vec<i64>,
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = packed(self.cells().map(|(lowest, count)| (index_of(lowest, CELLS_BITS), count)));
        Stored { sum: self.sum, counts }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { sum, counts } = Stored::deserialize(deserializer)?;
        let mut read = Self::new();
        for (cell, count) in unpacked(&counts, index_of(VALUE_MAX, CELLS_BITS)).map_err(de::Error::custom)? {
            read.fill(cell as usize, count);
        }
        read.sum = sum;
        Ok(read)
    }
}

/// Packs rising cells with their counts into one list, in which a negative number stands for so many empty
/// cells.
pub(super) fn packed(cells: impl Iterator<Item = (u64, u64)>) -> Vec<i64> {
    let mut counts = Vec::new();
    let mut next = 0;
    for (cell, count) in cells {
        if cell > next {
            counts.push(-((cell - next) as i64));
        }
        counts.push(count as i64);
        next = cell + 1;
    }
    counts
}

/// Unpacks the cells that are not empty; an error if one is beyond `last`.
pub(super) fn unpacked(counts: &[i64], last: u64) -> Result<Vec<(u64, u64)>, &'static str> {
    let mut cells = Vec::new();
    let mut at = 0u64;
    for count in counts {
        if at > last {
            return Err("there are more counts than a distribution has cells");
        }
        if *count > 0 {
            cells.push((at, count.unsigned_abs()));
            at += 1;
        } else {
            at = at.saturating_add(count.unsigned_abs());
        }
    }
    Ok(cells)
}

/// The cell of a value; values above the range fall into the last cell.
#[inline]
fn cell(value: u64) -> usize {
    index_of(value.min(VALUE_MAX), CELLS_BITS) as usize
}

/// The number of a value's cell if every doubling has 2^`bits` cells, and small values have one cell each.
#[inline]
pub(super) const fn index_of(value: u64, bits: u32) -> u64 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(bits + 1);
    ((shift as u64) << bits) + (value >> shift)
}

/// The smallest value of a cell.
pub(super) const fn lowest_of(index: u64, bits: u32) -> u64 {
    let shift = (index >> bits).saturating_sub(1);
    (index - (shift << bits)) << shift
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Distribution {
        let mut distribution = Distribution::new();
        values.into_iter().for_each(|value| distribution.record(value));
        distribution
    }

    #[test]
    fn quantiles_of_small_values_are_exact_and_of_large_ones_right_to_a_thousandth() {
        let small = of(1..=100);
        assert_eq!(small.quantiles([0.01, 0.5, 0.99, 1.0]), [1, 50, 99, 100]);
        let large = of((1..=100_000).map(|n| n * 1_000));
        for (quantile, right) in [(0.5, 5.0e7), (0.9, 9.0e7), (0.99, 9.9e7), (0.999, 9.99e7)] {
            let error = large.quantile(quantile) as f64 / right - 1.0;
            assert!(error.abs() < 1e-4, "{quantile}: {error}");
        }
    }

    #[test]
    fn the_mean_is_exact() {
        let distribution = of([1_000_003, 1_000_004]);
        assert!((distribution.mean() - 1_000_003.5).abs() < 1e-9);
        assert_eq!(distribution.sum(), 2_000_007);
    }

    #[test]
    fn merging_is_the_same_as_recording_in_one() {
        let mut merged = of((0..1_000).map(|n| n * n));
        merged.merge(&of((0..1_000).map(|n| n * 7_777)));
        assert_eq!(merged, of((0..1_000).flat_map(|n| [n * n, n * 7_777])));
    }

    #[test]
    fn what_was_stored_comes_back_the_same() {
        let distribution = of((0..2_000).map(|n| n * n * n));
        let text = serde_json::to_string(&distribution).expect("it can be written");
        let read: Distribution = serde_json::from_str(&text).expect("it can be read");
        assert_eq!(read, distribution);
        assert_eq!(serde_json::to_string(&read).expect("it can be written"), text);
    }

    #[test]
    fn cells_are_those_of_an_hdr_histogram_of_three_digits() {
        let histogram = Histogram::<u64>::new_with_bounds(1, VALUE_MAX, 3).expect("the bounds are legal");
        let mut lowest = 0;
        for index in 0..=index_of(VALUE_MAX, CELLS_BITS) {
            assert_eq!((index_of(lowest, CELLS_BITS), lowest_of(index, CELLS_BITS)), (index, lowest));
            lowest = histogram.next_non_equivalent(lowest);
        }
        assert_eq!(lowest, VALUE_MAX + 1);
    }

    #[test]
    fn broken_stores_are_refused() {
        let beyond = format!(r#"{{"sum":1,"counts":[-{},1]}}"#, index_of(VALUE_MAX, CELLS_BITS) + 1);
        for text in [&beyond, r#"{"sum":1,"counts":[-9223372036854775808,1]}"#, r#"{"sum":1}"#] {
            assert!(serde_json::from_str::<Distribution>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_above_the_range_counts_as_its_largest() {
        let distribution = of([u64::MAX]);
        assert_eq!(distribution.count(), 1);
        assert!(distribution.quantile(0.5) >= VALUE_MAX - VALUE_MAX / 1_000);
    }

    #[test]
    fn an_empty_one_has_zeros() {
        let empty = Distribution::new();
        assert_eq!((empty.count(), empty.quantile(0.99), empty.max()), (0, 0, 0));
        assert!(empty.mean().abs() < f64::EPSILON);
    }

    #[test]
    fn scaling_keeps_shape_and_count() {
        let scaled = of([10_000, 20_000, 40_000]).scaled(0.1);
        assert_eq!(scaled.count(), 3);
        assert!((scaled.quantile(0.5) as f64 / 2_000.0 - 1.0).abs() < 2e-3);
        assert_eq!(scaled.sum(), 7_000);
    }
}
