//! Numbers with their units, for people.

use sluice_outcome::study::{Comparison, Estimate, Expectation, Measure, Metric, Part, Settings, Unit};

use crate::table::digits;

/// From this rate on, rates are shown in thousands.
const THOUSANDS_FROM_PER_S: f64 = 10_000.0;

/// A scale for showing numbers, and its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DisplayScale {
    /// The size of one unit of this scale, in the number's own unit.
    pub(crate) one: f64,
    /// The text after the number; may be empty.
    pub(crate) name: &'static str,
}

impl DisplayScale {
    /// The scale for numbers of about this size.
    pub(crate) fn suiting(size: f64, unit: Unit) -> Self {
        let (one, name) = match unit {
            Unit::Ns if size < 1e3 => (1.0, "ns"),
            Unit::Ns if size < 1e6 => (1e3, "µs"),
            Unit::Ns if size < 1e9 => (1e6, "ms"),
            Unit::Ns => (1e9, "s"),
            Unit::PerS if size < THOUSANDS_FROM_PER_S => (1.0, "tasks/s"),
            Unit::PerS => (1e3, "kRPS"),
            Unit::Share => (0.01, "%"),
            Unit::Ratio | Unit::Count => (1.0, ""),
        };
        Self { one, name }
    }

    /// The number alone.
    pub(crate) fn number(self, value: f64) -> String {
        grouped(&digits(value / self.one))
    }

    /// A caption with the scale's name.
    pub(crate) fn named(self, caption: &str) -> String {
        if self.name.is_empty() { caption.to_owned() } else { format!("{caption}, {}", self.name) }
    }

    fn with_name(self, number: &str) -> String {
        if self.name.is_empty() { number.to_owned() } else { format!("{number} {}", self.name) }
    }
}

/// A number with its unit, in the scale that suits it.
pub fn quantity(value: f64, unit: Unit) -> String {
    let shown = DisplayScale::suiting(value.abs(), unit);
    shown.with_name(&shown.number(value))
}

/// A rate with its unit.
pub(crate) fn rate(per_s: f64) -> String {
    quantity(per_s, Unit::PerS)
}

/// The number of a statement, if it has one.
pub(crate) fn stated(row: &Expectation) -> String {
    row.paper.map_or_else(|| "a shape".to_owned(), |number| quantity(number, row.unit))
}

/// A value with its unit and, if it has one, its interval: `23.1 µs (22.9–23.4)`.
pub(crate) fn estimate(of: &Estimate, unit: Unit) -> String {
    let value = quantity(of.value, unit);
    interval(of, unit).map_or_else(|| value.clone(), |interval| format!("{value} ({interval})"))
}

/// The interval, in the unit in which the value is shown.
pub(crate) fn interval(of: &Estimate, unit: Unit) -> Option<String> {
    interval_in(of, DisplayScale::suiting(of.value.abs(), unit))
}

/// The interval in this scale.
pub(crate) fn interval_in(of: &Estimate, shown: DisplayScale) -> Option<String> {
    of.has_interval().then(|| {
        let between = if of.low < 0.0 || of.high < 0.0 { " to " } else { "–" };
        let more = if of.open_above { " or more" } else { "" };
        format!("{}{between}{}{more}", shown.number(of.low), shown.number(of.high))
    })
}

/// A metric in words, such as `p99 latency`.
pub(crate) fn metric(of: Metric) -> String {
    let part = match of.part {
        Part::Mean => "mean",
        Part::P50 => "median",
        Part::P90 => "p90",
        Part::P95 => "p95",
        Part::P99 => "p99",
        Part::P999 => "p99.9",
    };
    format!("{part} {}", measure(of.measure))
}

/// A metric as plans write it, such as `slowdown_p99`.
pub(crate) fn metric_name(of: Metric) -> String {
    let measure = match of.measure {
        Measure::LatencyNs => "",
        Measure::SchedulingDelayNs => "scheduling_delay_",
        Measure::Slowdown => "slowdown_",
        Measure::SlowdownTypeMean => "slowdown_type_mean_",
        Measure::SlowdownServer => "slowdown_server_",
    };
    let part = match of.part {
        Part::Mean => "mean",
        Part::P50 => "p50",
        Part::P90 => "p90",
        Part::P95 => "p95",
        Part::P99 => "p99",
        Part::P999 => "p999",
    };
    format!("{measure}{part}")
}

/// A measure in words.
pub(crate) const fn measure(of: Measure) -> &'static str {
    match of {
        Measure::LatencyNs => "latency",
        Measure::SchedulingDelayNs => "scheduling delay",
        Measure::Slowdown => "slowdown",
        Measure::SlowdownTypeMean => "slowdown over class mean",
        Measure::SlowdownServer => "server-side slowdown",
    }
}

/// The result of a comparison: whether there is a difference, or, if the two must agree, whether they do.
pub(crate) fn comparison(of: &Comparison) -> String {
    match (of.verdict, of.real) {
        _ if !of.difference.has_interval() => "one trace, no interval".to_owned(),
        (Some(verdict), _) => verdict.to_string(),
        (None, true) => "a real difference".to_owned(),
        (None, false) => "no real difference".to_owned(),
    }
}

/// A share in per cent.
pub fn share(of: f64) -> String {
    quantity(of, Unit::Share)
}

/// How many tasks each replication measures; `None` if its length is a time.
pub(crate) fn tasks(of: &Settings) -> Option<String> {
    let (fewest, most) = (whole(of.tasks), whole(of.tasks_most));
    let told = if of.tasks_most > of.tasks { format!("{fewest} to {most}") } else { fewest };
    (of.tasks > 0).then_some(told)
}

/// An integer with thousands separators.
pub(crate) fn whole(number: u64) -> String {
    grouped(&number.to_string())
}

/// Inserts a comma before every three digits of the integer part.
fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("−", rest));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out += fraction;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_outcome::study::Method;

    #[test]
    fn numbers_are_shown_in_the_unit_that_suits_them() {
        assert_eq!(quantity(23_140.0, Unit::Ns), "23.1 µs");
        assert_eq!(quantity(-1_500_000.0, Unit::Ns), "−1.50 ms");
        assert_eq!(rate(2_330_400.0), "2,330 kRPS");
        assert_eq!(rate(850.0), "850 tasks/s");
        assert_eq!(quantity(-0.411, Unit::Share), "−41.1 %");
        assert_eq!([-0.000_04, -0.0, 0.000_04].map(share), ["0.00 %"; 3], "no side of nothing");
        assert_eq!(whole(1_234_567), "1,234,567");
    }

    #[test]
    fn an_interval_is_shown_in_the_unit_of_its_value() {
        let of = Estimate::between(990e3, 970e3, 1_010e3, Method::Batches);
        assert_eq!(estimate(&of, Unit::Ns), "990 µs (970–1,010)");
        let open = Estimate { open_above: true, ..of };
        assert_eq!(estimate(&open, Unit::Ns), "990 µs (970–1,010 or more)");
        assert_eq!(estimate(&Estimate::exact(4.0), Unit::Ratio), "4.00");
    }
}
