//! Reads numbers in a program's arguments, such as `r2p2:sample=2`.

use core::ops::RangeInclusive;

/// Reads a number; `None` if it lies outside the range.
pub(crate) fn number(text: &str, within: RangeInclusive<u8>) -> Option<u8> {
    text.parse().ok().filter(|number| within.contains(number))
}
