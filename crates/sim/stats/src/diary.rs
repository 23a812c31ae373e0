//! Every task of a run by itself, for whoever holds runs against each other task by task.

use sluice_wire::Nanos;

use super::recorder::{Mark, Observer, Outcome, Replied};

/// The tasks that were replied to before a time. Those that ended otherwise are left out.
#[derive(Clone, Debug)]
pub struct Diary {
    entries: Vec<DiaryEntry>,
    until: Nanos,
    is_complete: bool,
}

/// A task that was replied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiaryEntry {
    /// When it was due.
    pub intended: Nanos,
    /// How long it was served.
    pub service: Nanos,
    /// When the reply came.
    pub replied_at: Nanos,
    /// What it waited in switch and worker together.
    pub waited: Nanos,
}

impl Diary {
    /// An empty one, of what is replied to before `until`.
    pub const fn until(until: Nanos) -> Self {
        Self { entries: Vec::new(), until, is_complete: false }
    }

    /// What was written, in the order of the replies.
    pub fn entries(self) -> Vec<DiaryEntry> {
        self.entries
    }

    /// What was written, in the order in which the tasks were due.
    pub fn in_order(mut self) -> Vec<DiaryEntry> {
        self.entries.sort_unstable();
        self.entries
    }
}

impl Observer for Diary {
    fn sent(&mut self, at: Nanos) -> Mark {
        self.is_complete = at >= self.until;
        Mark::None
    }

    fn done(&mut self, task: &Replied) {
        let Replied { intended, at: replied_at, service, waited, .. } = *task;
        if replied_at < self.until {
            self.entries.push(DiaryEntry { intended, service, replied_at, waited });
        }
    }

    fn failed(&mut self, _: Nanos, _: Outcome) {}

    fn is_complete(&self) -> bool {
        self.is_complete
    }
}
