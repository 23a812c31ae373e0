//! A request of the controls of overload.

use sluice_wire::Nanos;

/// A request, from its client on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueuedRequest {
    pub(super) due: Nanos,
    pub(super) service: Nanos,
    pub(super) class: u8,
    pub(super) client: u32,
    pub(super) arrived: Nanos,
    /// How long it waited there, once it is served.
    pub(super) waited: Nanos,
}
