//! Spans of time: decimal digits and a unit, to whole nanoseconds.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use sluice_wire::Nanos;

const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
];

/// A hundred days. Up to here an `f64` tells every nanosecond from the next.
pub const LONGEST: Nanos = Nanos(9_000_000_000_000_000);

const DAY_NS: u64 = 24 * 60 * 60_000_000_000;
/// No span that a run could last has more digits.
const DIGITS_MAX: usize = 18;
const TOO_FINE: &str = "is finer than a nanosecond: write whole nanoseconds";
const TOO_LONG: &str = "is longer than a hundred days: write a shorter span";

/// Reads `10us`, `500ns` or `1.5ms`, exactly.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn span(text: &str) -> Result<Nanos, String> {
    let read =
        with_unit(text).and_then(|(number, scale)| scaled(number, scale)).ok_or_else(|| no_span(text))?;
    exact(&read).map_err(|why| format!("`{text}` {why}"))
}

/// Reads a span as [`span`] does, but cuts off parts of a nanosecond, and accepts spans up to `longest`.
/// For times of clocks, which are no finer.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn cut_span(text: &str, longest: Nanos) -> Result<Nanos, String> {
    let read =
        with_unit(text).and_then(|(number, scale)| scaled(number, scale)).ok_or_else(|| no_span(text))?;
    read.ns.filter(|ns| *ns <= longest).ok_or_else(|| {
        let days = longest.0 / DAY_NS;
        format!("`{text}` is longer than {days} days: write a shorter span")
    })
}

/// Reads a span as [`span`] does, in nanoseconds with a fraction. For limits of measured times.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn span_ns(text: &str) -> Result<f64, String> {
    let read = with_unit(text).and_then(|(number, scale)| Some(number.parse::<f64>().ok()? * scale as f64));
    read.ok_or_else(|| no_span(text))
}

/// Reads a number of microseconds without its unit, as files hold them.
///
/// # Errors
/// A sentence that says what is wrong with `text`.
pub fn micros(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("`{text}` is not a number of microseconds: write one such as 10 or 0.25");
    exact(&scaled(text, 1_000).ok_or_else(wrong)?).map_err(|why| format!("`{text}` {why}"))
}

/// Writes a span as [`span`] reads it, with the unit in which it has the fewest digits before the point.
pub fn show_span(span: Nanos) -> String {
    let (unit, scale) = match span.0 {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    show_scaled(span, scale) + unit
}

/// Writes a span as [`micros`] reads it.
pub fn show_micros(span: Nanos) -> String {
    show_scaled(span, 1_000)
}

/// A span that is shown as a whole number of the largest unit that fits, as names of policies show it.
#[derive(Clone, Copy, Debug)]
pub struct WholeSpan(pub Nanos);

impl fmt::Display for WholeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WHOLE: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        let (unit, scale) =
            WHOLE.into_iter().find(|(_, scale)| self.0.0.is_multiple_of(*scale)).unwrap_or(WHOLE[3]);
        write!(f, "{}{unit}", self.0.0 / scale)
    }
}

fn no_span(text: &str) -> String {
    format!("`{text}` is not a span: write a number and a unit, such as 200us, 50ms or 1.5s")
}

/// The digits of a span, and how many nanoseconds its unit has.
fn with_unit(text: &str) -> Option<(&str, u64)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| (number, *scale))
}

/// A whole number of nanoseconds, with any fraction cut off.
struct Scaled {
    /// `None` if the number is too large.
    ns: Option<Nanos>,
    /// Whether no fraction was cut off.
    is_whole: bool,
}

fn exact(read: &Scaled) -> Result<Nanos, &'static str> {
    let ns = read.ns.filter(|ns| *ns <= LONGEST).ok_or(TOO_LONG)?;
    if read.is_whole { Ok(ns) } else { Err(TOO_FINE) }
}

/// Multiplies the digits by the unit; `None` if they are not a number.
fn scaled(number: &str, scale: u64) -> Option<Scaled> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(part) || whole.len() + part.len() == 0 {
        return None;
    }
    let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
    if whole.len() > DIGITS_MAX {
        return Some(Scaled { ns: None, is_whole: true });
    }
    let known = &part[..part.len().min(DIGITS_MAX)];
    let value = |digits: &str| digits.bytes().fold(0u128, |sum, byte| sum * 10 + u128::from(byte - b'0'));
    let unit = 10u128.pow(known.len() as u32);
    let fraction = value(known) * u128::from(scale);
    let ns = value(whole) * u128::from(scale) + fraction / unit;
    let is_whole = known.len() == part.len() && fraction.is_multiple_of(unit);
    Some(Scaled { ns: u64::try_from(ns).ok().map(Nanos), is_whole })
}

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
            ("4.35us", 4_350),
        ] {
            assert_eq!((span(text), cut_span(text, LONGEST)), (Ok(Nanos(ns)), Ok(Nanos(ns))), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_span_is_refused() {
        for text in [
            "",
            "10",
            "5",
            "s",
            "us",
            "-1us",
            "NaNus",
            "infs",
            "1e3us",
            "1..2us",
            ".us",
            "1 us",
            "10 parsecs",
        ] {
            assert!(span(text).is_err_and(|why| why.contains("is not a span")), "{text}");
            assert!(cut_span(text, LONGEST).is_err_and(|why| why.contains("is not a span")), "{text}");
        }
        assert!(span("0.5ns").is_err_and(|why| why.contains("finer than a nanosecond")));
        assert!(span("0.0000000000000000001s").is_err_and(|why| why.contains("finer than a nanosecond")));
        assert!(span("99999999999999999999s").is_err_and(|why| why.contains("longer than")));
    }

    #[test]
    fn a_span_of_a_clock_is_cut_and_lasts_as_long_as_is_said() {
        assert_eq!(cut_span("1.2345678901234567890123s", LONGEST), Ok(Nanos(1_234_567_890)));
        assert_eq!((cut_span("0.5ns", LONGEST), span_ns("0.5ns")), (Ok(Nanos(0)), Ok(0.5)));
        let three_years = Nanos(100_000_000_000_000_000);
        assert!(cut_span("90000000s", three_years).is_ok());
        assert!(cut_span("100000001s", three_years).is_err_and(|why| why.contains("longer than 1157 days")));
    }

    #[test]
    fn a_whole_span_has_the_largest_unit_that_fits() {
        let shown =
            [0, 7, 1_500, 20_000, 3_000_000, 90_000_000_000].map(|ns| WholeSpan(Nanos(ns)).to_string());
        assert_eq!(shown, ["0s", "7ns", "1500ns", "20us", "3ms", "90s"]);
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(ns in 0..LONGEST.0) {
            prop_assert_eq!(span(&show_span(Nanos(ns))), Ok(Nanos(ns)));
            prop_assert_eq!(span(&WholeSpan(Nanos(ns)).to_string()), Ok(Nanos(ns)));
            prop_assert_eq!(micros(&show_micros(Nanos(ns))), Ok(Nanos(ns)));
        }

        #[test]
        fn nothing_that_is_written_breaks_a_reader(text in ".{0,24}") {
            let _ = (span(&text), cut_span(&text, LONGEST), span_ns(&text), micros(&text));
        }
    }
}
