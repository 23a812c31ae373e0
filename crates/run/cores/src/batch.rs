//! A batch service on a core (RingLeader §2, §4.4): always ready, and less important than any request.
//!
//! It is a coroutine that no request names. A core runs it for a slice where it has nothing else to run, and
//! looks at its ring after each.

use sluice_wire::Nanos;

use crate::coroutines::ServingCoroutine;

/// What a core has of it.
#[derive(Debug, Default)]
pub(crate) struct BatchOnCore {
    /// From its first slice on.
    pub(crate) coroutine: Option<ServingCoroutine>,
    /// Whether it has said that there is nothing left to do.
    pub(crate) is_over: bool,
    /// What it got of the core's time.
    pub(crate) took: Nanos,
}
