//! What a worker says of when it wants to be run again.

use sluice_wire::Nanos;

/// When a worker wants to be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// When its socket has something, and at this time.
    At(Option<Nanos>),
    /// Never.
    Over,
}
