//! Times single operations of the RocksDB service.

use std::cell::Cell;
use std::fs;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use sluice_apps::progress::{Progress, Step};
use sluice_apps::rocks::{GET, Rocks, SCAN, codec};
use sluice_net::service::{Service, Task};
use sluice_net::udp::DATAGRAM_BYTES;
use sluice_sim::Dice;
use sluice_sim::workload::ProfileOperation;
use sluice_wire::{HEADER_BYTES, Nanos, TaskType};

use super::points::points;
use crate::args::ClockArg;
use crate::fail::{Failure, Kind, Outcome};
use crate::load::GET_KEYS_MAX;
use crate::stop::Stop;

/// A type runs this part of its samples before anything is measured, so that the processor has learnt it.
const WARM_UP_PART: u64 = 5;
/// How often progress is told and the stop is looked at, in operations.
const STEP: u64 = 500;
/// How often the clock is read to learn what that costs.
const CLOCK_READS: usize = 10_001;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Operation {
    pub(in crate::commands) verb: Verb,
    pub(in crate::commands) keys: u32,
    /// Whether `keys` is the mean of an exponential number.
    pub(in crate::commands) exponential: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Verb {
    Get,
    Scan,
}

/// RocksDB and a clock.
pub(in crate::commands) struct Bench {
    rocks: Rocks,
    terms: Terms,
    clock_cost: Nanos,
}

/// How it is measured.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Terms {
    pub(in crate::commands) clock: ClockArg,
    /// Keys in the database.
    pub(in crate::commands) keys: u64,
    /// Measured operations of each type.
    pub(in crate::commands) samples: u64,
    /// Seeds which keys are read.
    pub(in crate::commands) seed: u64,
}

impl Bench {
    pub(in crate::commands) fn new(rocks: Rocks, terms: Terms) -> Self {
        Self { rocks, terms, clock_cost: cost(terms.clock) }
    }

    /// Reads other keys from now on.
    pub(in crate::commands) const fn reseed(&mut self, seed: u64) {
        self.terms.seed = seed;
    }

    pub(in crate::commands) const fn clock_cost_ns(&self) -> u64 {
        self.clock_cost.0
    }

    /// Measures each operation, one after the other.
    pub(in crate::commands) fn measure(
        &mut self,
        operations: &[Operation],
        progress: &mut dyn Progress,
        stop: &Stop,
    ) -> Outcome<Vec<ProfileOperation>> {
        let each = self.terms.samples + self.terms.samples / WARM_UP_PART;
        let total = each * operations.len() as u64;
        progress.step(Step::Measured { done: 0, total });
        let mut measured = Vec::new();
        for (i, operation) in operations.iter().enumerate() {
            let mut tell = |done: u64| progress.step(Step::Measured { done: i as u64 * each + done, total });
            measured.push(self.measure_one(*operation, &mut tell, stop)?);
        }
        progress.step(Step::Measured { done: total, total });
        Ok(measured)
    }

    fn measure_one(
        &mut self,
        operation: Operation,
        tell: &mut dyn FnMut(u64),
        stop: &Stop,
    ) -> Outcome<ProfileOperation> {
        let warm_up = self.terms.samples / WARM_UP_PART;
        let mut dice = Dice::named(self.terms.seed, &operation.name(), 0);
        let mut samples = Vec::with_capacity(self.terms.samples as usize);
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        let mut preempted_before = 0;
        for i in 0..warm_up + self.terms.samples {
            if i == warm_up {
                preempted_before = preemptions();
            }
            if i > 0 && i.is_multiple_of(STEP) {
                tell(i);
                if stop.is_asked() {
                    return Err(Failure::new(
                        Kind::Aborted,
                        "stopped before all was measured: no profile written",
                    ));
                }
            }
            operation.encode(self.terms.keys, &mut dice, &mut request);
            let took = self.time(operation.verb.task_type(), &request, &mut reply)?;
            if i >= warm_up {
                samples.push(took);
            }
        }
        let preempted = preemptions().saturating_sub(preempted_before);
        Ok(operation.profile(samples, preempted))
    }

    fn time(&mut self, task_type: TaskType, request: &[u8], reply: &mut Vec<u8>) -> Outcome<Nanos> {
        let held = Cell::new(Nanos(0));
        let task = Task::new(request, task_type, DATAGRAM_BYTES - HEADER_BYTES, &held);
        reply.clear();
        let (served, took) = timed(self.terms.clock, || self.rocks.serve(task, reply));
        served.map_err(Failure::broken)?;
        Ok(took.since(self.clock_cost).max(Nanos(1)))
    }
}

impl Operation {
    /// The type's name in the profile.
    fn name(self) -> String {
        let verb = match self.verb {
            Verb::Get => "get",
            Verb::Scan => "scan",
        };
        let spread = if self.exponential { "-exp" } else { "" };
        format!("{verb}-{}{spread}", self.keys)
    }

    fn encode(self, database_keys: u64, dice: &mut Dice, request: &mut Vec<u8>) {
        request.clear();
        let keys = self.draw_keys(dice);
        match self.verb {
            Verb::Get => codec::encode_get((0..keys).map(|_| dice.below(database_keys)), request),
            Verb::Scan => {
                let last = database_keys.saturating_sub(keys.into()).max(1);
                codec::encode_scan(dice.below(last), keys, request);
            }
        }
    }

    fn draw_keys(self, dice: &mut Dice) -> u32 {
        if !self.exponential {
            return self.keys;
        }
        let drawn = libm::ceil(f64::from(self.keys) * dice.exponential()) as u32;
        drawn.clamp(1, self.verb.keys_max())
    }

    fn profile(self, mut samples: Vec<Nanos>, preempted: u64) -> ProfileOperation {
        let sum: u64 = samples.iter().map(|sample| sample.0).sum();
        samples.sort_unstable();
        ProfileOperation {
            name: self.name(),
            keys: self.keys,
            exponential: self.exponential,
            samples: samples.len() as u64,
            preempted,
            mean_ns: sum as f64 / samples.len() as f64,
            cdf: points(&samples),
        }
    }
}

impl Verb {
    const fn task_type(self) -> TaskType {
        match self {
            Self::Get => GET,
            Self::Scan => SCAN,
        }
    }

    const fn keys_max(self) -> u32 {
        match self {
            Self::Get => GET_KEYS_MAX,
            Self::Scan => codec::SCAN_ROWS_MAX,
        }
    }
}

/// What `work` gave, and how long it took.
fn timed<T>(clock: ClockArg, work: impl FnOnce() -> T) -> (T, Nanos) {
    match clock {
        ClockArg::Wall => {
            let start = Instant::now();
            let done = work();
            (done, Nanos(start.elapsed().as_nanos() as u64))
        }
        ClockArg::Cpu => {
            let start = on_processor();
            let done = work();
            (done, on_processor().since(start))
        }
    }
}

/// The time that this thread was on a processor.
fn on_processor() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// What nothing takes, in the median.
fn cost(clock: ClockArg) -> Nanos {
    let mut reads: Vec<Nanos> = (0..CLOCK_READS).map(|_| timed(clock, || ()).1).collect();
    reads.sort_unstable();
    reads[CLOCK_READS / 2]
}

/// How often this thread lost its processor to another.
fn preemptions() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
