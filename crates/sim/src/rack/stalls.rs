//! Interference: times in which a worker's core does something else, and a time in which some are slow.

use sluice_wire::Nanos;

use crate::dice::Dice;
use crate::testbed::{Slow, Testbed};

/// The workers' cores. What one is at takes longer by the stalls that fall into it, and by its slowness.
#[derive(Debug)]
pub(super) struct Cores {
    /// Empty if no core ever stalls.
    next: Vec<Stall>,
    mean_gap_ns: f64,
    length: Nanos,
    slow: Option<Slow>,
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
        let is_slow = |slow: &&Slow| !slow.workers.is_empty() && slow.factor > 1.0 && slow.length > Nanos(0);
        let slow = Some(&testbed.slow).filter(is_slow).cloned();
        Self { next: next.collect(), mean_gap_ns, length: stalls.length, slow }
    }

    /// When `work` that begins at `from` is done.
    #[inline]
    pub(super) fn spend(&mut self, worker: u32, from: Nanos, work: Nanos) -> Nanos {
        let work = if self.slow.is_none() { work } else { self.slowed(worker, from, work) };
        if self.next.is_empty() { from + work } else { self.interrupted(worker, from, work) }
    }

    /// How long the work takes: only what falls into the slow time takes longer.
    fn slowed(&self, worker: u32, from: Nanos, work: Nanos) -> Nanos {
        let Some(slow) = self.slow.as_ref().filter(|slow| slow.workers.contains(&worker)) else {
            return work;
        };
        let (begins, ends) = (slow.from, slow.from + slow.length);
        let before = if from < begins { begins.since(from).min(work) } else { Nanos(0) };
        let left = work - before;
        let starts = from + before;
        if left == Nanos(0) || starts >= ends {
            return work;
        }
        let room = (ends.since(starts).0 as f64 / slow.factor) as u64;
        let within = left.min(Nanos(room));
        let within_takes = Nanos((within.0 as f64 * slow.factor) as u64);
        before + within_takes + (left - within)
    }

    fn interrupted(&mut self, worker: u32, from: Nanos, work: Nanos) -> Nanos {
        let Self { next, mean_gap_ns, length, .. } = self;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_falls_into_the_slow_time_takes_longer() {
        let us = Nanos::from_micros;
        let slow = Slow { workers: vec![1], factor: 3.0, from: us(100), length: us(30) };
        let mut cores = Cores::new(&Testbed { slow, ..Testbed::ideal() }, 1, 0);
        let mut takes = |worker, from, work| cores.spend(worker, us(from), us(work)).since(us(from));
        assert_eq!(takes(0, 100, 10), us(10), "another worker");
        assert_eq!(takes(1, 80, 20), us(20), "before");
        assert_eq!(takes(1, 130, 10), us(10), "afterwards");
        assert_eq!(takes(1, 100, 5), us(15));
        assert_eq!(takes(1, 95, 10), us(5 + 15));
        assert_eq!(takes(1, 124, 10), us(6 + 8));
        assert_eq!(takes(1, 90, 40), us(10 + 30 + 20));
    }
}
