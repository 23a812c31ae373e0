//! The observers of tasks in a datacenter: those of curves, and those of fault runs, which see more.

use sluice_host::client::Outcome;
use sluice_stats::{Mark, Observer, Outcome as IntervalTasks, Recorder, Replied};
use sluice_wire::{Endpoint, Nanos, Submit, TaskId};

/// An observer that may also see what happens to tasks on their way.
pub(crate) trait TaskObserver: Observer {
    /// A client sent a try of a task.
    fn tried(&mut self, _submit: &Submit) {}

    /// A worker, in the life with this number, begins to run a task.
    fn started(&mut self, _worker: (usize, u32), _task: TaskId) {}

    /// A leaf sent a task to a worker, and told it where the client is: rightly or not.
    fn client_told(&mut self, _task: TaskId, _at: Endpoint, _is_there: bool) {}

    /// A client was told how its task ended.
    fn ended(&mut self, _now: Nanos, _task: TaskId, _how: &Outcome) {}
}

impl TaskObserver for Recorder {}

#[derive(Debug)]
pub(crate) struct CurveObserver<O>(pub(crate) O);

impl<O: Observer> TaskObserver for CurveObserver<O> {}

impl<O: Observer> Observer for CurveObserver<O> {
    fn sent(&mut self, at: Nanos) -> Mark {
        self.0.sent(at)
    }

    fn passed_over(&mut self, tasks: f64) {
        self.0.passed_over(tasks);
    }

    fn done(&mut self, task: &Replied) {
        self.0.done(task);
    }

    fn failed(&mut self, intended: Nanos, outcome: IntervalTasks) {
        self.0.failed(intended, outcome);
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }
}
