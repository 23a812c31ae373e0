//! Where callgrind starts and stops counting.

use std::hint::black_box;

/// What callgrind is told to look for; part of [`on_the_scale`]'s name only.
pub(crate) const NAME: &str = "on_the_scale";

/// Does the work; under callgrind, this and nothing else is counted.
#[inline(never)]
pub(crate) fn on_the_scale<R>(work: impl FnOnce() -> R) -> R {
    // The function must not end in a jump into another one: the count would go on behind it.
    black_box(work())
}
