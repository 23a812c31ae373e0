//! Rain with a target: the longest wait in the switch that is worth having (ours; Rain's paper leaves
//! overload control as future work, §6.3).
//!
//! A task that would wait longer is refused at once (`busy`). The switch counts the tokens of windows that
//! last one target. If none of them parked, all workers were busy, and that many tasks can leave within a
//! target: the number, less a margin for chance, is the slice's limit. A task that finds as many before it
//! would wait for a target. The limit needs no division, and follows workers that come, leave, or become
//! slower.
//!
//! If a token parked, workers were idle, and could have served more. Such a window can raise the limit, and
//! never lowers it. For example, services were slow for a while, and the limit fell to two. A queue of two
//! tasks is often empty, so a token parks in every window, and the limit would stay at two.
//!
//! A window is counted behind the balance, and the limit is read before the balance, so no pass can do both.
//! A waiting task has no packet to send, so its pass sends the count: a note that recirculates once and
//! writes the limit. A note takes the place of a write ahead: the worker asks the client for those bytes.
//!
//! Until a window was measured, a slice's limit is what the controller expects, in the slice's row.
//!
//! A task of the second class is refused if half of the limit waits, of any class, a task of the third if a
//! quarter waits, and so on. So the last class is refused first.
//!
//! The limit is in stage 1, the window in the first stage of the rings.
#![expect(clippy::inline_always, reason = "a call costs a pass more than what these do")]

use alloc::boxed::Box;
use alloc::vec;

use sluice_wire::tables::SliceRow;
use sluice_wire::{Nanos, SliceId};

use super::Rain;
use super::limited::Limited;
use super::queue_limit::QueueLimit;
use super::stages::{Kinds, Stages};
use crate::config::Config;
use crate::pipeline::{Layout, Pass, Register};

/// The unit of a window's time, as a shift of nanoseconds.
const TICK_SHIFT: u32 = 4;
/// The bits of a limit's fraction.
const FRACTION_BITS: u32 = 4;
/// A limit that was never measured, and that of slices without a target: as many as their rows allow.
pub const UNMEASURED: u32 = u32::MAX;
/// A new measurement changes a limit by one part of so many, as a shift.
const SMOOTHING_SHIFT: u32 = 3;

/// The span of a window in a slice without a target: no window is a measure.
const ENDLESS: u32 = u32::MAX;

/// In a window, and in the note that says what it counted: a token parked.
const HAS_PARKED: u32 = 1 << 31;

/// A window that has lasted so many ticks (2 s; no target is longer than 1 s) begins anew when a token parks.
const LONGEST: u32 = 1 << 27;

/// The window before the first: long over, and without a measure.
pub const FIRST_WINDOW: u64 = window(1 << 31, HAS_PARKED);

/// The limits of all slices, and the windows in which they are measured.
#[derive(Debug)]
pub(crate) struct TargetLimit {
    /// The target of slices whose rows give none; zero: such slices have none.
    common: Nanos,
    /// The last class of tasks; 0 if there is one class.
    last_class: u8,
    /// How many tasks may wait in each slice, with [`FRACTION_BITS`].
    limit: Register<u32>,
    /// The start of each slice's window in ticks (upper half), whether a token parked in it
    /// ([`HAS_PARKED`]), and the tokens that came in it.
    window: Register<u64>,
    slices: Box<[SliceTarget]>,
}

/// A slice's row of the table of targets, and its counter, which only the controller reads.
#[derive(Clone, Copy, Debug)]
struct SliceTarget {
    /// The target of the slice's row, or the common one, in ticks; [`ENDLESS`] if the slice has none.
    span: u32,
    /// The same target in nanoseconds; zero if the slice has none.
    target: Nanos,
    /// How many tasks were refused.
    refused: u64,
}

impl SliceTarget {
    const fn of(own: Nanos, common: Nanos) -> Self {
        let target = target_of(own, common);
        let span = if target.0 > 0 { span_of(target) } else { ENDLESS };
        Self { span, target, refused: 0 }
    }
}

