//! A batch service on a core (RingLeader §2, §4.4): it is always ready, and less important than any
//! request.
//!
//! It is a coroutine without a request. A core runs it for one slice when it has nothing else to run, and
//! checks its ring after each slice.

use sluice_wire::Nanos;

use crate::coroutines::ServingCoroutine;

/// A core's state of the batch service.
#[derive(Debug, Default)]
pub(crate) struct BatchOnCore {
    /// The coroutine, once its first slice began.
    pub(crate) coroutine: Option<ServingCoroutine>,
    /// Whether the service said that no work is left.
    pub(crate) is_over: bool,
    /// How much of the core's time the service got.
    pub(crate) took: Nanos,
}
