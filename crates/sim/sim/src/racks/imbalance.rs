//! The imbalance of a pool's queues: the longest queue relative to the mean (Horus §5.2, Figure 12a).

use sluice_stats::Distribution;

/// Imbalances are recorded in thousandths.
const UNIT: f64 = 1_000.0;

/// The imbalances at regular looks at the queues.
#[derive(Debug)]
pub(super) struct Imbalance(Distribution);

impl Imbalance {
    pub(super) fn new() -> Self {
        Self(Distribution::new())
    }

    /// Records a look at workers that hold so many tasks each; a pool without tasks is not recorded.
    pub(super) fn sample(&mut self, held: impl Iterator<Item = u32>) {
        let (mut most, mut sum, mut workers) = (0, 0_u64, 0_u64);
        for tasks in held {
            most = most.max(tasks);
            sum += u64::from(tasks);
            workers += 1;
        }
        if sum > 0 {
            self.0.record((f64::from(most) * workers as f64 / sum as f64 * UNIT) as u64);
        }
    }

    /// The median and the p99 of the imbalance.
    pub(super) fn quantiles(&self) -> Option<[f64; 2]> {
        let [half, most] = [0.5, 0.99].map(|share| self.0.quantile(share) as f64 / UNIT);
        (self.0.count() > 0).then_some([half, most])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_queue_is_told_over_the_mean() {
        let mut imbalance = Imbalance::new();
        imbalance.sample([0, 0].into_iter());
        assert_eq!(imbalance.quantiles(), None);
        imbalance.sample([4, 0, 0, 0].into_iter());
        let [half, most] = imbalance.quantiles().expect("it looked");
        assert!((half - 4.0).abs() < 0.01 && (most - 4.0).abs() < 0.01, "{half} {most}");
    }
}