impl TargetLimit {
    fn new(layout: &mut Layout, config: &Config, common: Nanos, kinds: Kinds) -> Self {
        let (slices, stages) = (config.slices.into(), Stages::of(kinds, kinds.entry_table()));
        // A task's row is found in stage 0, and its target goes with the packet to the window.
        layout.table("targets", 0, 32, slices);
        Self {
            common,
            last_class: kinds.classes - 1,
            limit: Register::new(layout, "limit", 1, 32, slices, UNMEASURED),
            window: Register::new(layout, "window", stages.rings, 64, slices, FIRST_WINDOW),
            slices: vec![SliceTarget::of(Nanos(0), common); slices].into_boxed_slice(),
        }
    }

    #[inline(always)]
    fn slice(&mut self, slice: SliceId) -> &mut SliceTarget {
        &mut self.slices[usize::from(slice.0)]
    }

    /// What the note says that writes the limit, after a window that has lasted so long has ended.
    #[cold]
    #[inline(never)]
    fn note(&mut self, slice: SliceId, window: u64, lasted: u32) -> Option<u64> {
        let span = self.slice(slice).span;
        // A window that nobody ended in time is no measure.
        let is_measure = span < ENDLESS && lasted < span + span.div_ceil(2);
        is_measure.then(|| u64::from(slice.0) << 32 | (window & u64::from(u32::MAX)))
    }
}

/// What a slice's new row does to the registers of its target, in every data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetChange {
    /// The target in the unit of windows; zero if the slice has none.
    pub span: u32,
    /// The limit to write, if it changes.
    pub limit: Option<u32>,
    /// The window to write, if it begins anew.
    pub window: Option<u64>,
}

impl TargetChange {
    /// `row` replaces `before`, and `held` is the limit now; slices without a target have the `common` one.
    /// A limit that equals the old row's expectation is taken as unmeasured, even if it was measured; the
    /// next window measures it again.
    pub fn of(before: &SliceRow, row: &SliceRow, held: u32, common: Nanos) -> Self {
        let [span, was] = [row, before].map(|row| span_of(target_of(row.target, common)));
        let restarts = span != was;
        let is_measured = held != first_limit(before);
        let limit = match span {
            0 => restarts.then_some(UNMEASURED),
            _ => (restarts || !is_measured).then(|| first_limit(row)),
        };
        Self { span, limit, window: restarts.then_some(FIRST_WINDOW) }
    }

    /// A limit's word as a number of tasks; `None` before anything was measured.
    pub fn tasks(limit: u32) -> Option<u32> {
        (limit != UNMEASURED).then_some(limit >> FRACTION_BITS)
    }
}

impl QueueLimit for TargetLimit {
    #[inline(always)]
    fn most(&mut self, pass: &mut Pass, slice: SliceId) -> u32 {
        self.limit.read(pass, slice.0.into()) >> FRACTION_BITS
    }

    #[inline(always)]
    fn before_class(&self, most: u32, class: u8) -> u32 {
        if self.last_class == 0 { most } else { (most >> class.min(self.last_class)).max(1) }
    }

    #[cold]
    fn refused(&mut self, slice: SliceId) -> Option<Nanos> {
        let slice = self.slice(slice);
        slice.refused += 1;
        Some(slice.target)
    }

    #[inline(always)]
    fn token_came(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, has_parked: bool) {
        let (at, parked) = (ticks(now), if has_parked { HAS_PARKED } else { 0 });
        let is_old = |window| has_parked && lasted(window, at) >= LONGEST;
        let counts = |window| (window + 1) | u64::from(parked);
        self.window.branch(pass, slice.0.into(), is_old, |_| window(at, parked), counts);
    }

    #[inline(always)]
    fn waits(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId) -> Option<u64> {
        let (at, span) = (ticks(now), self.slice(slice).span);
        let ends = |window| lasted(window, at) >= span;
        let window = self.window.branch(pass, slice.0.into(), ends, |_| window(at, 0), |window| window);
        if !ends(window) {
            return None;
        }
        self.note(slice, window, lasted(window, at))
    }

