//! The delays of tasks, as counted at the worker's link (`targets/ebpf/load.bpf.c`).
//!
//! Tasks leave at random times, in spells of a few milliseconds; each spell begins with no packet under
//! way. If another process had the core of one of our threads during a spell, the spell says more about
//! that process than about a switch: it is left out, and the share of such spells is reported.

use std::error::Error;
use std::fs;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rustix::thread::Pid;
use sluice_net::clock::monotonic;
use sluice_wire::Nanos;

/// How many tasks are enough for a 99th percentile.
const ENOUGH: u64 = 20_000;
/// How long a spell lasts.
const SPELL: Nanos = Nanos::from_millis(2);
/// Shorter waits for a core, in nanoseconds, are the kernel's own work, which belongs to the measurement.
const INTERRUPTED: u64 = 20_000;

/// The sink's histogram: buckets of one nanosecond up to this value, then a fixed number for each doubling.
const EXACT: usize = 64;
const STEPS: usize = 32;
const BUCKETS: usize = EXACT + STEPS * 32;

/// The sink's counts by bucket.
pub(crate) type Counts = [u64; BUCKETS];
pub(crate) const NONE: Counts = [0; BUCKETS];

/// The delays of all spells that count.
pub(crate) struct Delays {
    counts: Counts,
    kept: u32,
    left_out: u32,
}

impl Delays {
    pub(crate) const fn new() -> Self {
        Self { counts: NONE, kept: 0, left_out: 0 }
    }

    /// Adds a spell, in which threads waited `waited_ns` for their cores.
    pub(crate) fn add(&mut self, spell: &Counts, waited_ns: u64) {
        if waited_ns > INTERRUPTED {
            self.left_out += 1;
            return;
        }
        self.kept += 1;
        self.counts.iter_mut().zip(spell).for_each(|(all, of)| *all += of);
    }

    pub(crate) fn are_enough(&self) -> bool {
        self.tasks() >= ENOUGH
    }

    pub(crate) fn tasks(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share of spells that were left out.
    pub(crate) fn left_out(&self) -> f64 {
        f64::from(self.left_out) / f64::from((self.kept + self.left_out).max(1))
    }

    /// The delay in µs that this share of tasks does not exceed: the upper end of its bucket.
    pub(crate) fn quantile_us(&self, share: f64) -> f64 {
        let due = (self.tasks() as f64 * share).ceil() as u64;
        let mut so_far = 0;
        let at = self.counts.iter().position(|count| {
            so_far += count;
            so_far >= due
        });
        at.map_or(f64::NAN, |at| end_of(at) as f64 / 1e3)
    }
}

/// The upper end of a bucket, in nanoseconds.
const fn end_of(bucket: usize) -> u64 {
    if bucket < EXACT {
        return bucket as u64;
    }
    let doublings = bucket / STEPS - 1;
    ((bucket - doublings * STEPS + 1) as u64) << doublings
}

/// Random departure times of tasks.
pub(crate) struct Arrivals {
    dice: ChaCha8Rng,
    apart_ns: f64,
}

impl Arrivals {
    pub(crate) fn new(per_s: f64) -> Self {
        Self { dice: ChaCha8Rng::seed_from_u64(20), apart_ns: 1e9 / per_s }
    }

    /// Sends the tasks of one spell, each with its departure time. Returns how many.
    pub(crate) fn spell(&mut self, mut send: impl FnMut(Nanos)) -> u32 {
        let began = monotonic();
        let (mut sent, mut due) = (0, self.gap_ns());
        while due < SPELL.0 as f64 {
            let at = Nanos(began.0 + due as u64);
            while monotonic() < at {
                std::hint::spin_loop();
            }
            send(at);
            sent += 1;
            due += self.gap_ns();
        }
        sent
    }

    fn gap_ns(&mut self) -> f64 {
        // Strictly between 0 and 1.
        let drawn = (f64::from(self.dice.next_u32()) + 0.5) / 4_294_967_296.0;
        -self.apart_ns * drawn.ln()
    }
}

/// For how many nanoseconds this thread and another one have waited for a core.
pub(crate) fn waited_ns(other: Option<Pid>) -> Result<u64, Box<dyn Error>> {
    let mut files = vec!["/proc/thread-self/schedstat".to_owned()];
    files.extend(other.map(|thread| format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero())));
    let mut waited = 0;
    for file in files {
        let text = fs::read_to_string(file)?;
        waited += text.split_whitespace().nth(1).ok_or("no wait")?.parse::<u64>()?;
    }
    Ok(waited)
}
