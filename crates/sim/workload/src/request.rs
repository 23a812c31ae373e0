//! A task of a workload.

use sluice_wire::{Nanos, TaskType};

/// A task that a client has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it is due, from the start of the run.
    pub at: Nanos,
    /// The index of its class in the workload.
    pub class: u8,
    /// The type for the switch.
    pub task_type: TaskType,
    /// Its service time.
    pub service: Nanos,
    /// Whether it has more bytes than the 8 of a queue entry.
    pub large: bool,
}
