//! Promise 8: how many tokens passed over each class of waiting tasks.
//!
//! Every 16th token looks first for another class than the first, in turn. So with four classes each class
//! behind the first has one turn in 48 tokens, and a class that waits all the while is passed over at most
//! 47 times between two of its turns.

use sluice_wire::tables::KINDS_MAX;

/// One token of so many looks first for another class than the first.
const TURN: u32 = 16;

/// The most tokens in a row that pass over a waiting class, if there are so many classes; zero with one.
pub(super) const fn between_turns(classes: u8) -> u32 {
    (TURN * (classes as u32 - 1)).saturating_sub(1)
}

/// How many tokens in a row passed over each class while it waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PassedOver([u32; KINDS_MAX]);

impl PassedOver {
    /// Whether no class was passed over since it last had a task taken or none waiting.
    pub(super) fn is_zero(&self) -> bool {
        self.0 == [0; KINDS_MAX]
    }

    /// Only these classes, a bit each, have a waiting task. A class without one is not passed over, whoever
    /// took its last task; its count begins anew with its next task.
    pub(super) fn forget_all_but(&mut self, waiting: u8) {
        for (class, times) in self.0.iter_mut().enumerate() {
            if waiting >> class & 1 == 0 {
                *times = 0;
            }
        }
    }

    /// A token came while these classes waited, a bit each, and took a task of one of them, or none.
    /// Returns the first class that was passed over more often than it may be, and how often.
    pub(super) fn count(
        &mut self,
        waiting: u8,
        taken: Option<u8>,
        most: impl Fn(u8) -> u32,
    ) -> Option<(u8, u32)> {
        for (class, times) in (0_u8..).zip(&mut self.0) {
            let is_passed_over = waiting >> class & 1 == 1 && taken != Some(class);
            *times = if is_passed_over { *times + 1 } else { 0 };
        }
        (0_u8..).zip(self.0).find(|(class, times)| *times > most(*class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u8 = 0;
    const LAST: u8 = 3;
    const BOTH: u8 = 1 << FIRST | 1 << LAST;

    fn pass_over_last(counts: &mut PassedOver, times: u32) -> Option<(u8, u32)> {
        (0..times).find_map(|_| counts.count(BOTH, Some(FIRST), |_| between_turns(4)))
    }

    #[test]
    fn a_class_that_waits_for_more_than_its_turn_is_named() {
        assert_eq!([4, 2, 1].map(between_turns), [47, 15, 0]);
        assert_eq!(pass_over_last(&mut PassedOver::default(), 47), None);
        assert_eq!(pass_over_last(&mut PassedOver::default(), 48), Some((LAST, 48)));
    }

    #[test]
    fn a_class_that_was_taken_from_begins_anew() {
        let mut counts = PassedOver::default();
        assert_eq!(pass_over_last(&mut counts, 47), None);
        assert_eq!(counts.count(BOTH, Some(LAST), |_| between_turns(4)), None);
        assert_eq!(pass_over_last(&mut counts, 47), None);
    }

    #[test]
    fn a_class_whose_last_task_another_worker_or_a_sweep_took_begins_anew() {
        let mut counts = PassedOver::default();
        assert_eq!(pass_over_last(&mut counts, 47), None);
        counts.forget_all_but(1 << FIRST);
        assert!(counts.is_zero());
        assert_eq!(pass_over_last(&mut counts, 47), None);
    }
}
