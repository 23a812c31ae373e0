//! Classes of tasks.

use sluice_wire::sizes::KINDS_MAX;
use sluice_wire::{Budget, INLINE_BYTES, Nanos, TaskType};

use super::plan::Change;
use super::{Service, text};

/// Tasks of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The class's name, for people.
    pub name: String,
    /// The class's type, for the switch.
    pub task_type: TaskType,
    /// The class's share of all tasks.
    pub share: f64,
    /// How long the class's tasks take.
    pub service: Service,
    /// The share of the class's tasks with more bytes than the 8 of a queue entry.
    pub large: f64,
    /// How many bytes such a large task has.
    pub bytes: u16,
    /// The priority of the class's tasks, 0 first; `None`: their size alone decides.
    pub priority: Option<u8>,
    /// For how long a task of the class is worth beginning, from when it is due; `None` for no limit.
    pub budget: Option<Nanos>,
}

/// The default bytes of a large task: ten keys of 64 bytes.
pub const LARGE_BYTES: u16 = 640;
/// The most bytes that fit one WRITE beside the task's id; the rest of a longer task would go straight to
/// its worker.
pub(super) const BYTES_MAX: u16 = 4_084;
/// The last priority: no switch has more classes.
pub(super) const PRIORITY_MAX: u8 = KINDS_MAX as u8 - 1;

impl Class {
    pub(super) fn check(&self) -> Result<(), String> {
        text::check_name(&self.name).map_err(|why| format!("the class {why}"))?;
        for (what, share) in [("share", self.share), ("large share", self.large)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("the {what} {share} of class `{}` is not from 0 to 1", self.name));
            }
        }
        if !(INLINE_BYTES as u16 + 1..=BYTES_MAX).contains(&self.bytes) {
            let (name, bytes) = (&self.name, self.bytes);
            return Err(format!("class `{name}`: bytes = {bytes} is not a number from 9 to {BYTES_MAX}"));
        }
        if let Some(priority) = self.priority.filter(|priority| *priority > PRIORITY_MAX) {
            return Err(format!(
                "class `{}`: priority = {priority} is not a number from 0 (first) to {PRIORITY_MAX}",
                self.name
            ));
        }
        if let Some(budget) = self.budget {
            check_budget(budget).map_err(|why| format!("class `{}`: {why}", self.name))?;
        }
        Ok(())
    }
}

/// Reads a task's budget, such as `200us`.
///
/// # Errors
/// What is wrong, and what to write instead.
pub fn read_budget(text: &str) -> Result<Nanos, String> {
    let span = text::span(text)?;
    check_budget(span).map(|()| span)
}

/// Whether a packet can tell this budget, and whether it is one at all.
///
/// # Errors
/// What is wrong, and what to write instead.
pub fn check_budget(budget: Nanos) -> Result<(), String> {
    if budget > Budget::LONGEST {
        let most = Budget::LONGEST.0 / 1_000_000;
        return Err(format!(
            "a budget of {} is longer than a packet can tell: give at most {most}ms, or none",
            text::show_span(budget)
        ));
    }
    if budget < Budget::SHORTEST {
        return Err(format!(
            "a budget of {} is spent before its task can be sent: give at least {}us, and more than a round \
             trip",
            text::show_span(budget),
            Budget::SHORTEST.0.div_ceil(1_000)
        ));
    }
    Ok(())
}

/// The classes during a phase.
pub(super) fn changed(classes: &[Class], changes: &[Change]) -> Vec<Class> {
    let mut classes = classes.to_vec();
    for change in changes {
        let Some(class) = classes.get_mut(change.class) else { continue };
        class.share = change.share.unwrap_or(class.share);
        if let Some(service) = &change.service {
            class.service = service.clone();
        }
    }
    classes
}
