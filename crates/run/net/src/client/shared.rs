//! What goes between the application's threads and the packet thread.

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

/// What both sides see.
pub(super) struct ClientShared {
    pub(super) commands: SegQueue<Command>,
    pub(super) room: SubmitGate,
    pub(super) waker: Waker,
    /// How many workers serve each type.
    pub(super) weights: SpineWeights,
    /// What people call types, as the controller says.
    type_names: Mutex<Vec<(TaskType, String)>>,
    /// The packet thread has looked for commands for the last time.
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

    /// People call types so, as the controller says.
    pub(super) fn name_types(&self, names: Vec<(TaskType, String)>) {
        *self.type_names.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// What people call types.
    pub(super) fn type_names(&self) -> Vec<(TaskType, String)> {
        self.type_names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Drops the commands that nobody will take: their tasks were never sent, and say so.
    pub(super) fn drain(&self) {
        while self.commands.pop().is_some() {}
    }
}

/// What the application's threads ask of the packet thread.
pub(super) enum Command {
    Task(Task),
    Report(tokio::sync::oneshot::Sender<ClientReport>),
    /// End once every task has its outcome.
    Close,
    /// End now.
    Abort,
}

/// A task that holds a place in its lane.
pub(super) struct Task {
    pub(super) spec: TaskSpec,
    pub(super) bytes: Vec<u8>,
    pub(super) deadline: Nanos,
    pub(super) retry: bool,
    pub(super) completion: Completion,
}

/// What a client counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientReport {
    /// Tasks, attempts and outcomes.
    pub tasks: ClientStats,
    /// Tasks that were sent and have no outcome yet.
    pub outstanding: usize,
    /// Tasks that wait to be sent.
    pub waiting: usize,
    /// Packets that could not be read, or whose payload was not the one they described.
    pub unreadable: u64,
    pub socket: SocketCounts,
}
