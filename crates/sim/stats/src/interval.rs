//! 95 % intervals with true coverage and possible ends.
//!
//! There are three kinds, each on a scale on which chance is about symmetric. Numbers of whole replications
//! use a logarithmic scale. Means of tasks' times use a reciprocal scale: near saturation the error of a
//! queue's mean grows with the square of the mean. Quantiles use ranks, between values that were seen.

use core::f64::consts::FRAC_PI_2;

use sluice_outcome::study::{Estimate, Method};

use super::chance::{Chance, powers};

/// The probability of each tail outside a 95 % interval.
const TAIL: f64 = 0.025;
/// The normal distribution's value for that tail.
const Z: f64 = 1.959_963_985;
/// How many independent events are subtracted from those in a quantile's tail. The busiest times decide the
/// variance, and may not have come yet. Found by experiment (docs/results/statistics.md).
const EVENTS_WITHHELD: f64 = 3.5;
/// Up to this factor a number's logarithm moves about in proportion to the number.
const FACTOR_MAX: f64 = 2.0;
/// The fewest independent events after the subtraction.
const EVENTS_MIN: f64 = 0.3;

/// A number that cannot be negative, with the 95 % interval that independent `samples` of it give
/// (Student's t on a logarithmic scale); without an interval if there are fewer than two samples.
pub fn estimate(value: f64, samples: &[f64], method: Method) -> Estimate {
    if samples.len() < 2 {
        return Estimate::exact(value);
    }
    if value <= 0.0 {
        return Estimate::between(value, value, value, method);
    }
    let factor = libm::exp(student_t(TAIL, samples.len() - 1) * standard_error(samples) / value);
    Estimate::between(value, value / factor, value * factor, method)
}

/// The mean of independent samples of either sign, with their interval; without an interval if there are
/// fewer than two samples.
pub fn mean_of_either_sign(samples: &[f64]) -> Estimate {
    let mean = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
    if samples.len() < 2 {
        return Estimate::exact(mean);
    }
    let half = student_t(TAIL, samples.len() - 1) * standard_error(samples);
    Estimate::between(mean, mean - half, mean + half, Method::Replications)
}

/// A number of either sign, with an interval by Student's t.
pub(super) fn around(value: f64, chance: Chance, method: Method) -> Estimate {
    let half = student_t(TAIL, chance.freedom) * libm::sqrt(chance.variance);
    Estimate::between(value, value - half, value + half, method)
}

/// A quotient of two positive numbers. `chance` is that of its logarithm, and the interval is never narrower
/// than `share_min` of the quotient. `None` if the interval reaches beyond `FACTOR_MAX`: standard errors say
/// nothing then.
pub(super) fn around_quotient(
    value: f64,
    share_min: f64,
    chance: Chance,
    method: Method,
) -> Option<Estimate> {
    let half = student_t(TAIL, chance.freedom) * libm::sqrt(chance.variance);
    let factor = libm::exp(half).max(1.0 + share_min);
    (factor <= FACTOR_MAX).then(|| Estimate::between(value, value / factor, value * factor, method))
}

/// A mean of values of which none can be below `least`. The interval is open above if the large values may
/// have been missed by chance.
pub(super) fn of_mean(value: f64, least: f64, chance: Chance, method: Method) -> Estimate {
    let over = value - least;
    if over <= 0.0 {
        return Estimate::between(value, value.min(least), value, method);
    }
    let share = student_t(TAIL, chance.freedom) * libm::sqrt(chance.variance) / over;
    let low = least + over / (1.0 + share);
    if share < 1.0 {
        return Estimate::between(value, low, least + over / (1.0 - share), method);
    }
    Estimate { open_above: true, ..Estimate::between(value, low, value, method) }
}

/// The shares of all values that bound a quantile's interval: the lower end, and the upper end if there is
/// one. `quantile` is the quantile's own share, and its tail holds so many independent `events`.
///
/// The part above the true quantile is a sum of a few bursts, and is taken as a gamma distribution (its
/// quantiles by Wilson and Hilferty, 1931).
pub(super) fn ranks(quantile: f64, events: f64, freedom: usize) -> (f64, Option<f64>) {
    let widening = student_t(TAIL, freedom) / Z;
    let events = events_left(events / (widening * widening));
    let above = 1.0 - quantile;
    let shape = events / quantile.min(above) * above / quantile;
    let gamma = |z: f64| {
        let root = 1.0 - 1.0 / (9.0 * shape) + z / (3.0 * libm::sqrt(shape));
        root.max(0.0) * root * root
    };
    let (fewest, most) = (above * gamma(-Z), above * gamma(Z));
    ((1.0 - most).max(0.0), (fewest > 0.0).then_some(1.0 - fewest))
}

