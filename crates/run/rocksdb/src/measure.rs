//! Measures single operations of the service, one after the other in one thread.

use std::cell::Cell;
use std::fs;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use sluice_dice::Dice;
use sluice_net::service::{Service as _, Task};
use sluice_net::udp::DATAGRAM_BYTES;
use sluice_services::rocks::measure::{Clock, MeasureArgs, MeasuredOperation, Measurement, Operation, Verb};
use sluice_services::rocks::{GET, SCAN, codec};
use sluice_wire::{HEADER_BYTES, Nanos, TaskType};

use crate::points::points;
use crate::progress::{Progress, Step};
use crate::{Rocks, RocksError};

/// One part in this many of a type's samples runs before the measurement, to warm up the processor.
const WARM_UP_PART: u64 = 5;
/// How many operations are measured between two progress reports.
const STEP: u64 = 500;
/// How many reads of the clock are made to measure the cost of one.
const CLOCK_READS: usize = 10_001;

/// Measures what `args` ask for, `replications` times, each with its own seed: the given one, then the
/// numbers after it.
///
/// # Errors
/// The arguments are invalid, the database cannot be opened, or an operation failed.
pub fn measure(
    args: &MeasureArgs,
    replications: u32,
    progress: &mut dyn Progress,
) -> Result<Vec<Measurement>, RocksError> {
    let operations = args.operations()?;
    let mut bench = Bench {
        rocks: Rocks::open(&args.data, progress)?,
        clock: args.clock,
        clock_cost: cost(args.clock),
        keys: args.data.keys,
        samples: args.samples,
    };
    let each = bench.samples + bench.samples / WARM_UP_PART;
    let total = each * operations.len() as u64 * u64::from(replications);
    let mut done = 0;
    let mut measurements = Vec::new();
    progress.step(Step::Measured { done, total });
    for replication in 0..replications {
        let seed = args.seed + u64::from(replication);
        let mut measured = Vec::new();
        for operation in &operations {
            let mut tell = |more| progress.step(Step::Measured { done: done + more, total });
            measured.push(bench.measure(*operation, seed, &mut tell)?);
            done += each;
        }
        measurements.push(Measurement { clock_cost_ns: bench.clock_cost.0, operation: measured });
    }
    progress.step(Step::Measured { done, total });
    Ok(measurements)
}

/// RocksDB and a clock.
struct Bench {
    rocks: Rocks,
    clock: Clock,
    clock_cost: Nanos,
    /// How many keys the database has.
    keys: u64,
    /// How many operations of each type are measured.
    samples: u64,
}

impl Bench {
    fn measure(
        &mut self,
        operation: Operation,
        seed: u64,
        tell: &mut dyn FnMut(u64),
    ) -> Result<MeasuredOperation, RocksError> {
        let warm_up = self.samples / WARM_UP_PART;
        let mut dice = Dice::named(seed, &name(operation), 0);
        let mut samples = Vec::with_capacity(self.samples as usize);
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        let mut preempted_before = 0;
        for i in 0..warm_up + self.samples {
            if i == warm_up {
                preempted_before = preemptions();
            }
            if i > 0 && i.is_multiple_of(STEP) {
                tell(i);
            }
            encode(operation, self.keys, &mut dice, &mut request);
            let took = self.time(task_type(operation.verb), &request, &mut reply)?;
            if i >= warm_up {
                samples.push(took);
            }
        }
        let preempted = preemptions().saturating_sub(preempted_before);
        Ok(summary(operation, samples, preempted))
    }

    fn time(
        &mut self,
        task_type: TaskType,
        request: &[u8],
        reply: &mut Vec<u8>,
    ) -> Result<Nanos, RocksError> {
        let held = Cell::new(Nanos(0));
        let task = Task::new(request, task_type, DATAGRAM_BYTES - HEADER_BYTES, &held);
        reply.clear();
        let (served, took) = timed(self.clock, || self.rocks.serve(task, reply));
        served.map_err(RocksError::Operation)?;
        Ok(took.since(self.clock_cost).max(Nanos(1)))
    }
}

/// The operation's name in the profile.
fn name(operation: Operation) -> String {
    let verb = match operation.verb {
        Verb::Get => "get",
        Verb::Scan => "scan",
    };
    let spread = if operation.exponential { "-exp" } else { "" };
    format!("{verb}-{}{spread}", operation.keys)
}

fn encode(operation: Operation, database_keys: u64, dice: &mut Dice, request: &mut Vec<u8>) {
    request.clear();
    let keys = draw_keys(operation, dice);
    match operation.verb {
        Verb::Get => codec::encode_get((0..keys).map(|_| dice.below(database_keys)), request),
        Verb::Scan => {
            let last = database_keys.saturating_sub(keys.into()).max(1);
            codec::encode_scan(dice.below(last), keys, request);
        }
    }
}

fn draw_keys(operation: Operation, dice: &mut Dice) -> u32 {
    if !operation.exponential {
        return operation.keys;
    }
    let drawn = libm::ceil(f64::from(operation.keys) * dice.exponential()) as u32;
    drawn.clamp(1, operation.verb.keys_max())
}

fn summary(operation: Operation, mut samples: Vec<Nanos>, preempted: u64) -> MeasuredOperation {
    let sum: u64 = samples.iter().map(|sample| sample.0).sum();
    samples.sort_unstable();
    MeasuredOperation {
        name: name(operation),
        keys: operation.keys,
        exponential: operation.exponential,
        samples: samples.len() as u64,
        preempted,
        mean_ns: sum as f64 / samples.len() as f64,
        cdf: points(&samples),
    }
}

const fn task_type(verb: Verb) -> TaskType {
    match verb {
        Verb::Get => GET,
        Verb::Scan => SCAN,
    }
}

/// The result of `work`, and how long it took.
fn timed<T>(clock: Clock, work: impl FnOnce() -> T) -> (T, Nanos) {
    match clock {
        Clock::Wall => {
            let start = Instant::now();
            let done = work();
            (done, Nanos(start.elapsed().as_nanos() as u64))
        }
        Clock::Cpu => {
            let start = on_processor();
            let done = work();
            (done, on_processor().since(start))
        }
    }
}

/// The time for which this thread has been on a processor.
fn on_processor() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The median duration of an empty measurement.
fn cost(clock: Clock) -> Nanos {
    let mut reads: Vec<Nanos> = (0..CLOCK_READS).map(|_| timed(clock, || ()).1).collect();
    reads.sort_unstable();
    reads[CLOCK_READS / 2]
}

/// How often this thread was preempted.
fn preemptions() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
