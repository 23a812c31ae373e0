//! The promises over two hops (1, 2 and 4), checked apart from the machines that have to keep them.

use std::collections::HashMap;

use sluice_faults::Tally;
use sluice_host::client::Outcome;
use sluice_stats::{Mark, Observer, Outcome as IntervalTasks, Replied};
use sluice_wire::{Endpoint, Nanos, Submit, TaskId};

use crate::racks::watch::TaskObserver;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Replied,
    Refused,
    Unknown,
}

/// The fate of a task.
#[derive(Clone, Debug, Default)]
struct Fate {
    first_tried: Nanos,
    tries: Vec<u16>,
    /// The workers that ran the task, each with the number of its life.
    runs: Vec<(usize, u32)>,
    ending: Option<Ending>,
}

/// The record of all tasks.
#[derive(Debug)]
pub(super) struct HopOracle {
    fates: HashMap<TaskId, Fate>,
    /// Tasks that are first tried after this time meet no faults any more.
    settled: Nanos,
    now: Nanos,
    /// When any task was last tried, begun or answered.
    last: Nanos,
    /// The task that was tried last.
    pub(super) newest: Option<TaskId>,
    /// The first promise that broke.
    pub(super) broken: Option<String>,
}

impl HopOracle {
    pub(super) fn new(settled: Nanos) -> Self {
        Self { fates: HashMap::new(), settled, now: Nanos(0), last: Nanos(0), newest: None, broken: None }
    }

    pub(super) const fn set_now(&mut self, now: Nanos) {
        self.now = now;
    }

    /// Whether no task was tried, begun or answered for so long.
    pub(super) fn has_seen_nothing_for(&self, now: Nanos, span: Nanos) -> bool {
        now.since(self.last) >= span
    }

    /// The final check: each task has ended. Returns the counts.
    pub(super) fn close(&self) -> Result<Tally, String> {
        let mut tally = Tally::default();
        for (task, fate) in &self.fates {
            tally.submitted += 1;
            tally.run_again += fate.runs.len().saturating_sub(1) as u64;
            match fate.ending {
                Some(Ending::Replied) => tally.replied += 1,
                Some(Ending::Refused) => tally.refused += 1,
                Some(Ending::Unknown) => tally.unknown += 1,
                None => return Err(format!("promise 1: task {task} never ended")),
            }
        }
        Ok(tally)
    }

    fn record_breach(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }
}

impl TaskObserver for HopOracle {
    fn tried(&mut self, submit: &Submit) {
        let now = self.now;
        (self.last, self.newest) = (now, Some(submit.task));
        let fate =
            self.fates.entry(submit.task).or_insert_with(|| Fate { first_tried: now, ..Fate::default() });
        let (is_new, ending) = (!fate.tries.contains(&submit.attempt.0), fate.ending);
        fate.tries.push(submit.attempt.0);
        if !is_new {
            self.record_breach(format!("task {} was tried twice as try {}", submit.task, submit.attempt));
        } else if let Some(ending) = ending {
            self.record_breach(format!("task {} was tried again after it ended: {ending:?}", submit.task));
        }
    }

    fn started(&mut self, worker: (usize, u32), task: TaskId) {
        self.last = self.now;
        let Some(fate) = self.fates.get_mut(&task) else {
            return self.record_breach(format!("task {task} came out of nowhere"));
        };
        let again = fate.runs.contains(&worker);
        fate.runs.push(worker);
        let (runs, tries, ending) = (fate.runs.len(), fate.tries.len(), fate.ending);
        if again {
            self.record_breach(format!("promise 2: task {task} was run twice by worker {}", worker.0));
        } else if runs > tries {
            self.record_breach(format!("promise 2: task {task} ran {runs} times on {tries} tries"));
        } else if ending == Some(Ending::Refused) {
            self.record_breach(format!("promise 1: task {task} was refused and ran all the same"));
        }
    }

    /// With a wrong address a worker could not ask for the task's bytes, nor answer the client. A switch that
    /// does not know the address says an unspecified one.
    fn client_told(&mut self, task: TaskId, at: Endpoint, is_there: bool) {
        if !is_there && at != Endpoint::default() {
            self.record_breach(format!(
                "promise 4: a worker is told that the client of task {task} is at {at}"
            ));
        }
    }

    fn ended(&mut self, _: Nanos, task: TaskId, how: &Outcome) {
        self.last = self.now;
        let settled = self.settled;
        let ending = match how {
            Outcome::Reply(_) => Ending::Replied,
            Outcome::Refused(_) => Ending::Refused,
            Outcome::Unknown(_) => Ending::Unknown,
        };
        let Some(fate) = self.fates.get_mut(&task) else {
            return self.record_breach(format!("task {task} ended, and was never tried"));
        };
        let (earlier, ran) = (fate.ending.replace(ending), !fate.runs.is_empty());
        let is_settled = fate.first_tried >= settled;
        match ending {
            _ if earlier.is_some() => {
                self.record_breach(format!("promise 1: task {task} ended twice, then {ending:?}"));
            }
            Ending::Refused if ran => {
                self.record_breach(format!("promise 1: task {task} was refused, but it ran"));
            }
            Ending::Replied if !ran => {
                self.record_breach(format!("promise 2: task {task} got a reply that no run gave"));
            }
            Ending::Refused | Ending::Unknown if is_settled => {
                self.record_breach(format!(
                    "promise 4: task {task} found no worker, long after all faults: {how:?}"
                ));
            }
            _ => {}
        }
    }
}

/// As an observer it looks at tasks, and ignores when they were due.
impl Observer for HopOracle {
    fn sent(&mut self, _: Nanos) -> Mark {
        Mark::None
    }

    fn done(&mut self, _: &Replied) {}

    fn failed(&mut self, _: Nanos, _: IntervalTasks) {}

    fn is_complete(&self) -> bool {
        self.broken.is_some()
    }
}
