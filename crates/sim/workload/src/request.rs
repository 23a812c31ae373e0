//! A task of a workload.

use sluice_wire::{Nanos, TaskType};

/// A task that a client is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it is due, from the start.
    pub at: Nanos,
    /// Its class, by its place in the workload.
    pub class: u8,
    /// The type that the switch sees.
    pub task_type: TaskType,
    /// How long it takes a worker.
    pub service: Nanos,
    /// Whether it carries more than the 8 bytes that ride in a queue entry.
    pub large: bool,
}
