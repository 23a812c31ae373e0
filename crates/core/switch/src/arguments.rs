//! Numbers in what a program is asked for, such as `r2p2:sample=2`.

use core::ops::RangeInclusive;

/// A number that must lie in a range.
pub(crate) fn number(text: &str, within: RangeInclusive<u8>) -> Option<u8> {
    text.parse().ok().filter(|number| within.contains(number))
}
