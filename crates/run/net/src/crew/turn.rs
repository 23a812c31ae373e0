//! What a host says of when it wants to be run again.

use sluice_wire::Nanos;

/// When a host wants to be run again.
pub(crate) enum Turn {
    /// When its socket has something, and at this time.
    At(Option<Nanos>),
    /// Never.
    Over,
}
