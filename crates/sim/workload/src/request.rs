//! A task of a workload.

use sluice_wire::{Nanos, TaskType};

/// A task that a client has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When the request is due, from the start of the run.
    pub at: Nanos,
    /// The index of the request's class in the workload.
    pub class: u8,
    /// The type for the switch.
    pub task_type: TaskType,
    /// The request's service time.
    pub service: Nanos,
    /// Whether the request has more bytes than the 8 of a queue entry.
    pub large: bool,
}
