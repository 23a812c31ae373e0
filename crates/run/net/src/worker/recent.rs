//! A worker's work over the last seconds, as it is reported to the controller: how many tasks ended, how
//! long their services took, how long they waited at the worker, and how the way to the switch is.

use sluice_control::RecentWork;
use sluice_host::worker::Worker;
use sluice_wire::Nanos;

/// The time between two reports.
pub(super) const TELL_EVERY: Nanos = Nanos::from_millis(1_000);
/// How many past stretches a report covers.
const STRETCHES: usize = 5;
const SECOND: u64 = 1_000_000_000;

/// How a worker's way to the switch is.
#[derive(Clone, Copy, Default)]
pub(super) struct WayToSwitch {
    /// How many TOKENs were lost since the worker started.
    pub(super) lost_tokens: u32,
    /// For how long the switch has not answered.
    pub(super) unanswered: Nanos,
}

impl WayToSwitch {
    pub(super) fn of(machine: &Worker, now: Nanos) -> Self {
        Self { lost_tokens: machine.repeated_tokens(), unanswered: machine.unanswered_for(now) }
    }

    /// As it is told.
    fn unanswered_told(self) -> Nanos {
        // Else an answer that is just on its way would be news each second.
        Nanos(self.unanswered.0 / SECOND * SECOND)
    }
}

/// Counts what ends.
pub(super) struct RecentMeter {
    /// When the present stretch began.
    since: Nanos,
    now: RecentPart,
    /// The stretches before the present one, as a ring.
    past: [RecentPart; STRETCHES],
    /// The index of the oldest stretch.
    next: usize,
    /// The lost TOKENs that are in a stretch already.
    lost_tokens: u32,
    /// The last report's.
    unanswered: Nanos,
}

/// The tasks that ended in a stretch of time.
#[derive(Clone, Copy, Default)]
struct RecentPart {
    span_ns: u64,
    tasks: u32,
    service_ns: f64,
    /// The sum of the squared service times.
    squares: f64,
    wait_ns: f64,
    lost_tokens: u32,
}

impl RecentMeter {
    pub(super) fn new(now: Nanos) -> Self {
        Self {
            since: now,
            now: RecentPart::default(),
            past: [RecentPart::default(); STRETCHES],
            next: 0,
            lost_tokens: 0,
            unanswered: Nanos(0),
        }
    }

    /// Adds a task whose service began at `started` and took `service`, after the task had waited at the
    /// worker for `wait`.
    pub(super) fn ended(&mut self, started: Nanos, service: Nanos, wait: Nanos) {
        let came = started - wait;
        if self.now.tasks == 0 && came.since(self.since) > TELL_EVERY.times(STRETCHES as u64) {
            // The worker was idle, so no call has ended the stretches meanwhile.
            self.past = [RecentPart { span_ns: TELL_EVERY.0, ..RecentPart::default() }; STRETCHES];
            self.since = came;
        }
        self.now.tasks = self.now.tasks.saturating_add(1);
        self.now.service_ns += service.0 as f64;
        self.now.squares += service.0 as f64 * service.0 as f64;
        self.now.wait_ns += wait.0 as f64;
    }

    /// When the next report is due even if no task ends; `has_more` says that there is something to report
    /// beside what ended.
    pub(super) fn next_turn(&self, has_more: bool) -> Option<Nanos> {
        let some = has_more || self.now.tasks > 0 || self.past.iter().any(|stretch| stretch.tasks > 0);
        some.then(|| self.since + TELL_EVERY)
    }

    /// The report that is due now, if one is.
    pub(super) fn turn(&mut self, now: Nanos, way: WayToSwitch) -> Option<RecentWork> {
        let span = now.since(self.since);
        if span < TELL_EVERY {
            return None;
        }
        let lost_tokens = way.lost_tokens.wrapping_sub(self.lost_tokens);
        self.past[self.next] = RecentPart { span_ns: span.0, lost_tokens, ..self.now };
        (self.lost_tokens, self.unanswered) = (way.lost_tokens, way.unanswered_told());
        self.next = (self.next + 1) % STRETCHES;
        (self.since, self.now) = (now, RecentPart::default());
        Some(self.told())
    }

