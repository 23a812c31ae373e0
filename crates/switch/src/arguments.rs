//! Numbers and times in what a program is asked for, such as `draconis:poll=1us`.

use core::fmt;
use core::ops::RangeInclusive;

use sluice_wire::Nanos;

/// A number that must lie in a range.
pub(crate) fn number(text: &str, within: RangeInclusive<u8>) -> Option<u8> {
    text.parse().ok().filter(|number| within.contains(number))
}

/// A span of time, as people write it: a number and `ns`, `us`, `ms` or `s`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub(crate) Nanos);

impl Span {
    const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

    /// Reads a whole number with its unit.
    pub(crate) fn read(text: &str) -> Option<Nanos> {
        let unit = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at(unit);
        let (_, ns) = Self::UNITS.iter().find(|(name, _)| *name == unit)?;
        number.parse::<u64>().ok()?.checked_mul(*ns).map(Nanos)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, ns): &&(&str, u64)| self.0.0.is_multiple_of(*ns);
        let (name, ns) = Self::UNITS.iter().rev().find(fits).unwrap_or(&Self::UNITS[0]);
        write!(f, "{}{name}", self.0.0 / ns)
    }
}
