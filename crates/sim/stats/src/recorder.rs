//! Records what an engine tells about each task.

use sluice_outcome::study::{Counts, Gauges};
use sluice_wire::Nanos;

use super::measured::{Backlog, ClassMeasured, EIGHTHS, Measured, TaskTimes, per_s};
use super::pool::SLOWDOWN_UNIT;
use super::warmup::{Pilot, Warmup};

/// A warm-up that has to be detected is first looked at after one part in so many of the measured tasks.
const PILOT_SHARE: u64 = 10;
/// It is never looked at before so many tasks.
const PILOT_MIN: u64 = 2_000;
/// Tasks of a class that are recorded together.
const PENDING_MAX: usize = 64;

/// The settings of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Each class's mean service time, in the workload's order.
    pub mean_services_ns: Vec<f64>,
    /// How many tasks to measure; a few more if several are due at the same time as the last.
    pub tasks: u64,
    /// The tasks before the measured ones, which are left out.
    pub warmup: Warmup,
    /// Parts of the run for estimating chance: [`PARTS`](super::PARTS) if the run is steady; 1 if it
    /// changes with time by plan, so that only replications show chance; 0 if these cannot either, because
    /// all have the same tasks.
    pub parts: u32,
    /// The time from the end of a service to its reply's arrival on an idle path: the part of the latency
    /// that is neither service nor scheduling delay.
    pub way_home: Nanos,
    /// The largest number of waiting tasks, times the share of idle workers, if each task were sent to a
    /// worker drawn at random; `None` if that is not meaningful.
    pub passed_over_at_random: Option<f64>,
    /// The latency within which an answer of each class is in time; empty if nobody asks for goodput.
    pub within: Vec<Nanos>,
}

/// A task that got a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replied {
    /// The task's class, by its place in the workload.
    pub class: u8,
    /// When the task was due.
    pub intended: Nanos,
    /// When the reply arrived.
    pub at: Nanos,
    /// How long the task's service was to take; slowdowns are relative to it.
    pub service: Nanos,
    /// How long the task took, as its worker tells.
    pub served: Nanos,
    /// The task's waits in switch and worker together.
    pub waited: Nanos,
}

/// The effect of a task's arrival on the measured span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// No effect.
    None,
    /// The measured span begins with this task: averages over time begin anew.
    Opened,
    /// The measured span ended before this task: averages over time are read now.
    Closed,
}

/// How a task ended without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The task cannot have run.
    Refused,
    /// The same: the task's budget was spent at its client.
    LateAtClient,
    /// The same: the task's budget was spent in the switch.
    LateInSwitch,
    /// The same: the task's budget was spent at a worker.
    LateAtWorker,
    /// The task may have run.
    Unknown,
    /// The task's client held it back and gave it up.
    PushedBack,
}

/// Is told about each task: a [`Recorder`], or a test that looks at single tasks.
pub trait Observer {
    /// A task is due.
    fn sent(&mut self, at: Nanos) -> Mark;

    /// How many tasks wait, times the share of workers that serve no task. An engine that measures this
    /// calls it before each [`sent`](Self::sent).
    fn passed_over(&mut self, _tasks: f64) {}

    /// A task got a reply.
    fn done(&mut self, task: &Replied);

    /// A task ended without a reply.
    fn failed(&mut self, intended: Nanos, outcome: Outcome);

    /// Whether nothing more needs to be told.
    fn is_complete(&self) -> bool;
}

/// Records one replication. An engine tells it about each task in order of time, as an [`Observer`], and
/// stops when it is complete: when every measured task has been sent and has ended.
///
/// Nothing allocates after [`new`](Self::new).
#[derive(Clone, Debug)]
pub struct Recorder {
    opened: Nanos,
    closed: Nanos,
    sent: u64,
    outstanding: u64,
    /// The sum of outstanding tasks at arrivals since the last mark.
    found: u64,
    /// The sum of tasks that waited at arrivals while workers were idle, since the last mark.
    passed_over: f64,
    /// The number of sent tasks at which the span opens or closes or an eighth ends.
    mark: u64,
    replied: u64,
    last_sent: Nanos,
    measured_sent: u64,
    measured_ended: u64,
    classes: Vec<ClassMeasured>,
    /// Tasks of the present part that are still to be recorded, by class.
    pending: Vec<Vec<TaskTimes>>,
    phase: Phase,
    pilot: Option<Pilot>,
    settled: bool,
    recording: Recording,
    backlog: Backlog,
    /// Tasks sent when the span opened, and when its present eighth began.
    opened_sent: u64,
    eighth_sent: u64,
    /// Eighths that ended.
    eighths: usize,
    counts: Counts,
    /// How many parts have begun, and the number of measured tasks at which the present part ends.
    part: u64,
    part_ends: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    WarmingUp,
    Open,
    Closed,
}

