//! What is wanted of a rack.

use std::time::Duration;

use sluice_host::client::Urgency;
use sluice_wire::{Nanos, TaskType};

/// What is wanted: a task of this type, and how soon. A type alone says nothing of how soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errand {
    /// What kind of work it is.
    pub of: TaskType,
    /// How soon it should run, where the rack has classes of tasks.
    pub urgency: Urgency,
}

impl Errand {
    /// A task that is expected to be so much work.
    pub fn sized(of: TaskType, work: Duration) -> Self {
        let work = Nanos(u64::try_from(work.as_nanos()).unwrap_or(u64::MAX));
        Self { of, urgency: Urgency::Work(work) }
    }

    /// A task of this class; 0 goes first.
    pub const fn of_class(of: TaskType, class: u8) -> Self {
        Self { of, urgency: Urgency::Priority(class) }
    }
}

impl From<TaskType> for Errand {
    fn from(of: TaskType) -> Self {
        Self { of, urgency: Urgency::Unstated }
    }
}
