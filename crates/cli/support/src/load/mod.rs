//! The load generator. It is open loop, so a slow rack gets no less load.
//!
//! Every task has an intended send time, from which its latency counts. So the latency includes the
//! sender's lateness, and the time for which the client library pushed the task back because the rack was
//! full. A task whose deadline passes before the library accepts it counts as refused.

mod histograms;
mod parts;
mod source;
mod tally;
mod target;
mod timeline;
mod window;

use std::thread;
use std::time::Duration;

use sluice_net::clock::Clock;
use sluice_outcome::run::ClockStep;
use sluice_testrig::schedule::{DueTask, NextStep, Schedule};
use sluice_wire::Nanos;

pub(crate) use histograms::histogram;
pub use parts::{PartTally, SpanParts};
pub use source::{Source, Task};
pub use tally::{Counts, Ending, KindTally, SLOWDOWN_SCALE, StageTally, Tally, TaskEnd};
pub use target::Target;
pub use timeline::Timeline;

use crate::board::Board;
use crate::fail::{Failure, Outcome};
use crate::plan::{LoadPlan, RateStages};
use crate::stop::Stop;
use tally::UNKNOWN_TYPE;
use window::Window;

/// How often the board is updated.
const SHOW_EVERY: Nanos = Nanos::from_millis(500);
/// How long after the last deadline outcomes may still come.
const DRAIN: Nanos = Nanos::from_millis(2_000);
/// The longest sleep, so that signals are noticed.
const SLEEP_MAX: Nanos = Nanos::from_millis(50);

/// The measurements of a load, and the error that ended it early, if any; a signal is not an error.
#[derive(Debug)]
pub struct LoadRun {
    pub tally: Tally,
    /// `Ok` if the load ran to its end or a signal ended it.
    pub ended: Outcome<()>,
}

/// Sends all tasks of `source` to `target`, waits for their outcomes, and returns the measurements.
///
/// The board shows the progress. After `stop` no new task is sent. A type that the rack never accepted ends
/// the load, since its other tasks would be refused too.
pub fn run(plan: &LoadPlan, source: Source, target: &mut Target, board: &Board, stop: &Stop) -> LoadRun {
    let mut load = Load::new(plan, source);
    let mut ended = Ok(());
    loop {
        let now = target.now();
        load.keep_clock(target.start(), now);
        if stop.is_asked() || ended.is_err() {
            load.cut(now);
        }
        ended = ended.and(load.collect(target));
        load.send_due(now, target);
        load.show(now, board, false);
        let is_over = load.schedule.is_over(now);
        if is_over && load.has_paused(now) {
            load.show(now, board, true);
            return LoadRun { tally: load.tally, ended };
        }
        let next = if is_over { SLEEP_MAX } else { load.schedule.next_due().since(target.now()) };
        let span = next.min(SLEEP_MAX);
        thread::sleep(Duration::from_nanos(span.0));
    }
}

struct Load<'p> {
    plan: &'p LoadPlan,
    /// Notices changes of the wall clock.
    clock: Clock,
    schedule: Schedule<usize, Vec<u8>, Source>,
    tally: Tally,
    /// Whether any task of each type was answered.
    taken: Vec<bool>,
    window: Window,
    shown: Nanos,
}

impl<'p> Load<'p> {
    fn new(plan: &'p LoadPlan, source: Source) -> Self {
        let names = || plan.mix.iter().map(|(name, _)| name.clone());
        let measured = nanos(plan.warm_up)..nanos(plan.warm_up + plan.length);
        let mut tally = Tally::new(names(), plan.arrivals.rate(), measured);
        tally.cut_off = source.cut_off();
        tally.count_within(&plan.limits().unwrap_or_default());
        let stages = plan.arrivals.stages().into_iter().flat_map(RateStages::all);
        let stages: Vec<_> = stages.map(|stage| (nanos(stage.lasts), stage.is_ramp())).collect();
        tally.count_stages(&stages);
        Self {
            plan,
            clock: Clock::start(),
            schedule: Schedule::new(source, nanos(plan.deadline), DRAIN),
            tally,
            taken: plan.mix.iter().map(|_| false).collect(),
            window: Window::new(names()),
            shown: Nanos(0),
        }
    }