impl Recorder {
    /// A recorder before the first task.
    pub fn new(recording: Recording) -> Self {
        let class = |(class, mean): (usize, &f64)| ClassMeasured {
            in_time: recording.within.get(class).map(|_| 0),
            ..ClassMeasured::new(*mean, recording.parts)
        };
        let classes: Vec<_> = recording.mean_services_ns.iter().enumerate().map(class).collect();
        let pilot = (recording.warmup == Warmup::Detect)
            .then(|| Pilot::new((recording.tasks / PILOT_SHARE).max(PILOT_MIN)));
        let mark = if let Warmup::Tasks(tasks) = recording.warmup { tasks + 1 } else { 0 };
        Self {
            opened: Nanos(u64::MAX),
            closed: Nanos(u64::MAX),
            sent: 0,
            outstanding: 0,
            found: 0,
            passed_over: 0.0,
            mark,
            replied: 0,
            last_sent: Nanos(0),
            measured_sent: 0,
            measured_ended: 0,
            part: 1,
            part_ends: recording.tasks / u64::from(recording.parts.max(1)),
            pending: classes.iter().map(|_| Vec::with_capacity(PENDING_MAX)).collect(),
            classes,
            phase: Phase::WarmingUp,
            pilot,
            settled: true,
            recording,
            backlog: Backlog::default(),
            opened_sent: 0,
            eighth_sent: 0,
            eighths: 0,
            counts: Counts::default(),
        }
    }

    /// A task is due.
    #[inline]
    pub fn sent(&mut self, at: Nanos) -> Mark {
        let mark = if self.sent + 1 >= self.mark { self.marked(at) } else { Mark::None };
        self.found += self.outstanding;
        self.outstanding += 1;
        self.sent += 1;
        self.last_sent = at;
        mark
    }

    /// A task got a reply.
    #[inline]
    pub fn done(&mut self, task: &Replied) {
        self.outstanding -= 1;
        self.replied += 1;
        let Replied { class, intended, at, service, served, waited } = *task;
        let latency = at.since(intended);
        if intended < self.opened || intended >= self.closed {
            return self.aside(latency);
        }
        self.measured_ended += 1;
        if self.measured_ended > self.part_ends {
            self.next_part();
        }
        let scale = SLOWDOWN_UNIT / float(service.0.max(1));
        let own_milli = (float(latency.0) * scale) as i64 as u64;
        let server_milli = (float(waited.0 + service.0) * scale) as i64 as u64;
        let delay_ns = latency.0.saturating_sub(served.0 + self.recording.way_home.0);
        let pending = &mut self.pending[usize::from(class)];
        pending.push(TaskTimes { latency_ns: latency.0, delay_ns, own_milli, server_milli });
        if pending.len() == PENDING_MAX {
            self.record_pending();
        }
    }

    /// A task ended without a reply.
    pub fn failed(&mut self, intended: Nanos, outcome: Outcome) {
        self.outstanding -= 1;
        if intended < self.opened || intended >= self.closed {
            return;
        }
        self.measured_ended += 1;
        let is_other = matches!(outcome, Outcome::Unknown | Outcome::PushedBack);
        self.counts.refused += u64::from(!is_other);
        match outcome {
            Outcome::Refused => {}
            Outcome::LateAtClient => self.counts.late_at_client += 1,
            Outcome::LateInSwitch => self.counts.late_in_switch += 1,
            Outcome::LateAtWorker => self.counts.late_at_worker += 1,
            Outcome::Unknown => self.counts.unknown += 1,
            Outcome::PushedBack => self.counts.pushed_back += 1,
        }
    }

