//! How often racks are asked, and how much of them is kept.

use std::time::Duration;

/// How often each controller is asked.
pub(crate) const ASK_EVERY: Duration = Duration::from_secs(1);
/// How many answers are kept for the charts: ten minutes.
pub(crate) const SAMPLES_MAX: usize = 600;
/// The shortest time that a picture shows, so that the first samples are not stretched over it.
pub(crate) const SPAN_MIN_S: f64 = 60.0;
/// How many events are kept.
pub(crate) const EVENTS_MAX: usize = 200;
