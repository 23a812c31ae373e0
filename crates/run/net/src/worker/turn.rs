//! When a worker wants its next turn.

use sluice_wire::Nanos;

/// When a worker wants its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// When its socket is ready, and at this time if there is one.
    At(Option<Nanos>),
    /// Never.
    Over,
}
