//! The load generator: open loop, so that a slow rack gets no less to do.
//!
//! Every task has an intended send time, and its latency runs from there: also while the sender was late, and
//! while the client library pushed it back because the rack was full. A task whose deadline passes before the
//! library took it counts as refused.

mod source;
mod tally;
mod target;
mod timeline;
mod window;

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use sluice_wire::Nanos;

pub use source::{Source, Task};
pub use tally::{Counts, Ended, Ending, KindTally, SLOWDOWN_SCALE, Tally};
pub use target::Target;
pub use timeline::Timeline;

use crate::board::Board;
use crate::fail::{Failure, Outcome};
use crate::plan::LoadPlan;
use crate::stop::Stop;
use window::Window;

/// How often the board is told.
const SHOW_EVERY: Nanos = Nanos::from_millis(500);
/// How long to wait before the client library is asked again to take a task.
const ASK_AGAIN: Nanos = Nanos::from_micros(200);
/// How long past the last deadline an outcome may still come.
const DRAIN_EXTRA: Nanos = Nanos::from_millis(2_000);
/// How long to sleep at most, so that signals are heard.
const SLEEP_MAX: Nanos = Nanos::from_millis(50);

/// Why a task is refused whose type no slice takes.
const UNKNOWN_TYPE: &str = "unknown_type";

/// Where tasks go.
pub trait Rack {
    /// Time since the load began.
    fn now(&self) -> Nanos;

    /// Hands over a task that must end within `deadline`; gives it back when there is no room for it now.
    fn offer(&mut self, task: Task, deadline: Nanos) -> Result<(), Task>;

    /// The next task that ended.
    fn ended(&mut self) -> Option<Ended>;

    /// Lets time pass until `at`, or a little less.
    fn wait(&mut self, at: Nanos) {
        let span = at.since(self.now()).min(SLEEP_MAX);
        thread::sleep(Duration::from_nanos(span.0));
    }
}

/// Sends all tasks of `source` to `rack`, waits for their outcomes, and says what came of them.
///
/// The board shows how it goes. Once `stop` is asked, nothing new is sent. A type that the rack never took
/// ends it: the rest of its tasks would be refused too.
pub fn run(
    plan: &LoadPlan,
    source: Source,
    rack: &mut impl Rack,
    board: &Board,
    stop: &Stop,
) -> Outcome<Tally> {
    let mut load = Load::new(plan, source);
    loop {
        let now = rack.now();
        if stop.is_asked() {
            load.cut(now);
        }
        load.collect(rack)?;
        load.take_due(now);
        load.hand_over(now, rack);
        load.show(now, board, false);
        if load.is_over(now) {
            load.show(now, board, true);
            return Ok(load.tally);
        }
        rack.wait(load.next_step(now));
    }
}

struct Load<'p> {
    plan: &'p LoadPlan,
    source: std::iter::Peekable<Source>,
    /// Tasks that are due and not taken yet, type by type: a full slice must not hold up another.
    backlog: Vec<VecDeque<Task>>,
    tally: Tally,
    /// Whether any task of a type was answered.
    taken: Vec<bool>,
    window: Window,
    deadline: Nanos,
    outstanding: u64,
    last_deadline: Nanos,
    cut: bool,
    shown: Nanos,
}

impl<'p> Load<'p> {
    fn new(plan: &'p LoadPlan, source: Source) -> Self {
        let names = || plan.mix.iter().map(|(name, _)| name.clone());
        Self {
            plan,
            source: source.peekable(),
            backlog: plan.mix.iter().map(|_| VecDeque::new()).collect(),
            taken: plan.mix.iter().map(|_| false).collect(),
            tally: Tally::new(names(), plan.arrivals.rate(), nanos(plan.warm_up)),
            window: Window::new(names()),
            deadline: nanos(plan.deadline),
            outstanding: 0,
            last_deadline: Nanos(0),
            cut: false,
            shown: Nanos(0),
        }
    }

    /// Nothing is due any more; what was pushed back is given up.
    fn cut(&mut self, now: Nanos) {
        if self.cut {
            return;
        }
        self.cut = true;
        for task in self.backlog.iter_mut().flat_map(std::mem::take) {
            self.tally.ended(&never_sent(&task, now));
        }
    }

