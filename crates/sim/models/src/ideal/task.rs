//! A task of the references.

use sluice_wire::Nanos;

/// A task as a discipline sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub at: Nanos,
    /// How long it takes a worker.
    pub service: Nanos,
    /// The index of its class in the workload.
    pub class: u8,
}