/// How many of a tail's independent events count, after the subtraction of those that may be missing.
pub(super) fn events_left(events: f64) -> f64 {
    (events - EVENTS_WITHHELD).max(EVENTS_MIN)
}

/// How much larger than it seems a variance is taken to be that rests on so many independent events; fewer
/// than are withheld tell no more than those.
pub(super) fn withheld(events: f64) -> f64 {
    let events = events.max(EVENTS_WITHHELD + EVENTS_MIN);
    if events.is_finite() { events / events_left(events) } else { 1.0 }
}

/// The value that Student's t with `freedom` degrees of freedom exceeds with probability `tail` < ½.
///
/// For whole degrees of freedom the distribution is a finite sum of powers of a cosine (Abramowitz and
/// Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4), which is inverted by bisection.
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

/// The standard error of the mean of at least two samples.
pub(super) fn standard_error(samples: &[f64]) -> f64 {
    libm::sqrt(powers(samples, 2) / (samples.len() - 1) as f64 / samples.len() as f64)
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
    fn a_quotient_is_known_to_a_factor_and_not_at_all_where_chance_may_double_it() {
        let found = |deviation: f64| {
            let chance = Chance { variance: deviation * deviation, freedom: 1_000 };
            around_quotient(3.0, 0.001, chance, Method::Paired)
        };
        let narrow = found(0.1).expect("it is known");
        assert!(
            (narrow.high - 3.0 * libm::exp(0.1962)).abs() < 1e-3 && narrow.low * narrow.high - 9.0 < 1e-9
        );
        let exact = found(0.0).expect("it is known");
        assert!((exact.high - 3.003).abs() < 1e-9, "to a cell: {exact:?}");
        assert_eq!(found(0.4), None);
    }

    #[test]
    fn one_sample_has_no_interval_and_says_so() {
        assert_eq!(estimate(3.0, &[3.0], Method::Replications), Estimate::exact(3.0));
    }

    #[test]
    fn what_cannot_be_negative_has_no_negative_interval() {
        // On the plain scale Student's t gives −46 to 76.
        let found = estimate(15.0, &[8.0, 9.0, 10.0, 11.0, 100.0], Method::Replications);
        assert!(found.low > 0.0 && found.low < 15.0 && found.high > 15.0, "{found:?}");
        assert!(estimate(0.0, &[0.0; 5], Method::Replications).high.abs() < f64::EPSILON);
    }

    #[test]
    fn a_narrow_interval_is_t_standard_errors_wide() {
        let found = estimate(1_000.0, &[998.0, 999.0, 1_000.0, 1_001.0, 1_002.0], Method::Replications);
        let half = 2.7764 * libm::sqrt(0.5);
        assert!((found.high - 1_000.0 - half).abs() < 0.01 && (1_000.0 - found.low - half).abs() < 0.01);
    }

    #[test]
    fn a_mean_stays_above_the_least_and_may_be_open_above() {
        let chance = |deviation: f64| Chance { variance: deviation * deviation, freedom: 1_000 };
        let narrow = of_mean(3.0, 1.0, chance(0.01), Method::Batches);
        assert!((narrow.high - 3.0196).abs() < 1e-3 && (narrow.low - 2.9804).abs() < 1e-3, "{narrow:?}");
        let wide = of_mean(3.0, 1.0, chance(5.0), Method::Batches);
        assert!(wide.open_above && wide.low > 1.0 && wide.most().is_infinite(), "{wide:?}");
    }

    #[test]
    fn ranks_are_the_binomials_where_there_are_many_events() {
        let (low, high) = ranks(0.99, 10_000.0, 1_000);
        // 1 % of a million independent tasks: ± 1.96 · √(0.01 · 0.99 / 10⁶).
        assert!((low - 0.98980).abs() < 2e-5 && (high.expect("there is one") - 0.99020).abs() < 2e-5);
        let (low, high) = ranks(0.5, 10_000.0, 1_000);
        assert!((low - 0.4931).abs() < 2e-4 && (high.expect("there is one") - 0.5069).abs() < 2e-4);
    }

    #[test]
    fn few_events_bound_a_quantile_below_and_not_above() {
        for events in [0.0, 0.5, 2.0, 3.0] {
            let (low, high) = ranks(0.999, events, 20);
            assert!(low < 0.999 && low > 0.98 && high.is_none(), "{events}: {low} {high:?}");
        }
    }
}
