//! The start time of the schedule that a group's client sends, for workers whose speed depends on the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_wire::Nanos;

/// No schedule has started.
const NEVER: u64 = u64::MAX;

/// The start of the newest schedule, on the machine's clock; shared by all clones.
#[derive(Clone, Debug)]
pub struct ScheduleStart(Arc<AtomicU64>);

impl Default for ScheduleStart {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(NEVER)))
    }
}

impl ScheduleStart {
    /// The start, which may be a moment ahead; `None` before the first schedule.
    pub fn get(&self) -> Option<Nanos> {
        let at = self.0.load(Ordering::Relaxed);
        (at != NEVER).then_some(Nanos(at))
    }

    pub(crate) fn set(&self, at: Nanos) {
        self.0.store(at.0, Ordering::Relaxed);
    }
}
