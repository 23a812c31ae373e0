//! What is to be done.

use sluice_wire::Nanos;

/// A task as a discipline sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub at: Nanos,
    /// How long it takes a worker.
    pub service: Nanos,
    /// Its class, by its place in the workload.
    pub class: u8,
}
