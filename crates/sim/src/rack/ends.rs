//! When services end: each worker has one at most, so that a fixed tree sorts them.

use sluice_wire::Nanos;

use crate::agenda::Moment;

/// A winner tree over all workers. A change costs one comparison a level, which needs no guessed branch.
#[derive(Debug)]
pub(super) struct Ends {
    /// Leaves stand in the upper half; node `n` holds the earlier of `2n` and `2n + 1`.
    nodes: Vec<u128>,
    leaves: usize,
}

/// Below a moment's order stands the worker.
const WORKER_BITS: u32 = 24;

impl Ends {
    pub(super) fn new(workers: u32) -> Self {
        let leaves = (workers as usize).next_power_of_two();
        Self { nodes: vec![Moment::NEVER.key(); 2 * leaves], leaves }
    }

    /// The worker's service ends then; never, if it has none.
    #[inline]
    pub(super) fn set(&mut self, worker: u32, Moment { at, order }: Moment) {
        let mut best = Moment::new(at, order << WORKER_BITS | u64::from(worker)).key();
        let mut place = self.leaves + worker as usize;
        self.nodes[place] = best;
        while place > 1 {
            best = best.min(self.nodes[place ^ 1]);
            place /= 2;
            self.nodes[place] = best;
        }
    }

    /// When the first service ends.
    #[inline]
    pub(super) fn first(&self) -> Moment {
        let key = self.nodes[1];
        Moment::new(Nanos((key >> 64) as u64), key as u64 >> WORKER_BITS)
    }

    /// Whose that is.
    #[inline]
    pub(super) fn first_worker(&self) -> u32 {
        self.nodes[1] as u32 & ((1 << WORKER_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    #[test]
    fn the_first_end_comes_first_and_ties_in_the_order_of_entry() {
        for workers in [1, 2, 5, 64] {
            let (mut dice, mut ends) = (Dice::new(1, 0), Ends::new(workers));
            let mut model: Vec<Option<(Nanos, u64)>> = vec![None; workers as usize];
            for order in 0..2_000 {
                let worker = dice.below(workers.into()) as u32;
                if model[worker as usize].is_none() {
                    let at = Nanos(dice.below(20));
                    ends.set(worker, Moment::new(at, order));
                    model[worker as usize] = Some((at, order));
                } else if let Some(first) = model.iter().flatten().min().copied() {
                    assert_eq!(ends.first(), Moment::new(first.0, first.1));
                    let worker = ends.first_worker();
                    assert_eq!(model[worker as usize].take(), Some(first));
                    ends.set(worker, Moment::NEVER);
                }
            }
        }
    }
}