    /// Whether every measured task has been sent and has ended.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.phase == Phase::Closed && self.measured_ended == self.measured_sent
    }

    /// Whether answers in time are counted.
    pub fn counts_goodput(&self) -> bool {
        !self.recording.within.is_empty()
    }

    /// Tasks that were sent and have not ended, including those of the warm-up.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// The replication. `counts` is what the engine counted between opening and closing; the fates of tasks
    /// are known here. `gauges` are the averages over that span.
    pub fn finish(mut self, counts: Counts, gauges: Gauges) -> Measured {
        if self.phase != Phase::Closed {
            self.close(self.last_sent);
        }
        self.record_pending();
        if self.recording.parts < 2 {
            // A run that changes with time by plan, or as its trace does, has spells that are no fault of
            // the policy.
            self.backlog.passed_over = [0.0; EIGHTHS];
        }
        self.backlog.at_random = self.recording.passed_over_at_random;
        let of_tasks = self.counts;
        let failed = of_tasks.refused + of_tasks.unknown + of_tasks.pushed_back;
        let span_ns = self.closed.since(self.opened).0;
        let counts = Counts {
            sent: self.measured_sent,
            replied: self.measured_ended - failed,
            refused: of_tasks.refused,
            late_at_client: of_tasks.late_at_client,
            late_in_switch: of_tasks.late_in_switch,
            late_at_worker: of_tasks.late_at_worker,
            unknown: of_tasks.unknown,
            pushed_back: of_tasks.pushed_back,
            ..counts
        };
        let in_time = self.classes.iter().map(|class| class.in_time).sum::<Option<u64>>();
        let goodput =
            in_time.filter(|_| !self.classes.is_empty()).map_or(Gauges::default(), |in_time| Gauges {
                goodput_per_s: Some(per_s(in_time, span_ns)),
                refused_per_s: Some(per_s(of_tasks.refused + of_tasks.pushed_back, span_ns)),
                ..Gauges::default()
            });
        Measured {
            classes: self.classes,
            counts,
            gauges: gauges.or(&goodput),
            backlog: self.backlog,
            span_ns,
            warmup_ns: self.opened.0,
            settled: self.settled,
            depths: Vec::new(),
        }
    }

    #[inline(never)]
    fn record_pending(&mut self) {
        for (at, (class, pending)) in self.classes.iter_mut().zip(&mut self.pending).enumerate() {
            class.record(pending);
            if let (Some(in_time), Some(within)) = (&mut class.in_time, self.recording.within.get(at)) {
                let is_in_time = |task: &&TaskTimes| task.latency_ns <= within.0;
                *in_time += pending.iter().filter(is_in_time).count() as u64;
            }
            pending.clear();
        }
    }

    /// A reply that is not measured; the pilot uses it.
    #[cold]
    fn aside(&mut self, latency: Nanos) {
        if let (Phase::WarmingUp, Some(pilot)) = (self.phase, &mut self.pilot) {
            pilot.observe(latency.0 as f64);
        }
    }

    /// Called before a task is counted as sent that may open or close the span or end an eighth.
    ///
    /// The span opens and closes between two due times: of tasks that are due at the same time, all are
    /// measured or none.
    #[cold]
    fn marked(&mut self, at: Nanos) -> Mark {
        let first_of_its_instant = at > self.last_sent || self.sent == 0;
        match self.phase {
            Phase::WarmingUp => {
                if first_of_its_instant && self.is_warm(at) {
                    self.open(at);
                    return Mark::Opened;
                }
            }
            Phase::Open => {
                while self.eighths < EIGHTHS - 1 && self.sent >= self.eighth_ends() {
                    self.end_eighth();
                }
                if first_of_its_instant && self.sent >= self.eighth_ends() {
                    self.close(at);
                    return Mark::Closed;
                }
            }
            Phase::Closed => {}
        }
        Mark::None
    }

    fn is_warm(&mut self, at: Nanos) -> bool {
        match (self.recording.warmup, &mut self.pilot) {
            (Warmup::Tasks(tasks), _) => self.sent >= tasks,
            (Warmup::TimeNs(until), _) => at.0 >= until,
            (Warmup::Detect, Some(pilot)) => {
                let has_settled = pilot.has_settled();
                self.settled = has_settled;
                has_settled || self.sent >= self.recording.tasks.max(PILOT_MIN * 2)
            }
            (Warmup::Detect, None) => true,
        }
    }

    fn open(&mut self, at: Nanos) {
        self.phase = Phase::Open;
        self.opened = at;
        self.backlog.at_open = self.outstanding;
        self.backlog.replies = self.replied;
        (self.found, self.passed_over) = (0, 0.0);
        (self.opened_sent, self.eighth_sent) = (self.sent, self.sent);
        self.mark = self.eighth_ends() + 1;
    }

    /// Tasks that end from here on belong to the next part.
    #[cold]
    fn next_part(&mut self) {
        self.record_pending();
        self.part += 1;
        self.part_ends = match u64::from(self.recording.parts) {
            parts if self.part < parts => self.recording.tasks * self.part / parts,
            _ => u64::MAX,
        };
        if self.part <= u64::from(self.recording.parts) {
            self.classes.iter_mut().for_each(|class| class.parts.next());
        }
    }

    /// The number of sent tasks at which the present eighth ends.
    fn eighth_ends(&self) -> u64 {
        self.opened_sent + self.recording.tasks * (self.eighths as u64 + 1) / EIGHTHS as u64
    }

    fn end_eighth(&mut self) {
        let tasks = self.sent - self.eighth_sent;
        let tasks = tasks.max(1) as f64;
        self.backlog.by_eighth[self.eighths] = self.found as f64 / tasks;
        self.backlog.passed_over[self.eighths] = self.passed_over / tasks;
        self.eighths += 1;
        (self.found, self.passed_over) = (0, 0.0);
        self.eighth_sent = self.sent;
        self.mark = self.eighth_ends() + 1;
    }

    fn close(&mut self, at: Nanos) {
        if self.phase == Phase::WarmingUp {
            self.open(at);
        }
        self.end_eighth();
        self.measured_sent = self.sent - self.opened_sent;
        self.phase = Phase::Closed;
        self.closed = at;
        self.mark = u64::MAX;
        self.backlog.at_close = self.outstanding;
        self.backlog.replies = self.replied - self.backlog.replies;
    }
}

