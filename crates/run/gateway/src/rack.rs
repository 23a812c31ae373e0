//! The rack as the protocols see it: types by name, and one task after the other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use sluice_net::TaskType;
use sluice_net::client::{Client, CompletionQueue, SpineClients, SubmitError, TaskSpec};

use tokio::time::timeout;

use crate::outcome::NotDone;
use crate::resp::{KvTask, NotTaken};

/// How often a name that is not known is asked for again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long after a task's deadline its client is heard that says more than that it passed.
const GRACE: Duration = Duration::from_millis(50);

/// What a caller says about a task beside its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskLimits {
    pub(crate) deadline: Option<Duration>,
    pub(crate) budget: Option<Duration>,
}

/// The rack.
pub(crate) struct GatewayRack {
    clients: SpineClients,
    limits: TaskLimits,
    names: RefCell<Names>,
    kv: [TaskType; 4],
}

struct Names {
    known: HashMap<String, TaskType>,
    looked: Instant,
}

impl GatewayRack {
    pub(crate) fn new(clients: SpineClients, limits: TaskLimits) -> Self {
        let known: HashMap<_, _> =
            clients.type_names().into_iter().map(|(number, name)| (name, number)).collect();
        let kv = KvTask::ALL.map(|task| known.get(task.name()).copied().unwrap_or(task.usual_type()));
        let names = RefCell::new(Names { known, looked: Instant::now() });
        Self { clients, limits, names, kv }
    }

    /// The type with this name or number.
    pub(crate) fn type_of(&self, text: &str) -> Option<TaskType> {
        if let Some(number) = text.parse().ok().filter(|number| *number > 0) {
            return Some(TaskType(number));
        }
        let mut names = self.names.borrow_mut();
        if !names.known.contains_key(text) && names.looked.elapsed() > LOOK_EVERY {
            // The rack may have another plan since.
            let now = self.clients.type_names().into_iter();
            names.known = now.map(|(number, name)| (name, number)).collect();
            names.looked = Instant::now();
        }
        names.known.get(text).copied()
    }

    fn spec(&self, of: TaskType, limits: TaskLimits) -> (TaskSpec, Duration) {
        let budget = limits.budget.or(self.limits.budget);
        let deadline = limits.deadline.or(self.limits.deadline);
        let deadline = deadline.unwrap_or_else(|| self.clients.draw(of).deadline_default());
        (TaskSpec { budget, ..of.into() }, deadline)
    }

    /// Runs a task, and waits for room before it and for its outcome.
    pub(crate) async fn run(
        &self,
        of: TaskType,
        bytes: &[u8],
        limits: TaskLimits,
    ) -> Result<Vec<u8>, NotDone> {
        let (spec, deadline) = self.spec(of, limits);
        let began = Instant::now();
        let submitted = self.clients.draw(of).submit_async(spec, bytes, deadline);
        // The wait for room counts, too. A task that is given up there was not handed over.
        let pending = match timeout(deadline, submitted).await {
            Ok(Ok(pending)) => pending,
            Ok(Err(SubmitError::TooLong { .. })) => return Err(NotDone::too_long()),
            Ok(Err(_)) => return Err(NotDone::ending()),
            Err(_) => return Err(NotDone::crowded()),
        };
        let left = deadline.saturating_sub(began.elapsed()) + GRACE;
        match timeout(left, pending).await {
            Ok(ended) => NotDone::done(ended.outcome),
            Err(_) => Err(NotDone::overdue()),
        }
    }

    /// Hands over a task of a store, whose outcome goes to the queue; does not wait.
    pub(crate) fn submit(
        &self,
        queue: &CompletionQueue,
        tag: u64,
        task: KvTask,
        bytes: &[u8],
    ) -> Result<(), NotTaken> {
        let of = self.kv[task as usize];
        let client: &Client = self.clients.draw(of);
        let budget = self.limits.budget;
        let deadline = self.limits.deadline.unwrap_or_else(|| client.deadline_default());
        let spec = TaskSpec { budget, ..of.into() };
        match client.try_submit_to(queue, tag, spec, bytes, deadline) {
            Ok(()) => Ok(()),
            Err(SubmitError::Busy) => Err(NotTaken::Full),
            Err(_) => Err(NotTaken::Closed),
        }
    }
}