    fn measured(&mut self, pass: &mut Pass, slice: SliceId, counted: u32) {
        if self.slice(slice).span == ENDLESS {
            // The slice's target was taken away meanwhile.
            return;
        }
        let found = limit_of(counted & !HAS_PARKED) << FRACTION_BITS;
        let (keeps, moves) = (counted & HAS_PARKED != 0, |held| moved(held, found));
        self.limit.branch(pass, slice.0.into(), |held| keeps && found <= held, |held| held, moves);
    }

    /// Until a limit is measured, the row's expectation is the limit; what was measured with another target
    /// is none with this one.
    fn row_set(&mut self, slice: SliceId, before: &SliceRow, row: &SliceRow) {
        let slice = slice.0.into();
        let change = TargetChange::of(before, row, self.limit.peek(slice), self.common);
        if let Some(limit) = change.limit {
            self.limit.poke(slice, limit);
        }
        if let Some(window) = change.window {
            self.window.poke(slice, window);
        }
        let refused = self.slices[slice].refused;
        self.slices[slice] = SliceTarget { refused, ..SliceTarget::of(row.target, self.common) };
    }

    fn shown(&self, slice: usize) -> (Option<u32>, u64) {
        (TargetChange::tasks(self.limit.peek(slice)), self.slices[slice].refused)
    }
}

/// For how long a window has lasted, in ticks.
const fn lasted(window: u64, at: u32) -> u32 {
    at.wrapping_sub((window >> 32) as u32)
}

/// The time in ticks, which wraps after 68 s. A window never lasts that long while tokens come ([`LONGEST`]).
/// After so long a time without tokens an old window may look as if it had just ended. Its count is small,
/// and a token parked in it, so the window lowers no limit.
const fn ticks(at: Nanos) -> u32 {
    (at.0 >> TICK_SHIFT) as u32
}

/// A slice's target: its own or the common one; zero if there is none.
const fn target_of(own: Nanos, common: Nanos) -> Nanos {
    if own.0 > 0 { own } else { common }
}

/// A target in ticks, one at least; zero if there is none.
const fn span_of(target: Nanos) -> u32 {
    if target.0 == 0 || ticks(target) > 0 { ticks(target) } else { 1 }
}

const fn window(start: u32, counted: u32) -> u64 {
    (start as u64) << 32 | counted as u64
}

/// How many tasks may wait if so many left within one target: fewer by one and a half standard deviations
/// of a number of independent events. On the chip a table of ranges.
const fn limit_of(left: u32) -> u32 {
    let margin = (3 * left.isqrt()).div_ceil(2);
    let limit = left.saturating_sub(margin);
    if limit > 1 { limit } else { 1 }
}

/// The limit before anything was measured.
const fn first_limit(row: &SliceRow) -> u32 {
    match row.expected {
        0 => UNMEASURED,
        expected if expected < UNMEASURED >> FRACTION_BITS => expected << FRACTION_BITS,
        _ => UNMEASURED - 1,
    }
}

/// A limit after a measurement. Far from it the limit jumps: a service became slower, or workers came.
const fn moved(held: u32, found: u32) -> u32 {
    if held == UNMEASURED || found < held >> 1 || found >> 1 > held {
        return found;
    }
    held - (held >> SMOOTHING_SHIFT) + (found >> SMOOTHING_SHIFT)
}

/// Rain, with a target for each slice's waits.
pub(crate) type Targeted = Limited<TargetLimit>;

