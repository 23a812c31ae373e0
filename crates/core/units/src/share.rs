//! Shares of a whole.

use alloc::format;
use alloc::string::String;

use crate::number::tidy_at;

/// Reads a share from 0 to 1: `0.5`, `50%` or `1/3`.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn share(text: &str) -> Result<f64, String> {
    let wrong = || {
        format!(
            "`{text}` is not a share: write a number from 0 to 1, a percentage, or a fraction such as 1/3"
        )
    };
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    let part = |text: &str| text.parse::<f64>().ok().filter(|part| part.is_finite() && *part >= 0.0);
    let share = match text.strip_suffix('%') {
        Some(percent) => part(percent.trim_end()).map(|percent| percent / 100.0),
        None => part(above).zip(part(below)).map(|(above, below)| above / below),
    };
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(wrong)
}

/// Checks that shares add up to 1, within rounding errors.
///
/// # Errors
/// The sum, without its rounding error.
pub fn add_up(shares: impl Iterator<Item = f64>) -> Result<(), f64> {
    let sum: f64 = shares.sum();
    if (sum - 1.0).abs() <= 1e-6 { Ok(()) } else { Err(tidy_at(sum, 6)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_or_fractions_from_0_to_1() {
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("1/3"), Ok(1.0 / 3.0));
        assert_eq!((share("50%"), share("0.1 %"), share("100%")), (Ok(0.5), Ok(0.001), Ok(1.0)));
        for text in ["", "2", "-0.1", "NaN", "inf", "1/0", "0/0", "1/2/3", "3/2", "%", "101%", "1/2%", "-1%"]
        {
            assert!(share(text).is_err_and(|why| why.contains("is not a share")), "{text}");
        }
    }

    #[test]
    fn shares_must_add_up_to_one() {
        assert_eq!(add_up([0.1; 10].into_iter()), Ok(()));
        assert_eq!(add_up([0.9, 0.2].into_iter()), Err(1.1));
    }
}
