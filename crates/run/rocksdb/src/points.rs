//! Turns samples into points of their distribution: one for each hundredth, and denser towards the largest.

use sluice_wire::Nanos;

/// Pairs `[nanoseconds, cumulative share]` of sorted samples, both rising; the last share is 1.
pub(crate) fn points(sorted: &[Nanos]) -> Vec<(u64, f64)> {
    let count = sorted.len();
    let mut points: Vec<(u64, f64)> = Vec::new();
    for rank in ranks(count) {
        let point = (sorted[rank - 1].0, rank as f64 / count as f64);
        match points.last_mut() {
            Some(last) if last.0 == point.0 => *last = point,
            _ => points.push(point),
        }
    }
    points
}

/// The ranks of the samples that become points, counted from 1.
fn ranks(count: usize) -> Vec<usize> {
    let hundredths = (1..=99).map(|part| count * part / 100);
    let mut ranks: Vec<usize> = hundredths.collect();
    let mut left = count / 100;
    while left > 0 {
        ranks.push(count - left);
        left = left * 2 / 3;
    }
    ranks.extend([1, count]);
    ranks.retain(|rank| *rank > 0);
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_all_kept() {
        let points = points(&[3, 5, 5, 9].map(Nanos));
        assert_eq!(points, [(3, 0.25), (5, 0.75), (9, 1.0)]);
    }

    #[test]
    fn many_samples_keep_their_mean_and_their_largest() {
        let samples: Vec<Nanos> = (1..=20_000u64).map(|i| Nanos(i + i.pow(4) / 20_000u64.pow(2))).collect();
        let points = points(&samples);
        let mean = samples.iter().map(|sample| sample.0 as f64).sum::<f64>() / samples.len() as f64;
        let lines = points.windows(2).map(|two| (two[1].1 - two[0].1) * (two[0].0 + two[1].0) as f64 / 2.0);
        let kept = lines.sum::<f64>() + points[0].0 as f64 * points[0].1;
        assert!((kept / mean - 1.0).abs() < 0.002, "{kept}, not {mean}");
        assert_eq!(points.last().map(|last| last.0), samples.last().map(|last| last.0));
        assert!(points.len() < 130, "{}", points.len());
        assert!(points.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
    }
}