/// A span in nanoseconds, or another number that does not come near 2⁶³, as a float: a signed number becomes
/// one in one instruction.
#[inline]
pub const fn float(number: u64) -> f64 {
    number as i64 as f64
}

impl Observer for Recorder {
    #[inline]
    fn sent(&mut self, at: Nanos) -> Mark {
        self.sent(at)
    }

    #[inline]
    fn passed_over(&mut self, tasks: f64) {
        self.passed_over += tasks;
    }

    #[inline]
    fn done(&mut self, task: &Replied) {
        self.done(task);
    }

    fn failed(&mut self, intended: Nanos, outcome: Outcome) {
        self.failed(intended, outcome);
    }

    #[inline]
    fn is_complete(&self) -> bool {
        self.is_complete()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN_NS: f64 = 1_000.0;

    fn recording(tasks: u64, warmup: Warmup) -> Recording {
        Recording {
            mean_services_ns: vec![MEAN_NS],
            tasks,
            warmup,
            parts: 0,
            way_home: Nanos(20),
            passed_over_at_random: None,
            within: Vec::new(),
        }
    }

    /// Sends a task every 10 ns, each of which takes 100 ns, until the recorder is complete.
    fn run(recorder: &mut Recorder) -> u64 {
        let mut now = 0;
        let mut due = std::collections::VecDeque::new();
        while !recorder.is_complete() {
            now += 10;
            if due.front().is_some_and(|sent| sent + 100 <= now) {
                let sent = Nanos(due.pop_front().expect("it was looked at"));
                recorder.done(&Replied {
                    intended: sent,
                    at: Nanos(now),
                    service: Nanos(50),
                    served: Nanos(60),
                    waited: Nanos(30),
                    ..Replied::default()
                });
            }
            recorder.sent(Nanos(now));
            due.push_back(now);
        }
        now
    }

    #[test]
    fn the_warm_up_is_left_out_and_every_measured_task_is_waited_for() {
        for (warmup, opens) in [(Warmup::Tasks(50), 510), (Warmup::TimeNs(800), 800), (Warmup::Tasks(0), 10)]
        {
            let mut recorder = Recorder::new(recording(100, warmup));
            let ended = run(&mut recorder);
            let measured = recorder.finish(Counts::default(), Gauges::default());
            assert_eq!((measured.warmup_ns, measured.span_ns), (opens, 1_000), "{warmup:?}");
            assert_eq!((measured.counts.sent, measured.counts.replied), (100, 100), "{warmup:?}");
            assert_eq!(measured.classes[0].latency.count(), 100, "{warmup:?}");
            assert_eq!(ended, opens + 1_000 + 90, "{warmup:?}");
        }
    }

    #[test]
    fn the_three_slowdowns_have_their_own_denominators() {
        let mut recorder = Recorder::new(recording(100, Warmup::Tasks(0)));
        run(&mut recorder);
        let measured = recorder.finish(Counts::default(), Gauges::default());
        let class = &measured.classes[0];
        assert_eq!(class.latency.quantile(0.5), 100);
        assert_eq!(class.slowdown_own.quantile(0.5), 2_000);
        assert_eq!(class.slowdown_server.quantile(0.5), 1_600);
    }

    #[test]
    fn the_scheduling_delay_is_what_comes_before_the_service_as_it_took_place() {
        let mut recorder = Recorder::new(recording(100, Warmup::Tasks(0)));
        run(&mut recorder);
        let measured = recorder.finish(Counts::default(), Gauges::default());
        let of = &measured.classes[0].scheduling_delay;
        assert_eq!((of.count(), of.quantile(0.01), of.quantile(0.99)), (100, 20, 20), "100 - 60 - 20");
    }

    #[test]
    fn a_reply_that_comes_sooner_than_its_way_home_leaves_no_delay() {
        let mut recorder = Recorder::new(recording(1, Warmup::Tasks(0)));
        recorder.sent(Nanos(5));
        recorder.sent(Nanos(6));
        let (intended, at, served) = (Nanos(5), Nanos(25), Nanos(10));
        recorder.done(&Replied { intended, at, served, ..Replied::default() });
        let measured = recorder.finish(Counts::default(), Gauges::default());
        assert_eq!(measured.classes[0].scheduling_delay.max(), 0);
    }

    #[test]
    fn the_backlog_is_what_arrivals_find() {
        let mut recorder = Recorder::new(recording(800, Warmup::Tasks(100)));
        run(&mut recorder);
        let backlog = recorder.finish(Counts::default(), Gauges::default()).backlog;
        assert!(backlog.by_eighth.iter().all(|found| (found - 9.0).abs() < 1e-9), "{backlog:?}");
        assert_eq!((backlog.at_open, backlog.at_close, backlog.replies), (9, 9, 800));
    }

    #[test]
    fn tasks_due_in_one_instant_are_measured_all_or_none() {
        let mut recorder = Recorder::new(recording(4, Warmup::Tasks(2)));
        let mut marks = Vec::new();
        for (n, at) in [5, 5, 5, 6, 6, 7, 8, 8, 8, 9].into_iter().enumerate() {
            if recorder.sent(Nanos(at)) != Mark::None {
                marks.push(n);
            }
        }
        assert_eq!(marks, [3, 9]);
        for at in [5, 5, 5, 6, 6, 7, 8, 8, 8, 9] {
            assert!(!recorder.is_complete() || at == 9);
            let (intended, service) = (Nanos(at), Nanos(1));
            recorder.done(&Replied { intended, at: Nanos(100), service, ..Replied::default() });
        }
        assert_eq!(recorder.finish(Counts::default(), Gauges::default()).counts.replied, 6);
    }

    #[test]
    fn failures_are_told_apart_and_end_their_tasks() {
        let mut recorder = Recorder::new(recording(3, Warmup::Tasks(0)));
        for at in 1..=4 {
            recorder.sent(Nanos(at));
        }
        recorder.failed(Nanos(1), Outcome::Refused);
        recorder.failed(Nanos(2), Outcome::Unknown);
        assert!(!recorder.is_complete());
        recorder.failed(Nanos(3), Outcome::PushedBack);
        assert!(recorder.is_complete());
        let Counts { sent, replied, refused, unknown, pushed_back, .. } =
            recorder.finish(Counts::default(), Gauges::default()).counts;
        assert_eq!((sent, replied, refused, unknown, pushed_back), (3, 0, 1, 1, 1));
    }

    #[test]
    fn parts_are_even_and_the_last_one_takes_what_is_left() {
        let mut recorder = Recorder::new(Recording { parts: 8, ..recording(100, Warmup::Tasks(10)) });
        run(&mut recorder);
        let measured = recorder.finish(Counts::default(), Gauges::default());
        let parts = &measured.classes[0].parts.latency;
        let counts: Vec<u64> = (0..parts.len()).map(|part| parts.count(part)).collect();
        assert_eq!(counts, [12, 13, 12, 13, 12, 13, 12, 13]);
    }

    #[test]
    fn a_steady_run_opens_after_the_first_pilot() {
        let mut recorder = Recorder::new(recording(5_000, Warmup::Detect));
        run(&mut recorder);
        let measured = recorder.finish(Counts::default(), Gauges::default());
        assert!(measured.settled);
        assert!((20_000..21_000).contains(&measured.warmup_ns), "{}", measured.warmup_ns);
    }

    #[test]
    fn a_run_that_was_stopped_gives_what_it_has() {
        let recorder = Recorder::new(recording(100, Warmup::Tasks(10)));
        let measured = recorder.finish(Counts::default(), Gauges::default());
        assert_eq!((measured.counts.sent, measured.span_ns), (0, 0));
    }
}