    fn told(&self) -> RecentWork {
        let mut all = RecentPart::default();
        for stretch in &self.past {
            all.span_ns += stretch.span_ns;
            all.tasks = all.tasks.saturating_add(stretch.tasks);
            all.service_ns += stretch.service_ns;
            all.squares += stretch.squares;
            all.wait_ns += stretch.wait_ns;
            all.lost_tokens = all.lost_tokens.saturating_add(stretch.lost_tokens);
        }
        let tasks = f64::from(all.tasks.max(1));
        let mean_ns = all.service_ns / tasks;
        RecentWork {
            span: Nanos(all.span_ns),
            tasks: all.tasks,
            service: Nanos(mean_ns as u64),
            deviation: Nanos((all.squares / tasks - mean_ns * mean_ns).max(0.0).sqrt() as u64),
            wait: Nanos((all.wait_ns / tasks) as u64),
            lost_tokens: all.lost_tokens,
            unanswered: self.unanswered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn after(meter: &mut RecentMeter, ms: u64) -> Option<RecentWork> {
        meter.turn(Nanos(ms * MS), WayToSwitch::default())
    }

    #[test]
    fn the_last_five_seconds_are_told_once_a_second() {
        let mut meter = RecentMeter::new(Nanos(0));
        assert_eq!(meter.next_turn(false), None, "there is nothing to tell");
        assert_eq!(meter.next_turn(true), Some(Nanos(1_000 * MS)), "though no task ended");
        for task in 0..10 {
            let started = Nanos(task * 100 * MS);
            let service = Nanos(if task % 2 == 0 { 10 * MS } else { 30 * MS });
            meter.ended(started, service, Nanos(2 * MS));
        }
        assert_eq!((after(&mut meter, 999), meter.next_turn(false)), (None, Some(Nanos(1_000 * MS))));
        let told = after(&mut meter, 1_000).expect("a second is over");
        assert_eq!((told.span, told.tasks), (Nanos(1_000 * MS), 10));
        assert_eq!(
            (told.service, told.deviation, told.wait),
            (Nanos(20 * MS), Nanos(10 * MS), Nanos(2 * MS))
        );
        for second in 2..=5 {
            let told = after(&mut meter, second * 1_000).expect("another is");
            assert_eq!((told.span, told.tasks), (Nanos(second * 1_000 * MS), 10));
        }
        let told = after(&mut meter, 6_000).expect("it fell out");
        assert_eq!(
            (told, meter.next_turn(false)),
            (RecentWork { span: Nanos(5_000 * MS), ..RecentWork::default() }, None)
        );
    }

    #[test]
    fn lost_tokens_and_a_silent_switch_are_told_though_no_task_ends() {
        let mut meter = RecentMeter::new(Nanos(0));
        let way = |lost_tokens, ms| WayToSwitch { lost_tokens, unanswered: Nanos(ms * MS) };
        let mut told = |second: u64, way| {
            let told = meter.turn(Nanos(second * 1_000 * MS), way).expect("another second is over");
            (told.lost_tokens, told.unanswered)
        };
        assert_eq!(told(1, way(3, 2_300)), (3, Nanos(2_000 * MS)));
        assert_eq!(told(2, way(4, 999)), (4, Nanos(0)), "an answer is on its way");
        for second in 3..=5 {
            assert_eq!(told(second, way(4, 0)), (4, Nanos(0)));
        }
        assert_eq!([6, 7].map(|second| told(second, way(4, 0)).0), [1, 0], "they fall out");
    }

    #[test]
    fn a_long_rest_before_a_task_is_not_taken_for_the_seconds_that_are_told() {
        let mut meter = RecentMeter::new(Nanos(0));
        let hour = 3_600_000;
        meter.ended(Nanos(hour * MS), Nanos(MS), Nanos(0));
        let told = after(&mut meter, hour + 1_000).expect("a second after it");
        assert_eq!((told.span, told.tasks), (Nanos(5_000 * MS), 1));
    }

    #[test]
    fn a_long_service_counts_with_all_its_time() {
        let mut meter = RecentMeter::new(Nanos(0));
        meter.ended(Nanos(0), Nanos(20_000 * MS), Nanos(0));
        let told = after(&mut meter, 20_000).expect("long over");
        assert_eq!((told.span, told.tasks, told.service), (Nanos(20_000 * MS), 1, Nanos(20_000 * MS)));
    }
}
