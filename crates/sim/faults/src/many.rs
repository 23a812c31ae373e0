//! Many seeds on all cores.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::{Broken, RackKind, Tally, run};

/// The sum of many runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Many {
    /// Runs that ended.
    pub runs: u64,
    pub tally: Tally,
    /// Of the broken runs that were found before the threads stopped, the one with the smallest seed.
    pub broken: Option<Broken>,
}

impl Many {
    fn add(&mut self, outcome: Result<Tally, Broken>) {
        self.runs += 1;
        match outcome {
            Ok(tally) => self.tally = self.tally.plus(tally),
            Err(broken) if self.broken.as_ref().is_none_or(|held| broken.seed < held.seed) => {
                self.broken = Some(broken);
            }
            Err(_) => {}
        }
    }
}

/// Runs these seeds of a rack on so many threads, until one breaks a promise or `go_on` returns false.
/// `go_on` is called after each run, with the sum so far.
pub fn run_many(
    kind: &RackKind,
    seeds: Range<u64>,
    threads: usize,
    go_on: impl Fn(&Many) -> bool + Sync,
) -> Many {
    run_each(|seed| run(kind, seed), seeds, threads, go_on)
}

/// As [`run_many`], with another function for one run.
pub fn run_each(
    run: impl Fn(u64) -> Result<Tally, Broken> + Sync,
    seeds: Range<u64>,
    threads: usize,
    go_on: impl Fn(&Many) -> bool + Sync,
) -> Many {
    let next = AtomicU64::new(seeds.start);
    let stop = AtomicBool::new(false);
    let sum = Mutex::new(Many::default());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let outcome = run(seed);
                    let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    sum.add(outcome);
                    if sum.broken.is_some() || !go_on(&sum) {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
