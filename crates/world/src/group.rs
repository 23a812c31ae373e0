//! A few keys, of which the smallest is looked for.

/// So many keys: there is no branch among them that a processor could guess wrong, and it compares those side
/// by side that do not wait for each other.
pub(crate) const GROUP: usize = 8;

/// The smallest one.
#[inline]
pub(crate) fn earliest(keys: &[u128; GROUP]) -> u128 {
    let pair = |first: usize| keys[first].min(keys[first + 1]);
    pair(0).min(pair(2)).min(pair(4).min(pair(6)))
}
