//! A live rack, or racks below spines, as the target of a load, through the client library.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_queue::SegQueue;
use sluice_net::client::{
    self, CutOff, Outcome as TaskOutcome, RefusedWhy, SpineClients, SubmitError, TaskSpec, UnknownWhy,
};
use sluice_net::clock::Clock;
use sluice_rpc::shown;
use sluice_wire::{Budget, Nanos, RejectReason, TaskType};

use super::source::Task;
use super::tally::{Ending, LATE, TaskEnd, UNKNOWN_TYPE};

/// A registered client of one switch or of several spines, and its outstanding tasks.
pub struct Target {
    client: SpineClients,
    types: Vec<TaskType>,
    /// For how long tasks of each type are worth beginning, from when they are due.
    budgets: Vec<Option<Duration>>,
    clock: Clock,
    start: Nanos,
    ended: Arc<SegQueue<TaskEnd>>,
}

impl Target {
    /// A target that sends through `client`; `types` are the types of the mix, in order, and `budgets` their
    /// tasks' budgets. The load begins now.
    pub fn new(
        client: impl Into<SpineClients>,
        types: Vec<TaskType>,
        budgets: Vec<Option<Duration>>,
    ) -> Self {
        let clock = Clock::start();
        Self { client: client.into(), types, budgets, start: clock.now(), clock, ended: Arc::default() }
    }

    /// When the load began, on the drivers' clock.
    pub const fn start(&self) -> Nanos {
        self.start
    }

    /// Returns the client after the load.
    pub fn into_client(self) -> SpineClients {
        self.client
    }

    /// The time since the load began.
    pub fn now(&self) -> Nanos {
        self.clock.now().since(self.start)
    }

    /// Submits a task that must end within `deadline`. Returns false if there is no room for it now.
    pub(super) fn offer(&self, task: &Task, deadline: Nanos) -> bool {
        let (start, kind, due) = (self.start, task.kind, task.due);
        let sink = Arc::clone(&self.ended);
        let deadline = Duration::from_nanos(deadline.0);
        // The budget counts from when the task was due, however often it has to be offered.
        let waited = Duration::from_nanos(self.now().since(due).0);
        let budget = self.budgets[kind].map(|budget| budget.saturating_sub(waited));
        if budget.is_some_and(|left| left < Duration::from_nanos(Budget::SHORTEST.0)) {
            self.refused(kind, due, late(CutOff::Client));
            return true;
        }
        let spec = TaskSpec { urgency: task.urgency, budget, ..self.types[kind].into() };
        let taken =
            self.client.draw(self.types[kind]).try_submit_with(spec, &task.bytes, deadline, move |ended| {
                sink.push(translate(&ended, start, kind, due));
            });
        match taken {
            Ok(()) => true,
            Err(SubmitError::Busy) => false,
            Err(why @ (SubmitError::TooLong { .. } | SubmitError::Closed)) => {
                self.refused(kind, due, submit_error(why));
                true
            }
        }
    }

    /// A task ends before it was sent.
    fn refused(&self, kind: usize, due: Nanos, why: &'static str) {
        let (at, attempts, ending) = (self.now(), 0, Ending::Refused(why));
        self.ended.push(TaskEnd { kind, due, at, attempts, worker: None, ending, complaint: None });
    }

    /// The next task that ended.
    pub(super) fn ended(&self) -> Option<TaskEnd> {
        self.ended.pop()
    }
}

fn translate(ended: &client::EndedTask, start: Nanos, kind: usize, due: Nanos) -> TaskEnd {
    let complaint = match &ended.outcome {
        TaskOutcome::Reply(answer) if answer.failed => Some(shown(&String::from_utf8_lossy(&answer.bytes))),
        _ => None,
    };
    let (worker, ending) = match &ended.outcome {
        TaskOutcome::Reply(answer) => {
            let ending = Ending::Reply {
                failed: answer.failed,
                switch_wait: answer.switch_wait,
                worker_wait: answer.worker_wait,
                service: answer.service,
            };
            (Some(answer.worker.0), ending)
        }
        TaskOutcome::Refused(RefusedWhy::NeverSent) => (None, Ending::Refused("never_sent")),
        TaskOutcome::Refused(RefusedWhy::Late(at)) => (None, Ending::Refused(late(*at))),
        TaskOutcome::Refused(RefusedWhy::LongBudget) => (None, Ending::Refused("long_budget")),
        TaskOutcome::Refused(RefusedWhy::TooLong) => (None, Ending::Refused("too_long")),
        TaskOutcome::Refused(RefusedWhy::NoClass { .. }) => (None, Ending::Refused("no_class")),
        TaskOutcome::Refused(RefusedWhy::UnknownLabel) => (None, Ending::Refused("unknown_label")),
        TaskOutcome::Refused(RefusedWhy::Busy { .. }) => (None, Ending::Refused(reject(RejectReason::Busy))),
        TaskOutcome::Refused(RefusedWhy::NoSlice(_)) => (None, Ending::Refused(UNKNOWN_TYPE)),
        TaskOutcome::Refused(RefusedWhy::Rejected(reason)) => (None, Ending::Refused(reject(*reason))),
        TaskOutcome::Unknown(UnknownWhy::Deadline) => (None, Ending::Unknown("deadline")),
        TaskOutcome::Unknown(UnknownWhy::ReplyGone) => (None, Ending::Unknown("reply_gone")),
        TaskOutcome::Unknown(UnknownWhy::TooOld) => (None, Ending::Unknown("too_old")),
    };
    TaskEnd { kind, due, at: ended.at.since(start), attempts: ended.attempts, worker, ending, complaint }
}

const fn reject(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::QueueFull => "queue_full",
        RejectReason::NoRoom => "no_room",
        RejectReason::NoWorkers => "no_workers",
        RejectReason::UnknownType => UNKNOWN_TYPE,
        RejectReason::StaleTokens => "stale_tokens",
        RejectReason::Unserved => "unserved",
        RejectReason::Busy => "busy",
        RejectReason::Late => late(CutOff::Switch),
    }
}

const fn late(at: CutOff) -> &'static str {
    let [at_client, in_switch, at_worker] = LATE;
    match at {
        CutOff::Client => at_client,
        CutOff::Switch => in_switch,
        CutOff::Worker => at_worker,
    }
}

const fn submit_error(why: SubmitError) -> &'static str {
    match why {
        SubmitError::Busy => "busy",
        SubmitError::TooLong { .. } => "too_long",
        SubmitError::Closed => "client_closed",
    }
}
