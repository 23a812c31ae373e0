//! What a view shows of any run, and how often.

use std::time::Duration;

/// How often the live view is drawn anew.
pub(super) const DRAW_EVERY: Duration = Duration::from_millis(200);

/// What stands above everything.
#[derive(Clone, Debug)]
pub struct Heading {
    pub what: String,
    /// Where the rack is found.
    pub place: String,
}
