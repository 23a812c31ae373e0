//! Rates, loads, counts and ranges as flags and plans write them: `2000k`, `0.8`, `1M`, `0.1..0.9/0.1`,
//! `200k,400k`.

use super::error::StudyError;

/// More points than anybody asks for on purpose.
const POINTS_MAX: usize = 10_000;
/// What a rate or a count may be at most.
const NUMBER_MAX: f64 = 1e12;

/// Reads tasks per second, such as `2000k`, `2.8M` or `500000`.
pub fn rate(text: &str) -> Result<f64, StudyError> {
    let rate = scaled("rate", text)?;
    if rate > 0.0 && rate <= NUMBER_MAX {
        Ok(rate)
    } else {
        Err(StudyError::unreadable("rate", text, "is not above 0: write tasks per second, such as 2000k"))
    }
}

/// Reads a number of tasks, such as `1M` or `200k`.
pub fn count(text: &str) -> Result<u64, StudyError> {
    let count = scaled("count", text)?;
    if (1.0..=NUMBER_MAX).contains(&count) && count % 1.0 <= 0.0 {
        Ok(count as u64)
    } else {
        Err(StudyError::unreadable("count", text, "is not a whole number from 1 on: write one, such as 200k"))
    }
}

/// Reads a load: the share of the time that workers are busy, were there nothing but service.
pub fn load(text: &str) -> Result<f64, StudyError> {
    let load = scaled("load", text)?;
    if load > 0.0 && load <= 1_000.0 {
        Ok(load)
    } else {
        Err(StudyError::unreadable("load", text, "is not above 0: write a share of capacity, such as 0.8"))
    }
}

/// Reads numbers one by one (`1,2,3`) or as a range with its step (`0.1..0.9/0.1`, both ends included), each
/// as `read` does.
pub fn several(text: &str, read: fn(&str) -> Result<f64, StudyError>) -> Result<Vec<f64>, StudyError> {
    let numbers = text.split(',').map(|part| range(part.trim(), read)).collect::<Result<Vec<_>, _>>()?;
    let numbers = numbers.concat();
    if numbers.windows(2).all(|pair| pair[0] < pair[1]) {
        Ok(numbers)
    } else {
        Err(StudyError::unreadable(
            "range",
            text,
            "does not ascend: write each number once, the smallest first",
        ))
    }
}

fn range(text: &str, read: fn(&str) -> Result<f64, StudyError>) -> Result<Vec<f64>, StudyError> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(vec![read(text)?]) };
    let wrong = |why: &str| StudyError::unreadable("range", text, why);
    let (to, step) = rest
        .split_once('/')
        .ok_or_else(|| wrong("has no step: write FROM..TO/STEP, such as 0.1..0.9/0.1"))?;
    let (from, to, step) = (read(from)?, read(to)?, read(step)?);
    if to < from {
        return Err(wrong("ends before it starts: write the smaller number first"));
    }
    // A hair more than the quotient, so that 0.1..0.9/0.1 reaches 0.9 whatever binary fractions make of it.
    let steps = libm::floor((to - from) / step + 1e-9);
    if steps >= POINTS_MAX as f64 {
        return Err(wrong("has too many points: write a longer step"));
    }
    Ok((0..=steps as u64).map(|i| tidy(from + i as f64 * step)).collect())
}

/// Without the dust of binary fractions: 0.30000000000000004 is 0.3.
pub(crate) fn tidy(number: f64) -> f64 {
    format!("{number:.9}").parse().unwrap_or(number)
}

fn scaled(what: &'static str, text: &str) -> Result<f64, StudyError> {
    let wrong = || StudyError::unreadable(what, text, "is not a number: write one, such as 0.8, 2000k or 1M");
    let plain = text.replace('_', "");
    let (digits, scale) = match plain.char_indices().last() {
        Some((at, 'k')) => (&plain[..at], 1e3),
        Some((at, 'M')) => (&plain[..at], 1e6),
        _ => (plain.as_str(), 1.0),
    };
    let number = digits.parse::<f64>().map_err(|_| wrong())?;
    if number.is_finite() { Ok(tidy(number * scale)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_counts_have_their_multiples() {
        assert_eq!(several("2000k,2.8M", rate).unwrap(), [2e6, 2.8e6]);
        assert_eq!(count("1_000_000").unwrap(), 1_000_000);
        for wrong in ["", "k", "0", "-1", "NaN", "inf", "fast", "1e300", "1kk"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "1.5", "-3", "many"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_includes_both_ends_without_dust() {
        let loads = several("0.1..0.9/0.1", load).unwrap();
        assert_eq!(loads, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]);
        assert_eq!(several("200k,1M..2M/500k", rate).unwrap(), [2e5, 1e6, 1.5e6, 2e6]);
    }

    #[test]
    fn a_range_that_makes_no_sense_is_refused() {
        for wrong in
            ["0.9..0.1/0.1", "0.1..0.9", "0.1..0.9/0", "0.1..0.9/-1", "0.1..", "0.5,0.5", "1..9e9/1e-3"]
        {
            assert!(several(wrong, load).is_err(), "{wrong}");
        }
    }
}
