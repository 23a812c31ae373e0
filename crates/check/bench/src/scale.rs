//! Where callgrind starts and stops counting.

use std::hint::black_box;

/// The function that callgrind counts; a part of [`on_the_scale`]'s full name.
pub(crate) const NAME: &str = "on_the_scale";

/// Runs the work. Under callgrind, only this is counted.
#[inline(never)]
pub(crate) fn on_the_scale<R>(work: impl FnOnce() -> R) -> R {
    // The function must not end in a tail call: callgrind would continue to count.
    black_box(work())
}
