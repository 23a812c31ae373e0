//! A record of each task of a run, for comparing runs task by task.

use sluice_wire::Nanos;

use super::recorder::{Mark, Observer, Outcome, Replied};

/// The tasks that got a reply before a given time. Tasks that ended otherwise are left out.
#[derive(Clone, Debug)]
pub struct TaskLog {
    entries: Vec<LoggedTask>,
    until: Nanos,
    is_complete: bool,
}

/// A task that got a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoggedTask {
    /// When the task was due.
    pub intended: Nanos,
    /// How long the task was served.
    pub service: Nanos,
    /// When the reply arrived.
    pub replied_at: Nanos,
    /// The task's waits in switch and worker together.
    pub waited: Nanos,
}

impl TaskLog {
    /// An empty diary, for replies before `until`.
    pub const fn until(until: Nanos) -> Self {
        Self { entries: Vec::new(), until, is_complete: false }
    }

    /// The entries, in the order of the replies.
    pub fn entries(self) -> Vec<LoggedTask> {
        self.entries
    }

    /// The entries, in the order in which the tasks were due.
    pub fn in_order(mut self) -> Vec<LoggedTask> {
        self.entries.sort_unstable();
        self.entries
    }
}

impl Observer for TaskLog {
    fn sent(&mut self, at: Nanos) -> Mark {
        self.is_complete = at >= self.until;
        Mark::None
    }

    fn done(&mut self, task: &Replied) {
        let Replied { intended, at: replied_at, service, waited, .. } = *task;
        if replied_at < self.until {
            self.entries.push(LoggedTask { intended, service, replied_at, waited });
        }
    }

    fn failed(&mut self, _: Nanos, _: Outcome) {}

    fn is_complete(&self) -> bool {
        self.is_complete
    }
}