impl Targeted {
    /// An empty switch whose tasks wait for their slice's target at most, about, or for `common` in slices
    /// without one; if that is zero, such slices have no target. It tells so many classes apart.
    ///
    /// # Panics
    /// As [`Rain::of_kinds`].
    pub(crate) fn new(config: Config, common: Nanos, classes: u8) -> Self {
        let kinds = Kinds { classes, ..Kinds::ONE };
        let mut rain = Rain::of_kinds(config, kinds);
        let limit = TargetLimit::new(&mut rain.front.layout, &config, common, kinds);
        Self { rain, limit }
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::Epoch;

    use super::*;

    const SLICE: SliceId = SliceId(0);
    const TARGET: Nanos = Nanos::from_micros(50);
    /// The first time that reads as tick 0 again.
    const WRAP: Nanos = Nanos(1 << (u32::BITS + TICK_SHIFT));

    /// What a window that begins at this time measures: a token comes every microsecond, and a task
    /// waits then.
    fn measured(begins: Nanos) -> Option<u64> {
        let (mut layout, config) = (Layout::new("rain"), Config::full(Epoch(1)));
        let mut limit = TargetLimit::new(&mut layout, &config, TARGET, Kinds::ONE);
        let mut waits = |at| {
            limit.token_came(&mut Pass::begin("rain"), at, SLICE, false);
            limit.waits(&mut Pass::begin("rain"), at, SLICE)
        };
        assert!(waits(begins).is_none(), "the first waiting task begins a window");
        let later = (1..=50).map(|us| waits(begins + Nanos::from_micros(us)));
        later.flatten().next()
    }

    #[test]
    fn a_note_of_a_slice_whose_target_was_taken_away_limits_nothing() {
        let (mut layout, config) = (Layout::new("rain"), Config::full(Epoch(1)));
        let mut limit = TargetLimit::new(&mut layout, &config, Nanos(0), Kinds::ONE);
        let row = SliceRow { target: TARGET, ..SliceRow::default() };
        limit.row_set(SLICE, &SliceRow::default(), &row);
        limit.measured(&mut Pass::begin("rain"), SLICE, 50);
        assert!(limit.most(&mut Pass::begin("rain"), SLICE) < 50);
        limit.row_set(SLICE, &row, &SliceRow::default());
        limit.measured(&mut Pass::begin("rain"), SLICE, 50);
        assert!(limit.most(&mut Pass::begin("rain"), SLICE) > u16::MAX.into());
    }

    /// The limit and the window after 100 windows of 50 tokens, while a task comes every microsecond.
    fn measured_for_a_while(now: &mut Nanos) -> TargetLimit {
        let (mut layout, config) = (Layout::new("rain"), Config::full(Epoch(1)));
        let mut limit = TargetLimit::new(&mut layout, &config, TARGET, Kinds::ONE);
        flow(&mut limit, now, 100);
        limit
    }

    /// Lets a token and a waiting task come every microsecond for so many targets, and notes come round.
    fn flow(limit: &mut TargetLimit, now: &mut Nanos, targets: u64) {
        for _ in 0..targets * 50 {
            *now = *now + Nanos::from_micros(1);
            limit.token_came(&mut Pass::begin("rain"), *now, SLICE, false);
            let note = limit.waits(&mut Pass::begin("rain"), *now, SLICE);
            if let Some(note) = note {
                limit.measured(&mut Pass::begin("rain"), SLICE, note as u32);
            }
        }
    }

    #[test]
    fn a_clock_that_steps_and_a_long_idle_time_change_no_limit_while_a_window_is_open() {
        let (hour, right) = (Nanos::from_millis(3_600_000), limit_of(50));
        let steps = [hour, WRAP, Nanos::from_millis(10), Nanos(1)];
        let stepping = steps.iter().flat_map(|by| [(*by, true, false), (*by, false, false)]);
        // While nothing comes, a token parks. Some idle times look like the end of a window.
        let idle = [hour, WRAP, WRAP + Nanos::from_micros(15)].map(|by| (by, false, true));
        for (by, is_back, parks) in stepping.chain(idle) {
            let mut now = hour.times(3);
            let mut limit = measured_for_a_while(&mut now);
            now = now + Nanos::from_micros(25);
            limit.token_came(&mut Pass::begin("rain"), now, SLICE, parks);
            now = if is_back { now.since(by) } else { now + by };
            for targets in [1, 2, 100] {
                flow(&mut limit, &mut now, targets);
                let told = limit.shown(0).0.expect("it was measured");
                let off = told.abs_diff(right);
                assert!(off <= right / 8, "{by:?} back {is_back}, parks {parks}: {told} for {right}");
            }
        }
    }

    #[test]
    fn a_window_over_the_wrap_of_its_ticks_measures_as_any_other() {
        assert_eq!(measured(Nanos::from_millis(1)), Some(50));
        for before in [1, 25, 49, 50] {
            let begins = WRAP.since(Nanos::from_micros(before));
            assert_eq!(measured(begins), Some(50), "{before} us before the wrap");
        }
    }
}
