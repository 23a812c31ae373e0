//! Tasks with budgets, in racks that have some (promise 9): which task has how much, and until when a worker
//! may begin a task that it got.

use std::collections::BTreeMap;

use sluice_events::dice::Dice;
use sluice_wire::{Budget, Dispatch, Nanos, TaskId};

use super::kind::RackKind;
use super::limits::FAULTS_END;
use super::oracle::{TaskKey, key};

/// A budget counts whole units of 1,024 ns. So much may be over when a task begins.
pub(super) const UNIT: Nanos = Nanos(1_024);
/// How many of a thousand tasks have a budget.
const BUDGETED: u64 = 300;
/// The longest budget of a task is one of these: from less than a unit up to several services and tries.
const LONGEST: [u64; 6] = [2, 30, 100, 300, 1_000, 10_000];

/// What is drawn for the tasks of a run.
#[derive(Debug)]
pub(super) struct TaskBudgets {
    dice: Option<Dice>,
}

impl TaskBudgets {
    pub(super) fn new(kind: &RackKind, seed: u64) -> Self {
        Self { dice: kind.has_budgets.then(|| Dice::named(seed, "budgets", 0)) }
    }

    /// Until when the next task is worth beginning. Tasks of the time after the faults have no budget: all
    /// of them are to be replied to.
    pub(super) fn draw(&mut self, now: Nanos) -> Option<Nanos> {
        let dice = self.dice.as_mut().filter(|_| now < FAULTS_END)?;
        if !dice.chance(BUDGETED) {
            return None;
        }
        let longest = Nanos::from_micros(dice.pick(&LONGEST));
        Some(now + dice.span(Nanos(1), longest))
    }
}

/// The tasks with budgets that came to a worker, and until when each may begin.
#[derive(Debug, Default)]
pub(super) struct BeginUntil(BTreeMap<TaskKey, Nanos>);

impl BeginUntil {
    /// A DISPATCH came to the worker's NIC. A repeat of a task that the worker holds changes nothing there,
    /// so the latest time counts.
    pub(super) fn came(&mut self, arrived: Nanos, dispatch: &Dispatch) {
        if let Some(left) = dispatch.budget.span() {
            let until = self.0.entry(key(dispatch.task)).or_default();
            *until = (arrived + left).max(*until);
        }
    }

    /// Promise 9: a task begins within its budget.
    pub(super) fn begins(&mut self, at: Nanos, task: TaskId) -> Result<(), String> {
        match self.0.remove(&key(task)) {
            Some(until) if at > until + UNIT => {
                let over = at.since(until).0;
                Err(format!("promise 9: task {task} begins {over} ns after its budget was spent"))
            }
            _ => Ok(()),
        }
    }
}

/// Promise 9: a DISPATCH tells no more than the wait has left of what came.
pub(super) fn check_left(task: TaskId, came: Budget, wait: Nanos, told: Budget) -> Result<(), String> {
    let is_kept = match (came.span(), told.span()) {
        (None, None) => true,
        (Some(came), Some(told)) => told <= came.since(wait) + UNIT,
        _ => false,
    };
    if is_kept {
        return Ok(());
    }
    let wait = wait.0;
    Err(format!("promise 9: task {task} came with {came:?}, waited {wait} ns, and tells {told:?}"))
}
