//! Rain with a target: the longest wait in the switch that is worth having (ours; Rain's paper leaves
//! overload control as future work, §6.3).
//!
//! A task that would wait longer is refused at once (`busy`). The switch measures how many tokens take
//! waiting tasks within one target, in windows in which tasks wait throughout. That many tasks, less a
//! margin for chance, is the slice's limit: a task that finds as many before it would wait for a target.
//! The limit needs no division, and follows workers that come, leave, or become slower.
//!
//! A window is counted behind the balance, and the limit is read before the balance, so no pass can do both.
//! A waiting task has no packet to send, so its pass sends the count: a note that recirculates once and
//! writes the limit. A note takes the place of a write ahead: the worker asks the client for those bytes.
//!
//! The limit is in stage 1, the window in the first stage of the rings.

use sluice_wire::tables::SliceState;
use sluice_wire::{Nanos, Rank, SliceId, Sweep};

use super::Rain;
use super::notes::ReturningToken;
use super::queue_limit::QueueLimit;
use super::stages::{Kinds, Stages};
use crate::config::Config;
use crate::front::{Entering, Front, Granted, Scheduler};
use crate::pipeline::{Layout, Pass, Register};
use crate::program::{Cargo, Circulating, Parked, Verdict};
use crate::rdma_engine::RdmaEngine;
use crate::refusal::Refusal;

/// The unit of a window's time, as a shift of nanoseconds.
const TICK_SHIFT: u32 = 4;
/// The bits of a limit's fraction.
const FRACTION_BITS: u32 = 4;
/// A limit that was never measured.
const UNMEASURED: u32 = u32::MAX;
/// A new measurement changes a limit by one part of so many, as a shift.
const SMOOTHING_SHIFT: u32 = 3;

/// The limits of all slices, and the windows in which they are measured.
#[derive(Debug)]
struct TargetLimit {
    /// The target, in ticks.
    span: u32,
    /// How many tasks may wait in each slice, with [`FRACTION_BITS`].
    limit: Register<u32>,
    /// The start of each slice's window in ticks (upper half), and the tasks that left in it.
    window: Register<u64>,
}

impl TargetLimit {
    fn new(layout: &mut Layout, config: &Config, target: Nanos) -> Self {
        let (slices, stages) = (config.slices.into(), Stages::of(Kinds::ONE));
        Self {
            span: ticks(target).max(1),
            limit: Register::new(layout, "limit", 1, 32, slices, UNMEASURED),
            window: Register::new(layout, "window", stages.rings, 64, slices, 0),
        }
    }

    /// A note came round: moves the limit towards the one that was measured.
    fn learn(&mut self, pass: &mut Pass, slice: SliceId, left: u32) {
        let found = limit_of(left) << FRACTION_BITS;
        self.limit.update(pass, slice.0.into(), |held| moved(held, found));
    }
}

impl QueueLimit for TargetLimit {
    #[inline]
    fn most(&mut self, pass: &mut Pass, slice: SliceId) -> u32 {
        self.limit.read(pass, slice.0.into()) >> FRACTION_BITS
    }

    /// Counts a token that took a waiting task; begins a new window if there was none.
    #[inline]
    fn token_came(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, has_parked: bool) {
        let start = window(ticks(now), 0);
        let with = |window| if has_parked { start } else { window + 1 };
        self.window.update(pass, slice.0.into(), with);
    }

    #[inline]
    fn waits(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, is_first: bool) -> Option<Circulating> {
        let (at, span) = (ticks(now), self.span);
        let lasted = |window: u64| at.wrapping_sub((window >> 32) as u32);
        let ends = |window| is_first || lasted(window) >= span;
        let ended = self.window.branch(pass, slice.0.into(), ends, |_| window(at, 0), |window| window);
        // A window that nobody ended in time is no measure.
        let is_measure = !is_first && (span..span + span.div_ceil(2)).contains(&lasted(ended));
        is_measure.then(|| {
            let memo = u64::from(slice.0) << 32 | (ended & u64::from(u32::MAX));
            Circulating { cargo: Cargo::Note, arrived: now, memo }
        })
    }
}

/// The time in ticks, which wraps after 68 s. A window never lasts that long: it begins anew whenever a
/// token finds no task.
const fn ticks(at: Nanos) -> u32 {
    (at.0 >> TICK_SHIFT) as u32
}

const fn window(start: u32, left: u32) -> u64 {
    (start as u64) << 32 | left as u64
}

/// How many tasks may wait if so many left within one target: fewer by one and a half standard deviations
/// of a number of independent events. On the chip a table of ranges.
const fn limit_of(left: u32) -> u32 {
    let margin = (3 * left.isqrt()).div_ceil(2);
    let limit = left.saturating_sub(margin);
    if limit > 1 { limit } else { 1 }
}

/// A limit after a measurement. Far from it the limit jumps: a service became slower, or workers came.
const fn moved(held: u32, found: u32) -> u32 {
    if held == UNMEASURED || found < held >> 1 || found >> 1 > held {
        return found;
    }
    held - (held >> SMOOTHING_SHIFT) + (found >> SMOOTHING_SHIFT)
}

/// Rain, with a target for each slice's waits.
#[derive(Debug)]
pub(crate) struct Targeted {
    rain: Rain,
    limit: TargetLimit,
}

impl Targeted {
    /// An empty switch whose tasks wait for `target` at most, about.
    ///
    /// # Panics
    /// As [`Rain::new`].
    pub(crate) fn new(config: Config, target: Nanos) -> Self {
        let mut rain = Rain::new(config);
        let limit = TargetLimit::new(&mut rain.front.layout, &config, target);
        Self { rain, limit }
    }
}

impl Scheduler for Targeted {
    const NAME: &'static str = Rain::NAME;

    #[inline]
    fn front(&self) -> &Front {
        &self.rain.front
    }

    #[inline]
    fn front_mut(&mut self) -> &mut Front {
        &mut self.rain.front
    }

    #[inline]
    fn token(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        rank: Rank,
    ) -> Verdict {
        self.rain.token_of::<false>(pass, now, slice, (granted, rank), &mut None, &mut self.limit)
    }

    #[inline]
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        self.rain.task_of(pass, now, task, &mut None, &mut self.limit)
    }

    fn note(&mut self, pass: &mut Pass, now: Nanos, memo: u64) -> Verdict {
        if ReturningToken::read(memo).is_some() {
            return match self.rain.returning(memo) {
                Ok((slice, granted, rank)) => self.token(pass, now, slice, granted, rank),
                Err(refusal) => Verdict::Drop(refusal),
            };
        }
        self.limit.learn(pass, SliceId((memo >> 32) as u16), memo as u32);
        Verdict::Drop(Refusal::FixDone)
    }

    fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        self.rain.sweep(pass, now, sweep, memo)
    }

    fn engine(&mut self) -> Option<&mut RdmaEngine> {
        self.rain.engine.as_mut()
    }

    fn slice_state(&self, slice: usize) -> SliceState {
        self.rain.slice_state(slice)
    }

    fn waiting(&self) -> u32 {
        Scheduler::waiting(&self.rain)
    }

    fn parked(&self, slice: SliceId) -> Parked {
        Scheduler::parked(&self.rain, slice)
    }
}
