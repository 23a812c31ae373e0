//! State shared by the application's threads and the packet thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_queue::ArrayQueue;
use sluice_host::client::ClientStats;
use sluice_wire::{Nanos, TaskType};

use super::ended::Completion;
use super::queue::SPARE_BYTES_MOST;
use super::submit_gate::SubmitGate;
use super::task_spec::TaskSpec;
use super::weights::SpineWeights;
use crate::udp::{SocketCounts, Waker};

/// How many buffers for the bytes of tasks a client keeps.
const SPARE_MOST: usize = 1_024;

/// State that both sides see.
pub(super) struct ClientShared {
    commands: Mutex<Vec<Command>>,
    /// Buffers for the bytes of tasks that wait to be sent.
    spare: ArrayQueue<Vec<u8>>,
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
            commands: Mutex::default(),
            spare: ArrayQueue::new(SPARE_MOST),
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

    /// Adds a command for the packet thread, which is woken.
    pub(super) fn command(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        self.waker.wake();
        if self.over.load(Ordering::SeqCst) {
            self.drain();
        }
    }

    /// Exchanges the commands so far for `empty`.
    pub(super) fn take_commands(&self, empty: &mut Vec<Command>) {
        std::mem::swap(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner), empty);
    }

    /// Drops commands that will not be read: their tasks end as never sent.
    pub(super) fn drain(&self) {
        let mut commands = Vec::new();
        self.take_commands(&mut commands);
    }

    /// A task's bytes, in a buffer of an earlier task if there is one.
    pub(super) fn keep(&self, bytes: &[u8]) -> Vec<u8> {
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.extend_from_slice(bytes);
        kept
    }

    /// Takes back the buffer of a task.
    pub(super) fn recycle(&self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE_BYTES_MOST {
            bytes.clear();
            // Beyond what is kept, a buffer is freed.
            self.spare.push(bytes).ok();
        }
    }
}

/// Says at its end that the packet thread reads no more commands, also if the thread panics: whoever waits
/// for room is answered, and tasks that were not read end as never sent.
pub(super) struct OverOnDrop(pub(super) Arc<ClientShared>);

impl Drop for OverOnDrop {
    fn drop(&mut self) {
        self.0.room.close();
        self.0.over.store(true, Ordering::SeqCst);
        self.0.drain();
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
    /// Packets that could not be parsed, were longer than any may be, or whose payload did not match its
    /// descriptor.
    pub unreadable: u64,
    pub socket: SocketCounts,
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::client::queue::CompletionQueue;
    use crate::client::submit_gate::GateAnswer;
    use crate::client::{Outcome, PendingTask, RefusedWhy};
    use crate::udp::{ReadySet, Waiting};

    fn task() -> (Command, PendingTask) {
        let (completion, pending) = Completion::pending();
        let (bytes, retry) = (Vec::new(), true);
        let (submitted, deadline) = (Nanos(0), Nanos(u64::MAX));
        let spec = TaskSpec::from(TaskType(0));
        (Command::Task(Task { spec, bytes, submitted, deadline, begin_by: None, retry, completion }), pending)
    }

    #[test]
    fn a_guard_in_a_thread_that_panics_leaves_nobody_waiting() {
        let ready = ReadySet::new(Waiting::Block).expect("a file descriptor");
        let shared = Arc::new(ClientShared::new(ready.waker()));
        let (command, before) = task();
        shared.command(command);
        while shared.room.take(0) == GateAnswer::Taken {}
        let queue = CompletionQueue::new();
        assert_eq!(shared.room.take_or_sleep(0, &queue.waker()), GateAnswer::Full);
        let over = OverOnDrop(Arc::clone(&shared));
        let panicked = thread::spawn(move || {
            let _over = over;
            panic!("as a defect would");
        });
        panicked.join().expect_err("it panicked");
        assert_eq!(queue.wait(&mut Vec::new(), 1, None), 0, "who waited for room was woken");
        let (command, after) = task();
        shared.command(command);
        for pending in [before, after] {
            assert_eq!(pending.wait().outcome, Outcome::Refused(RefusedWhy::NeverSent));
        }
        assert_eq!(shared.room.take(0), GateAnswer::Closed);
    }
}
