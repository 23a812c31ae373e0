//! Interference: stalls, in which a worker's core does something else, and a time in which some cores are
//! slow.

use sluice_events::dice::Dice;
use sluice_host::slow::SlowTime;
use sluice_testbed::Testbed;
use sluice_wire::Nanos;

/// The workers' cores. Work takes longer by the stalls that fall into it, and by the core's slowness.
#[derive(Debug)]
pub(super) struct Cores {
    /// The next stall of each core; empty if no core ever stalls.
    next: Vec<Stall>,
    mean_gap_ns: f64,
    length: Nanos,
    /// The slow time of each worker; empty if none is ever slow.
    slow: Vec<Option<SlowTime>>,
    /// Whether no core ever stalls or is slow.
    are_even: bool,
}

/// A worker's next stall, and the stream for later ones.
#[derive(Debug)]
struct Stall {
    at: Nanos,
    dice: Dice,
}

impl Cores {
    /// Cores that never stall and are never slow.
    pub(super) const EVEN: Self =
        Self { next: Vec::new(), mean_gap_ns: 0.0, length: Nanos(0), slow: Vec::new(), are_even: true };

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
        let slowed = if testbed.slow.is_any() { 0..testbed.workers } else { 0..0 };
        let slow: Vec<_> = slowed.map(|worker| testbed.slow.of(worker)).collect();
        let next: Vec<_> = next.collect();
        let are_even = next.is_empty() && slow.is_empty();
        Self { next, mean_gap_ns, length: stalls.length, slow, are_even }
    }

    /// When `work` that begins at `from` is done.
    #[inline]
    pub(super) fn spend(&mut self, worker: u32, from: Nanos, work: Nanos) -> Nanos {
        if self.are_even { from + work } else { self.spend_uneven(worker, from, work) }
    }

    #[inline(never)]
    fn spend_uneven(&mut self, worker: u32, from: Nanos, work: Nanos) -> Nanos {
        let slow = self.slow.get(worker as usize).copied().flatten();
        let work = slow.map_or(work, |slow| slow.takes(from, work));
        if self.next.is_empty() { from + work } else { self.interrupted(worker, from, work) }
    }

    fn interrupted(&mut self, worker: u32, from: Nanos, work: Nanos) -> Nanos {
        let Self { next, mean_gap_ns, length, .. } = self;
        let stall = &mut next[worker as usize];
        let mut end = from + work;
        while stall.at < end {
            let over = stall.at + *length;
            // A stall that began before the work delays the start of the work; one within it delays the
            // end.
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
    use sluice_testbed::Slow;

    #[test]
    fn only_the_workers_that_are_named_are_slow() {
        let us = Nanos::from_micros;
        let slow = Slow { workers: vec![1], factor: 3.0, from: us(100), length: us(30) };
        let mut cores = Cores::new(&Testbed { slow, ..Testbed::ideal() }, 1, 0);
        let mut takes = |worker, from, work| cores.spend(worker, us(from), us(work)).since(us(from));
        assert_eq!(takes(0, 100, 10), us(10), "another worker");
        assert_eq!(takes(1, 80, 20), us(20), "before");
        assert_eq!(takes(1, 95, 10), us(5 + 15));
        assert_eq!(takes(1, 130, 10), us(10), "afterwards");
    }
}
