//! An artificial cluster trace: events in the columns of the 2011 trace, the same each time.
//!
//! With the real trace, name its file instead. This trace is for a rack without it. Jobs arrive at random,
//! most with one task and some with up to 64 that arrive together. Times spread over orders of magnitude
//! (lognormal). Each job has a priority, and some are big or need different machines. All these choices are
//! ours.

use core::fmt::Write as _;

use sluice_events::dice::Dice;

/// Its name in place of a file.
pub(super) const MADE: &str = "made";

const TASKS: usize = 20_000;
/// The mean gap between two jobs, and the median time of a task, in µs.
const GAP_US: f64 = 5_000_000.0;
const MEDIAN_US: f64 = 60_000_000.0;
/// The standard deviation of the logarithm of tasks' times.
const SIGMA: f64 = 1.5;
/// Shares of jobs by priority, in thousandths: monitoring, production, batch, free.
const PRIORITIES: [(u64, u8); 4] = [(10, 10), (120, 9), (550, 4), (320, 0)];
/// Shares of jobs with more than one task, of big jobs, and of jobs that have to run apart, in thousandths.
const MANY: u64 = 250;
const BIG: u64 = 100;
const APART: u64 = 20;

/// The properties that a job's tasks share.
struct Job {
    id: usize,
    at_us: u64,
    priority: u8,
    request: &'static str,
    apart: bool,
}

/// The lines of the trace, in order of time.
pub(super) fn lines() -> String {
    let dice = &mut Dice::named(2_011, "made cluster", 0);
    let mut events: Vec<(u64, String)> = Vec::with_capacity(3 * TASKS);
    let (mut now_us, mut made, mut id) = (600_000_000.0, 0, 1);
    while made < TASKS {
        now_us += GAP_US * dice.exponential();
        let job = job(dice, id, now_us as u64);
        let tasks = if dice.chance(MANY) { dice.between(2, 64) } else { 1 } as usize;
        for index in 0..tasks.min(TASKS - made) {
            let took_us = (MEDIAN_US * libm::exp(SIGMA * dice.normal())) as u64;
            events.extend(job.task(index, took_us));
        }
        (made, id) = (made + tasks, id + 1);
    }
    // Events of the same time stay in the order in which they were made.
    events.sort_by_key(|(at_us, _)| *at_us);
    events.iter().fold(String::new(), |mut text, (_, line)| {
        let _ = writeln!(text, "{line}");
        text
    })
}

fn job(dice: &mut Dice, id: usize, at_us: u64) -> Job {
    let mut drawn = dice.below(1_000);
    let mut of = PRIORITIES.iter();
    let priority = of.find_map(|(share, priority)| {
        let is_in = drawn < *share;
        drawn = drawn.saturating_sub(*share);
        is_in.then_some(*priority)
    });
    let request = if dice.chance(BIG) { "0.25" } else { "0.02" };
    Job { id, at_us, priority: priority.unwrap_or(0), request, apart: dice.chance(APART) }
}

impl Job {
    /// The three events of a task: submitted, scheduled, and finished at its end.
    fn task(&self, index: usize, took_us: u64) -> [(u64, String); 3] {
        let Self { id, at_us, priority, request, apart } = *self;
        let line = |at_us: u64, event: u8| {
            let apart = u8::from(apart);
            (at_us, format!("{at_us},,{id},{index},,{event},made,1,{priority},{request},0.01,0.0001,{apart}"))
        };
        [line(at_us, 0), line(at_us, 1), line(at_us + took_us.max(1), 4)]
    }
}