    fn collect(&mut self, rack: &mut impl Rack) -> Outcome<()> {
        while let Some(ended) = rack.ended() {
            self.outstanding = self.outstanding.saturating_sub(1);
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

    fn take_due(&mut self, now: Nanos) {
        while let Some(task) = self.source.next_if(|task| !self.cut && task.due <= now) {
            self.tally.due(task.kind, task.due, now.since(task.due));
            self.window.due(task.kind);
            self.last_deadline = task.due + self.deadline;
            self.backlog[task.kind].push_back(task);
        }
    }

    fn hand_over(&mut self, now: Nanos, rack: &mut impl Rack) {
        for backlog in &mut self.backlog {
            while let Some(task) = backlog.pop_front() {
                let left = (task.due + self.deadline).since(now);
                if left == Nanos(0) {
                    self.tally.ended(&never_sent(&task, now));
                    continue;
                }
                let waited = now.since(task.due);
                match rack.offer(task, left) {
                    Ok(()) => {
                        self.outstanding += 1;
                        self.tally.taken(waited);
                    }
                    Err(task) => {
                        backlog.push_front(task);
                        break;
                    }
                }
            }
        }
    }

    fn is_over(&mut self, now: Nanos) -> bool {
        let all_due = self.cut || self.source.peek().is_none();
        let pushed_back = self.backlog.iter().any(|backlog| !backlog.is_empty());
        let waiting = self.outstanding > 0 && now < self.last_deadline + DRAIN_EXTRA;
        all_due && !pushed_back && !waiting
    }

    fn next_step(&mut self, now: Nanos) -> Nanos {
        let mut next = now + SLEEP_MAX;
        if !self.cut
            && let Some(task) = self.source.peek()
        {
            next = next.min(task.due);
        }
        if self.backlog.iter().any(|backlog| !backlog.is_empty()) {
            next = next.min(now + ASK_AGAIN);
        }
        next
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
        view.refused = all.refused();
        view.unknown = all.unknown();
        view.outstanding = all.lost();
        view.pushed_back = self.backlog.iter().map(VecDeque::len).sum();
        let per_s = 1e9 / self.tally.timeline.bin().0 as f64;
        let bins = self.tally.timeline.bins().iter();
        view.history = bins.map(|bin| (bin.replied as f64 * per_s) as u64).collect();
        view.history_every = Duration::from_nanos(self.tally.timeline.bin().0);
        board.show_load(view);
    }
}

fn never_sent(task: &Task, now: Nanos) -> Ended {
    Ended {
        kind: task.kind,
        due: task.due,
        at: now,
        attempts: 0,
        worker: None,
        ending: Ending::Refused("never_sent"),
    }
}

/// A span in the unit of the drivers.
pub fn nanos(span: Duration) -> Nanos {
    Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Arrivals;

    /// A rack in virtual time that answers each task after `service`, holds at most `room`, and loses every
    /// `loses`-th.
    struct Fake {
        now: Nanos,
        room: usize,
        service: Nanos,
        loses: Option<u64>,
        held: VecDeque<Ended>,
        taken: u64,
    }

    impl Fake {
        fn new(room: usize, service_ms: u64) -> Self {
            let service = Nanos::from_millis(service_ms);
            Self { now: Nanos(0), room, service, loses: None, held: VecDeque::new(), taken: 0 }
        }
    }

    impl Rack for Fake {
        fn now(&self) -> Nanos {
            self.now
        }

        fn offer(&mut self, task: Task, _deadline: Nanos) -> Result<(), Task> {
            if self.held.len() == self.room {
                return Err(task);
            }
            self.taken += 1;
            if self.loses.is_some_and(|every| self.taken.is_multiple_of(every)) {
                return Ok(());
            }
            let at = self.held.back().map_or(self.now, |last| last.at).max(self.now) + self.service;
            let ending = Ending::Reply {
                failed: false,
                switch_wait: Nanos(0),
                worker_wait: Nanos(0),
                service: self.service,
            };
            let (kind, due) = (task.kind, task.due);
            self.held.push_back(Ended { kind, due, at, attempts: 1, worker: Some(0), ending });
            Ok(())
        }

        fn ended(&mut self) -> Option<Ended> {
            self.held.pop_front_if(|first| first.at <= self.now)
        }

        fn wait(&mut self, at: Nanos) {
            self.now = at.max(self.now + Nanos(1));
        }
    }

    fn plan(rate: f64) -> LoadPlan {
        LoadPlan {
            arrivals: Arrivals::Constant(rate),
            mix: vec![("get".to_owned(), 1.0)],
            requests: Vec::new(),
            warm_up: Duration::from_secs(1),
            length: Duration::from_secs(2),
            deadline: Duration::from_secs(1),
            retry: true,
            behind_max: Duration::from_millis(10),
        }
    }

    fn run_against(rack: &mut Fake, rate: f64) -> Tally {
        let plan = plan(rate);
        let source = Source::new(&plan, 1, 100).expect("it is a legal load");
        run(&plan, source, rack, &Board::default(), &Stop::default()).expect("the rack takes its types")
    }

    #[test]
    fn a_rack_with_room_answers_every_task() {
        let tally = run_against(&mut Fake::new(100, 1), 100.0);
        assert_eq!((tally.measured().sent, tally.measured().replied), (200, 200));
        assert_eq!(tally.warm_up.replied, 99);
        assert!(tally.behind.max() == 0);
    }

    #[test]
    fn latency_counts_the_wait_of_a_task_that_was_pushed_back() {
        let tally = run_against(&mut Fake::new(1, 20), 60.0);
        let latency = &tally.kinds[0].times.latency;
        assert!(latency.max() > 300_000_000, "{}", latency.max());
        assert!(tally.pushed_back.max() > 250_000_000);
    }

    #[test]
    fn a_task_whose_deadline_passes_while_it_is_pushed_back_is_refused() {
        let tally = run_against(&mut Fake::new(1, 500), 100.0);
        let counts = tally.everything();
        assert!(counts.refused["never_sent"] > 100);
        assert_eq!(counts.lost(), 0);
    }

    #[test]
    fn a_task_without_an_outcome_is_lost_and_not_waited_for_for_ever() {
        let mut rack = Fake::new(100, 1);
        rack.loses = Some(50);
        let tally = run_against(&mut rack, 100.0);
        assert!(tally.everything().lost() > 3);
    }

    #[test]
    fn a_load_that_is_stopped_sends_nothing_more_and_accounts_for_the_rest() {
        let plan = plan(100.0);
        let source = Source::new(&plan, 1, 100).expect("it is a legal load");
        let stop = Stop::default();
        stop.ask();
        let tally =
            run(&plan, source, &mut Fake::new(1, 1), &Board::default(), &stop).expect("nothing is sent");
        assert_eq!(tally.everything(), Counts::default());
    }
}
