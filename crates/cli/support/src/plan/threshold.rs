//! Thresholds: bounds on a load's numbers that decide whether its run holds, such as `get.p99<5ms`,
//! `refused<1%` or `rate>9k`. A number without a type is about all tasks together.

use std::fmt;
use std::str::FromStr;

/// Some of the numbers that can be bounded, for messages; any percentile can be.
const KNOWN: [&str; 17] = [
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "max",
    "mean",
    "rate",
    "goodput",
    "refused",
    "failed",
    "unknown",
    "lost",
    "late",
    "slowdown_p99",
    "scheduling_delay_p99",
    "service_p99",
];

/// A bound on one number of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The type of the tasks; all types if there is none.
    pub class: Option<String>,
    pub number: LoadNumber,
    pub side: BoundSide,
    /// The bound in nanoseconds, as a share of 1, in tasks per second, or as a quotient.
    pub bound: f64,
    /// The bound as it was written.
    pub bound_text: String,
}

/// A number of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadNumber {
    /// A part of the distribution of a time or a slowdown.
    Spread(LoadTime, SpreadPart),
    /// Replies per second.
    Rate,
    /// Answers in time, per second.
    Goodput,
    /// A share of the tasks, of failed ones a share of the replies.
    Share(LoadShare),
}

/// What a distribution is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadTime {
    Latency,
    SchedulingDelay,
    SwitchWait,
    WorkerWait,
    Service,
    Slowdown,
    SlowdownServer,
}

/// A part of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpreadPart {
    Mean,
    Max,
    /// A percentile: above 0 and below 100.
    Percentile(f64),
}

/// An outcome of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadShare {
    Refused,
    Failed,
    Unknown,
    Lost,
    Late,
}

/// On which side of its bound a number must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundSide {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// The unit of a number and of its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundUnit {
    Ns,
    Share,
    PerSecond,
    Quotient,
}

/// Each distribution with the beginning of its numbers' names.
const TIMES: [(&str, LoadTime); 7] = [
    ("", LoadTime::Latency),
    ("scheduling_delay_", LoadTime::SchedulingDelay),
    ("switch_wait_", LoadTime::SwitchWait),
    ("worker_wait_", LoadTime::WorkerWait),
    ("service_", LoadTime::Service),
    ("slowdown_server_", LoadTime::SlowdownServer),
    ("slowdown_", LoadTime::Slowdown),
];

const SHARES: [(&str, LoadShare); 5] = [
    ("refused", LoadShare::Refused),
    ("failed", LoadShare::Failed),
    ("unknown", LoadShare::Unknown),
    ("lost", LoadShare::Lost),
    ("late", LoadShare::Late),
];

/// The longer signs first.
const SIDES: [(&str, BoundSide); 4] =
    [("<=", BoundSide::AtMost), (">=", BoundSide::AtLeast), ("<", BoundSide::Below), (">", BoundSide::Above)];

impl Threshold {
    /// Whether both bound the same number on the same side.
    pub fn is_of(&self, other: &Self) -> bool {
        let is_above = |side| matches!(side, BoundSide::Above | BoundSide::AtLeast);
        let of = |one: &Self| (one.class.clone(), one.number.to_string(), is_above(one.side));
        of(self) == of(other)
    }

    /// The number's name, with its type.
    pub fn name(&self) -> String {
        let class = self.class.as_ref().map_or_else(String::new, |class| format!("{class}."));
        format!("{class}{}", self.number)
    }

    /// The bound with its side, such as `<5ms`.
    pub fn limit(&self) -> String {
        let sign = SIDES.iter().find(|(_, side)| *side == self.side).map_or("", |(sign, _)| *sign);
        format!("{sign}{}", self.bound_text)
    }

    /// Whether a measured number is on the right side of the bound.
    pub fn holds(&self, measured: f64) -> bool {
        match self.side {
            BoundSide::Below => measured < self.bound,
            BoundSide::AtMost => measured <= self.bound,
            BoundSide::Above => measured > self.bound,
            BoundSide::AtLeast => measured >= self.bound,
        }
    }
}

