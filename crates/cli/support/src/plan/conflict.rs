//! What does not fit in a plan whose values can be read one by one.

use sluice_workload::TomlStep;

/// A value that can be read and does not fit the others.
pub(super) struct PlanConflict {
    /// Where it is; its section's if it is not there.
    pub(super) path: Vec<TomlStep>,
    pub(super) why: String,
}

impl PlanConflict {
    pub(super) fn new<const STEPS: usize>(path: [TomlStep; STEPS], why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into() }
    }
}
