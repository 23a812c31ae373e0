//! The spans of a worker's traced tasks: from the DISPATCH's arrival to the answer, with wait and service
//! below.

use sluice_traces::{SpanKind, TaskSpan, TraceId, Tracer, task_name};
use sluice_wire::{Nanos, TaskId, TaskType};

use super::run::ServiceEnd;
use crate::clock::Clock;

/// Tells a worker's spans from those of others in the same trace.
const OF_WORKERS: u64 = 1 << 63;

/// The tracer, if there is one.
pub(super) struct WorkerTraces {
    tracer: Option<Tracer>,
    worker: String,
}

/// A task's times at its worker.
pub(super) struct AnsweredTimes {
    pub(super) arrived: Nanos,
    pub(super) started: Nanos,
    pub(super) ended: Nanos,
    pub(super) answered: Nanos,
}

impl WorkerTraces {
    pub(super) fn new(tracer: Option<Tracer>, worker: &str) -> Self {
        Self { tracer, worker: worker.to_owned() }
    }

    /// Whether the task is traced.
    pub(super) fn take(&self, task: TaskId) -> bool {
        self.tracer.as_ref().is_some_and(|tracer| tracer.takes(task))
    }

    /// Writes the spans of a task that was answered, if it is traced.
    pub(super) fn answered(&self, task: TaskId, task_type: TaskType, end: ServiceEnd, times: &AnsweredTimes) {
        let Some(tracer) = self.tracer.as_ref().filter(|tracer| tracer.takes(task)) else { return };
        let (trace, clock) = (TraceId::of(task), Clock::start());
        let own = |part| trace.span(OF_WORKERS | times.arrived.0.wrapping_mul(4).wrapping_add(part));
        let failure = match end {
            ServiceEnd::Done => None,
            ServiceEnd::Failed => Some("failed"),
            ServiceEnd::Panicked => Some("panicked"),
        };
        let span = |part, parent, name, (from, to)| {
            let times = (clock.to_realtime(from), clock.to_realtime(to));
            TaskSpan::within(trace, (own(part), parent), name, times)
        };
        tracer.push(span(1, own(0), "wait", (times.arrived, times.started)));
        tracer.push(span(2, own(0), "run", (times.started, times.ended)));
        let mut whole = span(0, trace.root(), "worker", (times.arrived, times.answered));
        whole.kind = SpanKind::Server;
        whole.attributes = vec![
            ("sluice.task.id", task_name(task).into()),
            ("sluice.task.type", i64::from(task_type.0).into()),
            ("sluice.worker.name", self.worker.as_str().into()),
        ];
        whole.attributes.extend(failure.map(|why| ("error.type", why.into())));
        whole.failure = failure.map(|why| format!("the service {why}"));
        tracer.push(whole);
    }
}
