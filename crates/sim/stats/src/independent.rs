//! The difference of two numbers that were measured apart: its interval follows from the intervals of both
//! (MOVER: Zou and Donner, 2008).

use sluice_outcome::study::Estimate;

use super::interval::student_t;

/// So many degrees of freedom make Student's t the normal distribution.
const NORMAL: usize = 400;
/// The probability of each tail outside a 95 % interval.
const TAIL: f64 = 0.025;

/// How much larger the first number is, with the 95 % interval of the difference. `widened` widens it, so
/// that several intervals hold together ([`for_all_of`]); 1 for one alone.
pub fn difference(one: &Estimate, other: &Estimate, widened: f64) -> Estimate {
    let value = one.value - other.value;
    let below = libm::hypot(one.value - one.low, other.most() - other.value);
    let above = libm::hypot(one.most() - one.value, other.value - other.low);
    Estimate::between(value, value - widened * below, value + widened * above, one.method)
}

/// By what factor so many 95 % intervals are to be widened, so that all of them hold together (Bonferroni).
pub fn for_all_of(count: usize) -> f64 {
    student_t(TAIL / count.max(1) as f64, NORMAL) / student_t(TAIL, NORMAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_outcome::study::Method;

    fn about(value: f64, half: f64) -> Estimate {
        Estimate::between(value, value - half, value + half, Method::Batches)
    }

    #[test]
    fn a_difference_is_as_uncertain_as_both_numbers() {
        let found = difference(&about(10.0, 3.0), &about(4.0, 4.0), 1.0);
        assert!((found.value - 6.0).abs() < 1e-12 && (found.low - 1.0).abs() < 1e-12);
        assert!((found.high - 11.0).abs() < 1e-12);
        let open = Estimate { open_above: true, ..about(4.0, 4.0) };
        assert!(difference(&about(10.0, 3.0), &open, 1.0).low.is_infinite());
    }

    #[test]
    fn intervals_of_many_numbers_are_wider() {
        assert!((for_all_of(1) - 1.0).abs() < 1e-9 && (for_all_of(0) - 1.0).abs() < 1e-9);
        // The normal quantile of 0.025 / 10 is 2.807.
        assert!((for_all_of(10) - 2.807 / 1.96).abs() < 0.01, "{}", for_all_of(10));
    }
}
