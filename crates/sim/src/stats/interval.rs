//! 95 % intervals by Student's t.

use core::f64::consts::FRAC_PI_2;

use crate::study::outcome::{Estimate, Method};

/// Both tails of a 95 % interval leave so much.
const TAIL: f64 = 0.025;
/// A histogram of three digits has so many cells from a value to its double.
const CELLS_A_DOUBLING: f64 = 1_024.0;

/// `value` with the 95 % interval that independent `samples` of it give; without one if there are fewer than two.
pub fn estimate(value: f64, samples: &[f64], method: Method) -> Estimate {
    if samples.len() < 2 {
        return Estimate { value, low: value, high: value, method: Method::None };
    }
    let half = student_t(TAIL, samples.len() - 1) * standard_error(samples);
    Estimate { value, low: value - half, high: value + half, method }
}

/// No narrower than what a histogram knows of a quantile as large as `value`: where every task takes the same time, the
/// replications agree on a value that is a cell's and not the tasks'.
pub(super) fn widened(found: Estimate, value: f64) -> Estimate {
    if found.method == Method::None {
        return found;
    }
    let cell = value / CELLS_A_DOUBLING;
    Estimate { low: found.low.min(found.value - cell), high: found.high.max(found.value + cell), ..found }
}

/// The value that Student's t with `freedom` degrees of freedom exceeds with probability `tail` < ½.
///
/// For whole degrees of freedom the distribution is a finite sum of powers of a cosine (Abramowitz and Stegun,
/// Handbook of Mathematical Functions, 26.7.3 and 26.7.4), which is inverted by bisection.
pub fn student_t(tail: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if within(middle, freedom) < 1.0 - 2.0 * tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::sqrt(freedom as f64) * libm::tan(low)
}

/// The mean of a sample that has one.
pub(super) fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// The deviation of the mean of at least two samples.
pub(super) fn standard_error(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
    libm::sqrt(squares / (samples.len() - 1) as f64 / samples.len() as f64)
}

/// The probability that |t| is at most √freedom · tan `angle`.
fn within(angle: f64, freedom: usize) -> f64 {
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = if odd { (cosine, 0.0) } else { (1.0, 0.0) };
    let mut order = usize::from(odd);
    while order + 2 <= freedom {
        sum += term;
        term *= cosine * cosine * (order + 1) as f64 / (order + 2) as f64;
        order += 2;
    }
    if odd { (angle + sine * sum) / FRAC_PI_2 } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_t_has_the_values_of_the_tables() {
        for (tail, freedom, value) in [
            (0.025, 1, 12.7062),
            (0.025, 2, 4.3027),
            (0.025, 4, 2.7764),
            (0.025, 9, 2.2622),
            (0.025, 30, 2.0423),
            (0.025, 120, 1.9799),
            (0.01, 3, 4.5407),
            (0.01, 4, 3.7469),
            (0.0005, 7, 5.4079),
        ] {
            let found = student_t(tail, freedom);
            assert!((found - value).abs() < 1e-4, "{tail} {freedom}: {found} and not {value}");
        }
    }

    #[test]
    fn one_sample_has_no_interval_and_says_so() {
        let one = estimate(3.0, &[3.0], Method::Replications);
        assert_eq!(one, Estimate { value: 3.0, low: 3.0, high: 3.0, method: Method::None });
    }

    #[test]
    fn an_interval_is_no_narrower_than_a_cell() {
        let found = widened(estimate(10_004.0, &[10_004.0; 5], Method::Replications), 10_004.0);
        assert!(found.low <= 10_000.0 && found.high >= 10_008.0 && found.high < 10_020.0, "{found:?}");
    }

    #[test]
    fn an_interval_is_t_standard_errors_wide() {
        let found = estimate(3.0, &[1.0, 2.0, 3.0, 4.0, 5.0], Method::Replications);
        assert!((found.high - 3.0 - 2.7764 * libm::sqrt(0.5)).abs() < 1e-4, "{found:?}");
        assert!((found.high + found.low - 6.0).abs() < 1e-12);
    }
}
