//! How many workers serve each type at a client's spine: the weights by which spines are drawn.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use sluice_wire::{SliceId, TaskType};

/// Workers by type, as reported with the last renewal.
#[derive(Debug, Default)]
pub(super) struct SpineWeights(RwLock<BTreeMap<TaskType, u32>>);

impl SpineWeights {
    /// Stores how many workers serve each slice, and thereby each of its types. A type that is missing has
    /// no workers.
    pub(super) fn set(&self, types: &[(TaskType, SliceId)], workers: &[(SliceId, u32)]) {
        let serving = |of| workers.iter().find(|(slice, _)| *slice == of).map_or(0, |(_, count)| *count);
        let weights = types.iter().map(|(task_type, slice)| (*task_type, serving(*slice))).collect();
        // Nothing that can panic happens under this lock.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = weights;
    }

    /// How many workers serve a type.
    pub(super) fn of(&self, task_type: TaskType) -> u32 {
        let weights = self.0.read().unwrap_or_else(PoisonError::into_inner);
        weights.get(&task_type).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_weights(weights: &SpineWeights, types: &[(u16, u16)], workers: [u32; 2]) {
        let types: Vec<_> = types.iter().map(|(of, slice)| (TaskType(*of), SliceId(*slice))).collect();
        weights.set(&types, &[(SliceId(0), workers[0]), (SliceId(1), workers[1])]);
    }

    /// Types that share a lane of the client have separate weights.
    #[test]
    fn each_type_weighs_what_serves_it_whatever_other_types_there_are() {
        let weights = SpineWeights::default();
        for step in [1, 63, 64, 128, 256] {
            let (one, other) = (3, 3 + step);
            set_weights(&weights, &[(one, 0), (other, 1)], [5, 0]);
            assert_eq!([one, other].map(|of| weights.of(TaskType(of))), [5, 0], "{step} apart");
            set_weights(&weights, &[(other, 1), (one, 0)], [5, 7]);
            assert_eq!([one, other].map(|of| weights.of(TaskType(of))), [5, 7], "{step} apart");
        }
    }

    #[test]
    fn a_type_that_is_mapped_nowhere_any_more_weighs_nothing() {
        let weights = SpineWeights::default();
        set_weights(&weights, &[(1, 0), (2, 1)], [4, 4]);
        set_weights(&weights, &[(1, 0)], [4, 4]);
        assert_eq!([1, 2].map(|of| weights.of(TaskType(of))), [4, 0]);
    }
}