impl LoadNumber {
    /// The unit of the number.
    pub const fn unit(self) -> BoundUnit {
        match self {
            Self::Spread(LoadTime::Slowdown | LoadTime::SlowdownServer, _) => BoundUnit::Quotient,
            Self::Spread(..) => BoundUnit::Ns,
            Self::Rate | Self::Goodput => BoundUnit::PerSecond,
            Self::Share(_) => BoundUnit::Share,
        }
    }

    fn read(name: &str) -> Option<Self> {
        match name {
            "rate" => return Some(Self::Rate),
            "goodput" => return Some(Self::Goodput),
            _ => {}
        }
        if let Some((_, share)) = SHARES.iter().find(|(known, _)| *known == name) {
            return Some(Self::Share(*share));
        }
        let part = |(begins, of): &(&str, LoadTime)| {
            Some(Self::Spread(*of, SpreadPart::read(name.strip_prefix(begins)?)?))
        };
        TIMES.iter().find_map(part)
    }
}

impl SpreadPart {
    fn read(name: &str) -> Option<Self> {
        match name {
            "mean" => return Some(Self::Mean),
            "max" => return Some(Self::Max),
            // As results and studies call them.
            "p999" => return Some(Self::Percentile(99.9)),
            "p9999" => return Some(Self::Percentile(99.99)),
            _ => {}
        }
        let digits = name.strip_prefix('p').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
        let percent = digits.parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent < 100.0)?;
        Some(Self::Percentile(percent))
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("threshold `{}`: {why}", sluice_units::shown(text));
        let usage = || wrong("write NUMBER<BOUND, such as get.p99<5ms, refused<1% or rate>9k".to_owned());
        let at = text.rfind(['<', '>']).ok_or_else(usage)?;
        let (left, right) = text.split_at(at);
        let (sign, side) = SIDES.into_iter().find(|(sign, _)| right.starts_with(sign)).ok_or_else(usage)?;
        let (left, bound_text) = (left.trim(), right[sign.len()..].trim());
        if left.is_empty() || left.ends_with('=') || bound_text.is_empty() || bound_text.starts_with('=') {
            return Err(usage());
        }
        let (class, number) = read_name(left).map_err(wrong)?;
        let bound = read_bound(number, bound_text).map_err(wrong)?;
        if side == BoundSide::Below && bound <= 0.0 {
            return Err(wrong("no number is below 0: write <=0".to_owned()));
        }
        Ok(Self { class, number, side, bound, bound_text: bound_text.to_owned() })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name(), self.limit())
    }
}

impl fmt::Display for LoadNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate => f.write_str("rate"),
            Self::Goodput => f.write_str("goodput"),
            Self::Share(share) => {
                f.write_str(SHARES.iter().find(|(_, of)| of == share).map_or("", |(name, _)| name))
            }
            Self::Spread(of, part) => {
                f.write_str(TIMES.iter().find(|(_, time)| time == of).map_or("", |(name, _)| name))?;
                match part {
                    SpreadPart::Mean => f.write_str("mean"),
                    SpreadPart::Max => f.write_str("max"),
                    SpreadPart::Percentile(percent) => write!(f, "p{percent}"),
                }
            }
        }
    }
}

/// The type, if there is one, and the number. A type's name may have dots, and so may a percentile's.
fn read_name(text: &str) -> Result<(Option<String>, LoadNumber), String> {
    if let Some(number) = LoadNumber::read(text) {
        return Ok((None, number));
    }
    for (at, _) in text.match_indices('.') {
        if let Some(number) = LoadNumber::read(&text[at + 1..]).filter(|_| at > 0) {
            return Ok((Some(text[..at].to_owned()), number));
        }
    }
    let name = text.split_once('.').map_or(text, |(_, name)| name);
    Err(sluice_units::unknown("number", name, KNOWN))
}

fn read_bound(number: LoadNumber, text: &str) -> Result<f64, String> {
    let plain = || sluice_units::number(text).ok().filter(|bound| *bound >= 0.0);
    match number.unit() {
        BoundUnit::Ns => sluice_units::span_ns(text).map_err(|why| format!("{number} is a time, and {why}")),
        BoundUnit::Share => read_share(text)
            .ok_or_else(|| format!("{number} is a share, and `{text}` is none: write 1% or 0.01")),
        BoundUnit::PerSecond => plain().ok_or_else(|| {
            format!("{number} is per second, and `{text}` is no number: write one, such as 9k")
        }),
        BoundUnit::Quotient => plain().ok_or_else(|| {
            format!("{number} is a quotient, and `{text}` is no number: write one, such as 10")
        }),
    }
}

