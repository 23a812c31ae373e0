//! A made cluster trace: events in the columns of the 2011 trace that no cluster ever had, the same each
//! time.
//!
//! Whoever has the real trace names its file. This one is for a rack without it: jobs come at random, most
//! with one task and some with up to 64 that come at once; times spread over orders of magnitude (lognormal);
//! each job has a priority, and some are big or want different machines. All of that is ours.

use core::fmt::Write as _;

use sluice_events::dice::Dice;

/// What workloads call it in a file's place.
pub(super) const MADE: &str = "made";

/// Tasks that it has.
const TASKS: usize = 20_000;
/// The mean gap between two jobs, and what a task takes in the median, µs.
const GAP_US: f64 = 5_000_000.0;
const MEDIAN_US: f64 = 60_000_000.0;
/// Of the logarithm of what tasks take.
const SIGMA: f64 = 1.5;
/// Shares of jobs in thousandths, by priority: monitoring, production, batch, free.
const PRIORITIES: [(u64, u8); 4] = [(10, 10), (120, 9), (550, 4), (320, 0)];
/// Jobs with more than one task, that are big, and that want to be apart, in thousandths.
const MANY: u64 = 250;
const BIG: u64 = 100;
const APART: u64 = 20;

/// What a job's tasks have in common.
struct Job {
    id: usize,
    at_us: u64,
    priority: u8,
    request: &'static str,
    apart: bool,
}

/// Its lines, in order of time.
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
    // What happens in one instant happens in the order in which it was made.
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
    /// Submitted and scheduled, and finished when it has run.
    fn task(&self, index: usize, took_us: u64) -> [(u64, String); 3] {
        let Self { id, at_us, priority, request, apart } = *self;
        let line = |at_us: u64, event: u8| {
            let apart = u8::from(apart);
            (at_us, format!("{at_us},,{id},{index},,{event},made,1,{priority},{request},0.01,0.0001,{apart}"))
        };
        [line(at_us, 0), line(at_us, 1), line(at_us + took_us.max(1), 4)]
    }
}