    fn keep_clock(&mut self, start: Nanos, now: Nanos) {
        if let Some(by_ns) = self.clock.keep(start + now) {
            let (at_s, by_s) = (now.0 as f64 / 1e9, by_ns as f64 / 1e9);
            self.tally.clock_steps.push(ClockStep { at_s, by_s });
        }
    }

    /// Ends the load early: no further tasks are due, and those pushed back are given up.
    fn cut(&mut self, now: Nanos) {
        self.tally.cut(now);
        for given_up in self.schedule.cancel() {
            self.tally.ended(&never_sent(&given_up.task, now));
        }
    }

    /// Whether the last stage is over, which may be a pause; without stages a load ends with its last task.
    fn has_paused(&self, now: Nanos) -> bool {
        self.plan.arrivals.stages().is_none() || now >= self.tally.measured_time().end
    }

    fn collect(&mut self, target: &Target) -> Outcome<()> {
        while let Some(ended) = target.ended() {
            self.schedule.ended();
            self.tally.ended(&ended);
            self.window.ended(&ended);
            self.taken[ended.kind] |= matches!(ended.ending, Ending::Reply { .. });
            if ended.ending == Ending::Refused(UNKNOWN_TYPE) && !self.taken[ended.kind] {
                let name = &self.plan.mix[ended.kind].0;
                return Err(Failure::bad_input(format!(
                    "no slice of this rack takes type `{name}`: add it to a slice's types in the rack's plan, map it to one \
                     with `sluice map {name} SLICE`, or send another type"
                )));
            }
        }
        Ok(())
    }

    fn send_due(&mut self, now: Nanos, target: &Target) {
        while let Some(DueTask { task, .. }) = self.schedule.poll_due(now) {
            self.tally.due(task.kind, task.due, now.since(task.due));
            self.window.due(task.kind);
        }
        while let Some(next) = self.schedule.next(now) {
            match next {
                NextStep::NeverSent(due) => self.tally.ended(&never_sent(&due.task, now)),
                NextStep::Send(due) if target.offer(&due.task, self.schedule.until(&due.task).since(now)) => {
                    self.tally.taken(now.since(due.task.due));
                }
                NextStep::Send(due) => self.schedule.push_back(now, due),
            }
        }
    }

    fn show(&mut self, now: Nanos, board: &Board, at_once: bool) {
        if now.since(self.shown) < SHOW_EVERY && !at_once {
            return;
        }
        let all = self.tally.everything();
        let mut view = self.window.turn(now.since(self.shown));
        self.shown = now;
        view.elapsed = Duration::from_nanos(now.0);
        view.length = self.plan.warm_up + self.plan.length;
        view.warm_up = self.plan.warm_up;
        view.sent = all.sent;
        view.replied = all.replied;
        (view.refused, view.late) = (all.refused(), all.late());
        view.unknown = all.unknown();
        view.outstanding = all.lost();
        view.pushed_back = self.schedule.waiting();
        let per_s = 1e9 / self.tally.timeline.bin().0 as f64;
        let bins = self.tally.timeline.bins().iter();
        view.history = bins.map(|bin| (bin.replied as f64 * per_s) as u64).collect();
        view.history_every = Duration::from_nanos(self.tally.timeline.bin().0);
        board.show_load(view);
    }
}

fn never_sent(task: &Task, now: Nanos) -> TaskEnd {
    TaskEnd {
        kind: task.kind,
        due: task.due,
        at: now,
        attempts: 0,
        worker: None,
        ending: Ending::Refused("never_sent"),
        complaint: None,
    }
}

/// Converts a duration to nanoseconds.
pub fn nanos(span: Duration) -> Nanos {
    Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}
