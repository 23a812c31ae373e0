//! The adaptive agent's state machine: a task that a worker ended, and the end of an interval. Reading
//! tasks from the workers' lines is not included.

use std::hint::black_box;

use sluice_host::agent::{Agent, AgentSettings, Sample};
use sluice_wire::{Nanos, SliceId, WorkerId};

use crate::scale::on_the_scale;

/// How many tasks are counted.
pub(super) const TASKS: u32 = INTERVALS * WORKERS as u32 * TASKS_EACH as u32;
/// How many ends of intervals are counted.
pub(super) const INTERVALS: u32 = 4;
const WORKERS: u16 = 32;
/// How many tasks each worker ends in an interval; each is one sample.
const TASKS_EACH: u64 = 1_000;

pub(super) fn tasks(_: u32) {
    let mut bench = Bench::new();
    for _ in 0..INTERVALS {
        on_the_scale(|| bench.tasks());
        bench.end();
    }
}

pub(super) fn intervals(_: u32) {
    let mut bench = Bench::new();
    for _ in 0..INTERVALS {
        bench.tasks();
        on_the_scale(|| bench.end());
    }
}

struct Bench {
    agent: Agent,
    now: Nanos,
    samples: Vec<Sample>,
}

impl Bench {
    fn new() -> Self {
        let mut agent = Agent::new(Nanos(0), AgentSettings::default()).expect("sound settings");
        (0..WORKERS).for_each(|worker| agent.serves(Nanos(0), WorkerId(worker), SliceId(0), 2));
        // Unordered waits.
        let sample = |number: u64| {
            let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let (switch_wait, worker_wait) = (Nanos(mixed % 90_000), Nanos(mixed % 9_001));
            Sample {
                switch_wait,
                worker_wait,
                service: Nanos(10_000 + mixed % 777),
                occupancy: mixed as u32 % 40,
            }
        };
        Self { agent, now: Nanos(0), samples: (1..=TASKS_EACH).map(sample).collect() }
    }

    fn tasks(&mut self) {
        let every = AgentSettings::default().sample_every;
        for (number, sample) in (1..).zip(&self.samples) {
            for worker in 0..WORKERS {
                self.agent.finished(self.now + every.times(number), WorkerId(worker), *black_box(sample));
            }
        }
        self.now = self.agent.deadline();
    }

    fn end(&mut self) {
        let (mut decisions, mut tallies) = (Vec::new(), Vec::new());
        self.agent.tick(self.now, &mut decisions, &mut tallies);
        black_box((decisions, tallies));
    }
}