/// A share with a percent sign, or as a part of 1. A plain 1 is refused: it may mean all tasks, one of a
/// hundred, or one task.
fn read_share(text: &str) -> Option<f64> {
    sluice_units::share(text).ok().filter(|share| *share < 1.0 || text.ends_with('%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Threshold {
        text.parse().unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn a_threshold_names_a_type_a_number_and_a_bound_in_the_units_of_people() {
        for (text, class, bound, shown) in [
            ("get.p99<5ms", Some("get"), 5e6, "get.p99<5ms"),
            ("p99.9 <= 1.5s", None, 1.5e9, "p99.9<=1.5s"),
            ("a.b/c.p999<1us", Some("a.b/c"), 1e3, "a.b/c.p99.9<1us"),
            ("a<b.max<1us", Some("a<b"), 1e3, "a<b.max<1us"),
            ("refused<1%", None, 0.01, "refused<1%"),
            ("get.failed<=0", Some("get"), 0.0, "get.failed<=0"),
            ("unknown<0.001", None, 0.001, "unknown<0.001"),
            ("late<100%", None, 1.0, "late<100%"),
            ("rate>9.5k", None, 9_500.0, "rate>9.5k"),
            ("get.slowdown_p99<10", Some("get"), 10.0, "get.slowdown_p99<10"),
            ("slowdown_server_mean<3", None, 3.0, "slowdown_server_mean<3"),
            ("scheduling_delay_p50<20us", None, 2e4, "scheduling_delay_p50<20us"),
        ] {
            let found = read(text);
            assert_eq!(found.class.as_deref(), class, "{text}");
            assert!((found.bound - bound).abs() <= bound * 1e-12, "{text}: {}", found.bound);
            assert_eq!(found.to_string(), shown);
            assert_eq!(read(shown), found);
        }
    }

    #[test]
    fn what_cannot_be_bounded_is_refused_with_what_to_write() {
        for (text, says) in [
            ("get.p99", "write NUMBER<BOUND, such as get.p99<5ms"),
            ("p99==5ms", "write NUMBER<BOUND"),
            ("p99=<5ms", "write NUMBER<BOUND"),
            ("p99<", "write NUMBER<BOUND"),
            ("get.p99x<5ms", "unknown number `p99x`; did you mean `p99`?"),
            ("refusd<1%", "unknown number `refusd`; did you mean `refused`?"),
            ("p100<5ms", "unknown number `p100`"),
            ("p0<5ms", "unknown number `p0`"),
            ("p99<5", "p99 is a time, and `5` is not a span"),
            ("p99<5%", "p99 is a time"),
            ("refused<5ms", "refused is a share, and `5ms` is none: write 1% or 0.01"),
            ("refused<1", "refused is a share, and `1` is none"),
            ("refused<101%", "refused is a share"),
            ("failed<NaN", "failed is a share"),
            ("rate>5ms", "rate is per second"),
            ("rate>-5", "rate is per second"),
            ("slowdown_p99<5ms", "slowdown_p99 is a quotient"),
            ("refused<0", "no number is below 0: write <=0"),
        ] {
            let why = text.parse::<Threshold>().expect_err(text);
            assert!(why.starts_with("threshold `") && why.contains(says), "{text}: {why}");
        }
    }

    #[test]
    fn a_bound_holds_on_its_side_only() {
        for (text, holds) in [
            ("p99<5ns", [true, false, false]),
            ("p99<=5ns", [true, true, false]),
            ("p99>5ns", [false, false, true]),
            ("p99>=5ns", [false, true, true]),
        ] {
            assert_eq!([4.0, 5.0, 6.0].map(|measured| read(text).holds(measured)), holds, "{text}");
        }
    }

    #[test]
    fn a_flag_means_the_same_number_on_the_same_side() {
        let is_of = |one: &str, other: &str| read(one).is_of(&read(other));
        assert!(is_of("get.p99<5ms", "get.p99<=1s"));
        assert!(!is_of("rate>5", "rate<9"));
        assert!(!is_of("get.p99<5ms", "p99<5ms"));
    }
}
