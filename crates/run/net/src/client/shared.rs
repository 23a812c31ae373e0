//! State shared by the application's threads and the packet thread.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use crossbeam_queue::SegQueue;
use sluice_host::client::ClientStats;
use sluice_wire::{Nanos, TaskType};

use super::ended::Completion;
use super::submit_gate::SubmitGate;
use super::task_spec::TaskSpec;
use super::weights::SpineWeights;
use crate::udp::{SocketCounts, Waker};

/// State that both sides see.
pub(super) struct ClientShared {
    pub(super) commands: SegQueue<Command>,
    pub(super) room: SubmitGate,
    pub(super) waker: Waker,
    /// How many workers serve each type.
    pub(super) weights: SpineWeights,
    /// The names of task types, as the controller reported them.
    type_names: Mutex<Vec<(TaskType, String)>>,
    /// Whether the packet thread has read its last command.
    pub(super) over: AtomicBool,
}

impl ClientShared {
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            commands: SegQueue::new(),
            room: SubmitGate::new(),
            waker,
            weights: SpineWeights::default(),
            type_names: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    /// Stores the names of task types that the controller reported.
    pub(super) fn name_types(&self, names: Vec<(TaskType, String)>) {
        *self.type_names.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    pub(super) fn type_names(&self) -> Vec<(TaskType, String)> {
        self.type_names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Drops commands that will not be read: their tasks end as never sent.
    pub(super) fn drain(&self) {
        while self.commands.pop().is_some() {}
    }
}

/// A request of the application's threads to the packet thread.
pub(super) enum Command {
    Task(Task),
    Report(tokio::sync::oneshot::Sender<ClientReport>),
    /// End once every task has its outcome.
    Close,
    /// End now.
    Abort,
}

/// A task that has a place in its lane.
pub(super) struct Task {
    pub(super) spec: TaskSpec,
    pub(super) bytes: Vec<u8>,
    pub(super) submitted: Nanos,
    pub(super) deadline: Nanos,
    /// The time after which the task is not worth beginning.
    pub(super) begin_by: Option<Nanos>,
    pub(super) retry: bool,
    pub(super) completion: Completion,
}

/// A client's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientReport {
    /// Tasks, attempts and outcomes.
    pub tasks: ClientStats,
    /// Tasks that were sent and have no outcome yet.
    pub outstanding: usize,
    /// Tasks that wait to be sent.
    pub waiting: usize,
    /// Packets that could not be parsed, or whose payload did not match its descriptor.
    pub unreadable: u64,
    pub socket: SocketCounts,
}
