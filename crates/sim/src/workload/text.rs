//! Spans, shares and names as workloads write them. Spans are exact: decimal digits to whole nanoseconds.

use sluice_wire::Nanos;

const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
];

/// More digits than this name nothing that a run could last.
const DIGITS_MAX: usize = 18;

/// Reads `10us`, `500ns` or `1.5ms`.
pub(crate) fn span(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("`{text}` is not a span: write a number and a unit, such as 10us, 500ns or 1.5ms");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let scale = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
    scaled(number, scale).ok_or_else(wrong)?.map_err(|why| format!("`{text}` {why}"))
}

/// Reads a number of microseconds without its unit, as files hold them.
pub(super) fn micros(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("`{text}` is not a number of microseconds: write one such as 10 or 0.25");
    scaled(text, 1_000).ok_or_else(wrong)?.map_err(|why| format!("`{text}` {why}"))
}

/// Writes a span as [`span`] reads it.
pub(crate) fn show_span(span: Nanos) -> String {
    let (unit, scale) = match span.0 {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    show_scaled(span, scale) + unit
}

/// Writes a span as [`micros`] reads it.
pub(super) fn show_micros(span: Nanos) -> String {
    show_scaled(span, 1_000)
}

/// Reads a share from 0 to 1: `0.5` or `1/3`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a share: write a number from 0 to 1, or a fraction such as 1/3");
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    let share = number(above).map_err(|_| wrong())? / number(below).map_err(|_| wrong())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(wrong()) }
}

/// Reads a finite number that is not negative.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err(format!("`{text}` is not a finite number from 0 on"))
    }
}

/// One value of a comma-separated line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'l> {
    pub(super) text: &'l str,
    /// Where it starts, in characters from 1.
    pub(super) column: usize,
}

/// The values of a comma-separated line, without the blanks around them.
pub(super) fn cells(line: &str) -> Vec<Cell<'_>> {
    let mut column = 1;
    let cells = line.split(',').map(|cell| {
        let blanks = cell.chars().take_while(|c| c.is_whitespace()).count();
        let here = Cell { text: cell.trim(), column: column + blanks };
        column += cell.chars().count() + 1;
        here
    });
    cells.collect()
}

/// Checks a class's name: what neither files nor the short form of a workload give a meaning.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(legal) {
        return Ok(());
    }
    Err(format!("`{name}` is not a name of 1 to {NAME_CHARS_MAX} letters, digits, `_`, `-` or `.`"))
}

const NAME_CHARS_MAX: usize = 64;

/// The line and the column, both from 1, of the byte at `at`.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Checks that shares add up to 1, but for what rounding makes of them.
pub(super) fn add_up(shares: impl Iterator<Item = f64>, of_what: &str) -> Result<(), String> {
    let sum: f64 = shares.sum();
    if (sum - 1.0).abs() <= 1e-6 {
        return Ok(());
    }
    let sum = (sum * 1e6).round() / 1e6;
    Err(format!("the {of_what} add up to {sum}, not 1: correct them"))
}

/// ``unknown WHAT `NAME` `` with the nearest known one, and all of them.
pub(crate) fn unknown<'k>(what: &str, name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let distances =
        known.iter().map(|other| (strsim::damerau_levenshtein(&name.to_lowercase(), other), other));
    let near = distances.min().filter(|(distance, near)| *distance <= near.len().max(name.len()) / 2);
    let meant = near.map_or(String::new(), |(_, near)| format!("did you mean `{near}`? "));
    format!("unknown {what} `{}`; {meant}known: {}", name.escape_debug(), known.join(", "))
}

/// The outer failure is "not a number", the inner one says why a number will not do.
fn scaled(number: &str, scale: u64) -> Option<Result<Nanos, &'static str>> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(part) || whole.len() + part.len() == 0 {
        return None;
    }
    let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
    if whole.len() > DIGITS_MAX {
        return Some(Err(TOO_LONG));
    }
    if part.len() > DIGITS_MAX {
        return Some(Err(TOO_FINE));
    }
    let value = |digits: &str| digits.bytes().fold(0u128, |sum, byte| sum * 10 + u128::from(byte - b'0'));
    let unit = 10u128.pow(part.len() as u32);
    let fraction = value(part) * u128::from(scale);
    if !fraction.is_multiple_of(unit) {
        return Some(Err(TOO_FINE));
    }
    let ns = value(whole) * u128::from(scale) + fraction / unit;
    Some(u64::try_from(ns).ok().filter(|ns| *ns <= LONGEST.0).map(Nanos).ok_or(TOO_LONG))
}

/// A hundred days, in which every nanosecond is still a number of its own to an `f64`.
const LONGEST: Nanos = Nanos(9_000_000_000_000_000);
const TOO_FINE: &str = "is finer than a nanosecond: write whole nanoseconds";
const TOO_LONG: &str = "is longer than a hundred days: write a shorter span";

fn show_scaled(span: Nanos, scale: u64) -> String {
    let whole = span.0 / scale;
    let part = format!("{:0width$}", span.0 % scale, width = scale.ilog10() as usize);
    match part.trim_end_matches('0') {
        "" => whole.to_string(),
        part => format!("{whole}.{part}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_read_exactly() {
        for (text, ns) in [
            ("10us", 10_000),
            ("1.1us", 1_100),
            (".5ms", 500_000),
            ("007ns", 7),
            ("2.µs", 2_000),
            ("1min", 60_000_000_000),
        ] {
            assert_eq!(span(text), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_span_is_refused() {
        for text in ["", "10", "us", "-1us", "NaNus", "infs", "1e3us", "1..2us", ".us", "1 us", "10 parsecs"]
        {
            assert!(span(text).is_err_and(|why| why.contains("is not a span")), "{text}");
        }
        assert!(span("0.5ns").is_err_and(|why| why.contains("finer than a nanosecond")));
        assert!(span("99999999999999999999s").is_err_and(|why| why.contains("longer than")));
    }

    #[test]
    fn shares_are_numbers_or_fractions_from_0_to_1() {
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("1/3"), Ok(1.0 / 3.0));
        for text in ["", "2", "-0.1", "NaN", "inf", "1/0", "0/0", "1/2/3", "3/2"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_unknown_name_brings_the_nearest_known_one() {
        assert!(unknown("type", "gte", ["get", "scan"]).contains("did you mean `get`?"));
        assert_eq!(unknown("type", "zzzzzzzz", ["get"]), "unknown type `zzzzzzzz`; known: get");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(ns in 0..LONGEST.0) {
            prop_assert_eq!(span(&show_span(Nanos(ns))), Ok(Nanos(ns)));
            prop_assert_eq!(micros(&show_micros(Nanos(ns))), Ok(Nanos(ns)));
        }
    }
}
