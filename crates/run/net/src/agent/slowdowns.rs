//! A histogram of slowdowns that can be added up over servers, with a resolution of one in 32.

/// The binary logarithm of the number of buckets in each power of two.
const RESOLUTION_BITS: u32 = 5;
/// Up to this value each value has a bucket of its own.
const SMALL: u32 = (1 << (RESOLUTION_BITS + 1)) - 1;
const BUCKETS: usize = ((32 - RESOLUTION_BITS as usize) << RESOLUTION_BITS) + (1 << RESOLUTION_BITS);

/// Slowdowns in thousandths.
#[derive(Clone, Debug)]
pub struct Slowdowns {
    counts: Vec<u32>,
    tasks: u64,
}

impl Default for Slowdowns {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], tasks: 0 }
    }
}

impl Slowdowns {
    /// Some tasks more.
    #[inline]
    pub fn add(&mut self, milli: u32, tasks: u32) {
        let count = &mut self.counts[bucket(milli)];
        *count = count.saturating_add(tasks);
        self.tasks += u64::from(tasks);
    }

    /// How many tasks.
    pub const fn tasks(&self) -> u64 {
        self.tasks
    }

    /// The slowdowns that occurred, each with its number of tasks.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(bucket, count)| (at_least(bucket), *count))
    }

    /// The 99th percentile in thousandths; 0 if there are no tasks.
    pub fn p99_milli(&self) -> u32 {
        let mut left = self.tasks / 100;
        for (bucket, count) in self.counts.iter().enumerate().rev().filter(|(_, count)| **count > 0) {
            if u64::from(*count) > left {
                return at_least(bucket);
            }
            left -= u64::from(*count);
        }
        0
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.tasks = 0;
    }
}

const fn bucket(milli: u32) -> usize {
    // Small values have buckets of their own. Setting all their bits also avoids zero, which would need a
    // branch to count leading zeros.
    let bits = u32::BITS - (milli | SMALL).leading_zeros();
    let shift = bits - (RESOLUTION_BITS + 1);
    ((shift << RESOLUTION_BITS) + (milli >> shift)) as usize
}

/// The least value of a bucket.
const fn at_least(bucket: usize) -> u32 {
    let shift = (bucket >> RESOLUTION_BITS).saturating_sub(1);
    ((bucket - (shift << RESOLUTION_BITS)) << shift) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_a_thirty_second_above_it_at_most() {
        for value in (0..200_000).chain([u32::MAX / 2, u32::MAX - 1, u32::MAX]) {
            let least = at_least(bucket(value));
            assert!(least <= value && value - least <= value / 32, "{value} in the bucket from {least}");
            assert_eq!(bucket(least), bucket(value));
        }
        assert_eq!(bucket(u32::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_p99_leaves_a_hundredth_above_itself() {
        let mut slowdowns = Slowdowns::default();
        assert_eq!(slowdowns.p99_milli(), 0);
        slowdowns.add(1_000, 99);
        slowdowns.add(64_000, 1);
        assert_eq!((slowdowns.tasks(), slowdowns.p99_milli()), (100, at_least(bucket(1_000))));
        slowdowns.add(64_000, 1);
        assert_eq!(slowdowns.p99_milli(), 63_488);
        assert_eq!(slowdowns.iter().map(|(_, tasks)| tasks).sum::<u32>(), 101);
    }
}
