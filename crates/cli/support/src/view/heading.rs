//! The heading of the view of a run, and how often the view is drawn.

use std::time::Duration;

/// How often the live view is redrawn.
pub(super) const DRAW_EVERY: Duration = Duration::from_millis(200);

/// The heading.
#[derive(Clone, Debug)]
pub struct Heading {
    pub what: String,
    /// The address of the rack.
    pub place: String,
}
