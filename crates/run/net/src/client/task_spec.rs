//! What an application asks of a rack: a task's type, urgency, labels and budget.

use std::sync::Arc;
use std::time::Duration;

use sluice_host::client::Urgency;
use sluice_wire::serving::Labels;
use sluice_wire::{Nanos, TaskType};

/// A task's type, its urgency, the labels that it needs, and its budget. A type alone implies no urgency, no
/// labels and no budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// The type of the task, which selects its slice.
    pub of: TaskType,
    /// The task's urgency, for racks with priority classes.
    pub urgency: Urgency,
    /// Labels that the worker must have in addition to those of the type. If the slice treats labels as
    /// wishes, it should have them.
    pub needs: RequiredLabels,
    /// For how long the task is worth beginning, from when it is submitted: at most 67 ms. A task that has
    /// nothing left of its budget is refused at its client, in the switch or at a worker, and does not run.
    /// Time on the network does not count.
    pub budget: Option<Duration>,
}

impl TaskSpec {
    /// A task with this expected service time.
    pub fn sized(of: TaskType, work: Duration) -> Self {
        let work = Nanos(u64::try_from(work.as_nanos()).unwrap_or(u64::MAX));
        Self { urgency: Urgency::Work(work), ..of.into() }
    }

    /// A task of this class; class 0 goes first.
    pub fn of_class(of: TaskType, class: u8) -> Self {
        Self { urgency: Urgency::Priority(class), ..of.into() }
    }

    /// This task, if it begins within this time.
    #[must_use]
    pub fn within(self, budget: Duration) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// This task, for workers with these labels only.
    #[must_use]
    pub fn needing(self, needs: &RequiredLabels) -> Self {
        Self { needs: needs.clone(), ..self }
    }
}

impl From<TaskType> for TaskSpec {
    fn from(of: TaskType) -> Self {
        Self { of, urgency: Urgency::Unstated, needs: RequiredLabels::default(), budget: None }
    }
}

/// Labels that a worker must have, by their names in the rack's plan. Created once and cloned for each
/// task, which does not allocate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredLabels(Option<Arc<[String]>>);

impl RequiredLabels {
    /// These labels, such as `gpu`. They are checked when a task is sent: a label that the rack does not
    /// know refuses the task at once, as [`UnknownLabel`](sluice_host::client::RefusedWhy::UnknownLabel).
    pub fn of(labels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let labels: Arc<[String]> = labels.into_iter().map(Into::into).collect();
        Self((!labels.is_empty()).then_some(labels))
    }

    /// The labels' bits in a rack's list of labels; `None` if one of them is not in it.
    pub(super) fn among(&self, known: &[String]) -> Option<Labels> {
        let bit = |label| known.iter().position(|name| name == label).map(|place| Labels(1 << place));
        let mut each = self.0.iter().flat_map(|labels| labels.iter());
        each.try_fold(Labels::NONE, |all, label| Some(all.and(bit(label)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bits_in_the_order_in_which_the_rack_names_them() {
        let known = ["gpu", "ssd", "tpu"].map(str::to_owned);
        let among = |labels: &[&str]| RequiredLabels::of(labels.iter().copied()).among(&known);
        assert_eq!(among(&[]), Some(Labels::NONE));
        assert_eq!(among(&["tpu", "gpu"]), Some(Labels(5)));
        assert_eq!(among(&["gpu", "cpu"]), None, "nobody knows this label");
        assert_eq!(RequiredLabels::default().among(&[]), Some(Labels::NONE));
    }
}
