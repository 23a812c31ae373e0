//! What a caller asks of a rack, as the client takes it.

use std::time::{Duration, Instant};

use sluice_net::TaskType;
use sluice_net::client::TaskSpec;

/// A task but for its bytes.
#[derive(Clone)]
pub(crate) struct Ask {
    spec: TaskSpec,
    /// From when the task is handed to the client.
    pub(crate) deadline: Duration,
    /// When the task was submitted: its budget counts from then.
    at: Instant,
}

impl Ask {
    /// A task that is submitted now.
    pub(crate) fn new(spec: TaskSpec, deadline: Duration) -> Self {
        Self { spec, deadline, at: Instant::now() }
    }

    /// The type of the task.
    pub(crate) const fn task_type(&self) -> TaskType {
        self.spec.of
    }

    /// The task now: what is left of its budget.
    pub(crate) fn spec(&self) -> TaskSpec {
        let spec = self.spec.clone();
        TaskSpec { budget: spec.budget.map(|budget| budget.saturating_sub(self.at.elapsed())), ..spec }
    }

    /// This ask, as if it was made now.
    pub(crate) fn anew(&self) -> Self {
        Self { at: Instant::now(), ..self.clone() }
    }
}
