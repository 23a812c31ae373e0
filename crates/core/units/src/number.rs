//! Plain numbers with thousands: rates, loads and counts, one by one or as ranges.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The most points of a range; nobody asks for more on purpose.
const POINTS_MAX: f64 = 10_000.0;
/// The largest rate or count.
const NUMBER_MAX: f64 = 1e12;
/// The largest load.
const LOAD_MAX: f64 = 1_000.0;
/// Digits behind the decimal point of numbers with thousands, and of ranges.
const TIDY_DIGITS: usize = 9;

/// Reads a finite number such as `0.8`, `1_000`, `2000k` or `1M`.
///
/// # Errors
/// The rest of a sentence that begins with the text that was read.
pub fn number(text: &str) -> Result<f64, &'static str> {
    const WRONG: &str = "is not a number: write one, such as 0.8, 2000k or 1M";
    let plain = text.replace('_', "");
    let (digits, scale) = match plain.char_indices().last() {
        Some((at, 'k')) => (&plain[..at], 1e3),
        Some((at, 'M')) => (&plain[..at], 1e6),
        _ => (plain.as_str(), 1.0),
    };
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or(WRONG)?;
    Ok(if scale > 1.0 { tidy(number * scale) } else { number })
}

/// Reads tasks per second, such as `2000k`, `2.8M` or `500000`.
///
/// # Errors
/// As [`number`].
pub fn rate(text: &str) -> Result<f64, &'static str> {
    let rate = number(text)?;
    if rate > 0.0 && rate <= NUMBER_MAX {
        Ok(rate)
    } else {
        Err("is not above 0: write tasks per second, such as 2000k")
    }
}

/// Reads a number of tasks, such as `1M` or `200k`.
///
/// # Errors
/// As [`number`].
pub fn count(text: &str) -> Result<u64, &'static str> {
    let count = number(text)?;
    if (1.0..=NUMBER_MAX).contains(&count) && count % 1.0 <= 0.0 {
        Ok(count as u64)
    } else {
        Err("is not a whole number from 1 on: write one, such as 200k")
    }
}

/// Reads a load such as `0.8` or `80%`: the share of the time that workers would be busy if they did
/// nothing but serve.
///
/// # Errors
/// As [`number`].
pub fn load(text: &str) -> Result<f64, &'static str> {
    let load = match text.strip_suffix('%') {
        Some(percent) => tidy(number(percent.trim_end())? / 100.0),
        None => number(text)?,
    };
    if load > 0.0 && load <= LOAD_MAX {
        Ok(load)
    } else {
        Err("is not above 0: write a share of capacity, such as 0.8 or 80%")
    }
}

/// Reads numbers one by one (`1,2,3`) or as ranges with their steps (`0.1..0.9/0.1`, both ends included).
/// `read` reads each number. The numbers must ascend.
///
/// # Errors
/// The error of `read`; or the error that `range` makes of a range, or of all numbers, and of the reason.
pub fn several<E>(
    text: &str,
    read: impl Fn(&str) -> Result<f64, E>,
    range: impl Fn(&str, &'static str) -> E,
) -> Result<Vec<f64>, E> {
    let mut numbers = Vec::new();
    for part in text.split(',').map(str::trim) {
        numbers.extend(one_or_range(part, &read, &range)?);
    }
    if numbers.windows(2).all(|pair| pair[0] < pair[1]) {
        Ok(numbers)
    } else {
        Err(range(text, "does not ascend: write each number once, the smallest first"))
    }
}

fn one_or_range<E>(
    text: &str,
    read: &impl Fn(&str) -> Result<f64, E>,
    range: &impl Fn(&str, &'static str) -> E,
) -> Result<Vec<f64>, E> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(Vec::from([read(text)?])) };
    let wrong = |why| range(text, why);
    let step = rest.split_once('/');
    let (to, step) = step.ok_or_else(|| wrong("has no step: write FROM..TO/STEP, such as 0.1..0.9/0.1"))?;
    let (from, to, step) = (read(from)?, read(to)?, read(step)?);
    if to < from {
        return Err(wrong("ends before it starts: write the smaller number first"));
    }
    // Slightly more than the quotient, so that 0.1..0.9/0.1 reaches 0.9 in spite of rounding errors.
    let steps = (to - from) / step + 1e-9;
    if steps >= POINTS_MAX {
        return Err(wrong("has too many points: write a longer step"));
    }
    Ok((0..=steps as u64).map(|i| tidy(from + i as f64 * step)).collect())
}

/// Removes rounding errors of binary fractions: 0.30000000000000004 becomes 0.3.
fn tidy(number: f64) -> f64 {
    tidy_at(number, TIDY_DIGITS)
}

pub(crate) fn tidy_at(number: f64, digits: usize) -> f64 {
    let shown: String = format!("{number:.digits$}");
    shown.parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, read: fn(&str) -> Result<f64, &'static str>) -> Result<Vec<f64>, &'static str> {
        several(text, read, |_, why| why)
    }

    #[test]
    fn rates_and_counts_have_their_multiples() {
        assert_eq!(all("2000k,2.8M", rate), Ok([2e6, 2.8e6].into()));
        assert_eq!((rate("2000k"), rate("1e3"), rate("1e-10")), (Ok(2e6), Ok(1e3), Ok(1e-10)));
        assert_eq!(count("1_000_000"), Ok(1_000_000));
        for wrong in ["", "k", "0", "-1", "NaN", "inf", "fast", "1e300", "1kk"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "1.5", "-3", "many"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_includes_both_ends_without_dust() {
        assert_eq!(all("0.1..0.9/0.1", load), Ok([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9].into()));
        assert_eq!(all("200k,1M..2M/500k", rate), Ok([2e5, 1e6, 1.5e6, 2e6].into()));
    }

    #[test]
    fn a_load_is_a_share_or_a_percentage() {
        for (text, share) in [("50%", 0.5), ("0.5", 0.5), ("7 %", 0.07), ("110%", 1.1), ("99.9%", 0.999)] {
            assert_eq!(load(text), Ok(share), "{text}");
        }
        assert_eq!(all("50%..90%/10%", load), all("0.5..0.9/0.1", load));
        for wrong in ["%", "0%", "-5%", "50%%", "% 50", "NaN%", "1e9%"] {
            assert!(load(wrong).is_err(), "{wrong}");
        }
        assert!(rate("50%").is_err() && count("50%").is_err(), "nothing is meant there");
    }

    #[test]
    fn a_range_that_makes_no_sense_is_refused() {
        for wrong in
            ["0.9..0.1/0.1", "0.1..0.9", "0.1..0.9/0", "0.1..0.9/-1", "0.1..", "0.5,0.5", "1..9e9/1e-3"]
        {
            assert!(all(wrong, load).is_err(), "{wrong}");
        }
    }
}
