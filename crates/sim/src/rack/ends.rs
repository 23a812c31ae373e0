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

    /// The worker's service ends then.
    #[inline]
    pub(super) fn set(&mut self, worker: u32, moment: Moment) {
        let Moment { at, order } = moment;
        self.put(worker, Moment::new(at, order << WORKER_BITS | u64::from(worker)).key());
    }

    /// When the first service ends.
    #[inline]
    pub(super) fn first(&self) -> Moment {
        let key = self.nodes[1];
        Moment::new(Nanos((key >> 64) as u64), key as u64 >> WORKER_BITS)
    }

    /// Takes the worker whose service ends first.
    #[inline]
    pub(super) fn take(&mut self) -> u32 {
        let worker = self.nodes[1] as u32 & ((1 << WORKER_BITS) - 1);
        self.put(worker, Moment::NEVER.key());
        worker
    }

    #[inline]
    fn put(&mut self, worker: u32, mut best: u128) {
        let mut at = self.leaves + worker as usize;
        self.nodes[at] = best;
        while at > 1 {
            best = best.min(self.nodes[at ^ 1]);
            at /= 2;
            self.nodes[at] = best;
        }
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
                    let taken = ends.take() as usize;
                    assert_eq!(model[taken].take(), Some(first));
                }
            }
        }
    }
}
