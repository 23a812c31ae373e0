//! A task of the references.

use sluice_wire::Nanos;

/// A task as a discipline sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub at: Nanos,
    /// How long a worker takes for the task.
    pub service: Nanos,
    /// The index of the task's class in the workload.
    pub class: u8,
}
