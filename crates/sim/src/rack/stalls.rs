//! Interference: times in which a worker's core does something else.

use sluice_wire::Nanos;

use crate::dice::Dice;
use crate::testbed::Testbed;

/// The workers' cores. What one is at takes longer by the stalls that fall into it.
#[derive(Debug)]
pub(super) struct Cores {
    /// Empty if no core ever stalls.
    next: Vec<Stall>,
    mean_gap_ns: f64,
    length: Nanos,
}

/// A worker's next stall, and where the later ones come from.
#[derive(Debug)]
struct Stall {
    at: Nanos,
    dice: Dice,
}

impl Cores {
    pub(super) fn new(testbed: &Testbed, seed: u64, replication: u32) -> Self {
        let stalls = &testbed.stalls;
        let mean_gap_ns = 1e9 / stalls.per_s;
        let stalls_at_all = stalls.per_s > 0.0 && stalls.length > Nanos(0);
        let workers = if stalls_at_all { 0..testbed.workers } else { 0..0 };
        let next = workers.map(|worker| {
            let mut dice = Dice::named(seed, &format!("stalls of worker {worker}"), replication);
            let is_stalled = stalls.workers.is_empty() || stalls.workers.contains(&worker);
            let at = if is_stalled { Nanos(gap(&mut dice, mean_gap_ns)) } else { Nanos(u64::MAX) };
            Stall { at, dice }
        });
        Self { next: next.collect(), mean_gap_ns, length: stalls.length }
    }

    /// When `work` that begins at `from` is done.
    #[inline]
    pub(super) fn spend(&mut self, worker: u32, from: Nanos, work: Nanos) -> Nanos {
        if self.next.is_empty() { from + work } else { self.interrupted(worker, from, work) }
    }

    fn interrupted(&mut self, worker: u32, from: Nanos, work: Nanos) -> Nanos {
        let Self { next, mean_gap_ns, length } = self;
        let stall = &mut next[worker as usize];
        let mut end = from + work;
        while stall.at < end {
            let over = stall.at + *length;
            // A stall that began before the work delays its start, one within it its end.
            let lost = over.since(stall.at.max(from));
            end = end + lost;
            stall.at = over + Nanos(gap(&mut stall.dice, *mean_gap_ns));
        }
        end
    }
}

/// From a stall's end to the next one's beginning.
fn gap(dice: &mut Dice, mean_ns: f64) -> u64 {
    (dice.exponential() * mean_ns) as u64 + 1
}
