//! The results of the tasks: outcomes are counted, and times are recorded in HDR histograms, a set for each
//! type.
//!
//! Latency counts from the *intended* send time. Slowdown is latency divided by the task's own service
//! time. The `server` slowdown is the part caused by the rack's queues alone: waits plus service, divided
//! by service.

use std::collections::BTreeMap;
use std::ops::Range;

use hdrhistogram::Histogram;
use sluice_outcome::run::ClockStep;
use sluice_wire::Nanos;

use super::histograms::{histogram, record};
use super::parts::{PartTally, SpanParts};
use super::timeline::Timeline;

/// The factor of slowdowns in histograms: thousandths.
pub const SLOWDOWN_SCALE: f64 = 1_000.0;
/// The reason of a refusal because no slice takes the type.
pub(super) const UNKNOWN_TYPE: &str = "unknown_type";
/// The reasons of refusals because a budget was spent: at the client, in the switch, at a worker.
pub(super) const LATE: [&str; 3] = ["late_at_client", "late_in_switch", "late_at_worker"];
/// The most stages that are counted in parts: the histograms of a stage's parts take a megabyte.
const STAGES_IN_PARTS_MAX: usize = 100;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Reply {
        /// Whether the service failed.
        failed: bool,
        /// Time in the switch's queue.
        switch_wait: Nanos,
        /// Time at the worker before service.
        worker_wait: Nanos,
        /// Service time.
        service: Nanos,
    },
    /// No attempt can have run; with the reason.
    Refused(&'static str),
    /// An attempt may have run; with the reason.
    Unknown(&'static str),
}

/// A task that has ended.
#[derive(Clone, Debug)]
pub struct TaskEnd {
    /// The index of the task's type in the load's mix.
    pub kind: usize,
    /// When it was due, from the start of the load.
    pub due: Nanos,
    /// When the task ended, from the start of the load.
    pub at: Nanos,
    /// How many times the task was sent.
    pub attempts: u16,
    pub worker: Option<u16>,
    /// The task's outcome.
    pub ending: Ending,
    /// The service's error text, if it failed.
    pub complaint: Option<String>,
}

/// Tasks by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tasks that were due.
    pub sent: u64,
    /// Tasks that were answered, including failed ones.
    pub replied: u64,
    /// Answered tasks whose service failed.
    pub failed: u64,
    /// The error text of the first failed task.
    pub first_failure: Option<String>,
    /// Refused tasks by reason; they cannot have run.
    pub refused: BTreeMap<&'static str, u64>,
    /// Unknown tasks by reason; they may have run.
    pub unknown: BTreeMap<&'static str, u64>,
    /// Attempts of all tasks.
    pub attempts: u64,
}

impl Counts {
    /// Refused tasks of all reasons.
    pub fn refused(&self) -> u64 {
        self.refused.values().sum()
    }

    /// Tasks that were refused because their budget was spent.
    pub fn late(&self) -> u64 {
        let of = |why: &&str| self.refused.get(*why).copied().unwrap_or(0);
        LATE.iter().map(of).sum()
    }

    /// Unknown tasks of all reasons.
    pub fn unknown(&self) -> u64 {
        self.unknown.values().sum()
    }

    /// Tasks without any outcome: must be zero after all were waited for.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.replied + self.refused() + self.unknown())
    }

    fn end(&mut self, ended: &TaskEnd) {
        self.attempts += u64::from(ended.attempts);
        match ended.ending {
            Ending::Reply { failed, .. } => {
                self.replied += 1;
                self.failed += u64::from(failed);
                if failed && self.first_failure.is_none() {
                    self.first_failure.clone_from(&ended.complaint);
                }
            }
            Ending::Refused(why) => *self.refused.entry(why).or_default() += 1,
            Ending::Unknown(why) => *self.unknown.entry(why).or_default() += 1,
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.replied += other.replied;
        self.failed += other.failed;
        self.first_failure = self.first_failure.take().or_else(|| other.first_failure.clone());
        self.attempts += other.attempts;
        for (why, count) in &other.refused {
            *self.refused.entry(why).or_default() += count;
        }
        for (why, count) in &other.unknown {
            *self.unknown.entry(why).or_default() += count;
        }
    }
}

/// Times of one type's replies.
#[derive(Clone, Debug)]
pub struct Times {
    /// From the intended send time to the reply, ns.
    pub latency: Histogram<u64>,
    /// Latency minus service time, in ns. It includes the reply's way back, which a client cannot know.
    pub scheduling_delay: Histogram<u64>,
    /// Latency divided by the task's own service time, in thousandths.
    pub slowdown: Histogram<u64>,
    /// Waits plus service, divided by service, in thousandths.
    pub slowdown_server: Histogram<u64>,
    /// Time in the switch's queue, in ns.
    pub switch_wait: Histogram<u64>,
    /// Time at the worker before service, in ns.
    pub worker_wait: Histogram<u64>,
    /// In service, ns.
    pub service: Histogram<u64>,
}

impl Times {
    /// Empty histograms.
    pub fn new() -> Self {
        let [latency, scheduling_delay, slowdown, slowdown_server, switch_wait, worker_wait, service] =
            [(); 7].map(|()| histogram());
        Self { latency, scheduling_delay, slowdown, slowdown_server, switch_wait, worker_wait, service }
    }

    fn record(&mut self, latency: Nanos, switch_wait: Nanos, worker_wait: Nanos, service: Nanos) {
        let own = service.0.max(1) as f64;
        let server = (switch_wait + worker_wait + service).0 as f64;
        record(&mut self.latency, latency.0);
        record(&mut self.scheduling_delay, latency.0.saturating_sub(service.0));
        record(&mut self.slowdown, (latency.0 as f64 / own * SLOWDOWN_SCALE) as u64);
        record(&mut self.slowdown_server, (server / own * SLOWDOWN_SCALE) as u64);
        record(&mut self.switch_wait, switch_wait.0);
        record(&mut self.worker_wait, worker_wait.0);
        record(&mut self.service, service.0);
    }
}

/// One type's measured tasks.
#[derive(Clone, Debug)]
pub struct KindTally {
    pub name: String,
    /// Tasks by outcome.
    pub counts: Counts,
    /// Replies within the measured time, including replies to earlier tasks.
    pub replied_in_time: u64,
    /// The latency within which an answer is in time, if anybody asks for goodput.
    pub within: Option<Nanos>,
    /// Measured tasks whose service succeeded, and which were answered within that latency.
    pub in_time: u64,
    /// Times of the type's successful replies.
    pub times: Times,
    /// The same in consecutive parts of the measured time.
    pub parts: SpanParts,
}

/// The tasks of all types that are due in one stage.
#[derive(Clone, Debug)]
pub struct StageTally {
    /// When it is, from the start of the load.
    pub span: Range<Nanos>,
    pub counts: Counts,
    /// Replies within the stage, including replies to earlier tasks.
    pub replied_in_time: u64,
    /// The latency of successful replies, in ns.
    pub latency: Histogram<u64>,
    /// The same in consecutive parts of the stage; none for a ramp, or where stages are many.
    pub parts: Option<SpanParts>,
}

/// All measurements of a load.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Measured tasks by type.
    pub kinds: Vec<KindTally>,
    /// Measured tasks by stage, if the load has stages.
    pub stages: Vec<StageTally>,
    /// Tasks of the warm-up.
    pub warm_up: Counts,
    /// The sender's lateness, in ns.
    pub behind: Histogram<u64>,
    /// How long tasks waited until the client library accepted them, in ns.
    pub pushed_back: Histogram<u64>,
    /// Replies over time, including the warm-up.
    pub timeline: Timeline,
    /// Tasks that come after the load's end and are not sent.
    pub cut_off: u64,
    /// Changes of the wall clock.
    pub clock_steps: Vec<ClockStep>,
    measured: Range<Nanos>,
}

impl Tally {
    /// An empty tally. Tasks due within `measured` are measured; the load ends with that range.
    pub fn new(names: impl IntoIterator<Item = String>, rate: Option<f64>, measured: Range<Nanos>) -> Self {
        let kind = |name| KindTally {
            name,
            counts: Counts::default(),
            replied_in_time: 0,
            within: None,
            in_time: 0,
            times: Times::new(),
            parts: SpanParts::of(&measured),
        };
        Self {
            kinds: names.into_iter().map(kind).collect(),
            stages: Vec::new(),
            warm_up: Counts::default(),
            behind: histogram(),
            pushed_back: histogram(),
            timeline: Timeline::new(rate),
            cut_off: 0,
            clock_steps: Vec::new(),
            measured,
        }
    }

    /// Counts answers in time: within these latencies, one for each type.
    pub fn count_within(&mut self, limits: &[Nanos]) {
        for (kind, limit) in self.kinds.iter_mut().zip(limits) {
            kind.within = Some(*limit);
        }
    }

    /// Counts the tasks of stages of these lengths, which begin with the measured time; each says whether it
    /// is a ramp.
    pub fn count_stages(&mut self, stages: &[(Nanos, bool)]) {
        let mut from = self.measured.start;
        for (length, is_ramp) in stages {
            let span = from..from + *length;
            from = span.end;
            let has_parts = !is_ramp && stages.len() <= STAGES_IN_PARTS_MAX;
            let (latency, parts) = (histogram(), has_parts.then(|| SpanParts::of(&span)));
            let counts = Counts::default();
            self.stages.push(StageTally { span, counts, replied_in_time: 0, latency, parts });
        }
    }

    /// Notes that the load was ended early, at `now`.
    pub fn cut(&mut self, now: Nanos) {
        self.measured.end = self.measured.end.min(now.max(self.measured.start));
    }

    /// The measured part of the load.
    pub const fn measured_time(&self) -> &Range<Nanos> {
        &self.measured
    }

    /// Notes that a task was due, and that the sender noticed it `behind` later.
    pub fn due(&mut self, kind: usize, due: Nanos, behind: Nanos) {
        self.timeline.due(due);
        if due < self.measured.start {
            self.warm_up.sent += 1;
        } else {
            let kind = &mut self.kinds[kind];
            kind.counts.sent += 1;
            kind.parts.at(due).sent += 1;
            if let Some(stage) = stage_at(&mut self.stages, due) {
                stage.counts.sent += 1;
                if let Some(parts) = &mut stage.parts {
                    parts.at(due).sent += 1;
                }
            }
            record(&mut self.behind, behind.0);
        }
    }

    /// Notes that the client library accepted a task after it had waited for `waited`.
    pub fn taken(&mut self, waited: Nanos) {
        record(&mut self.pushed_back, waited.0);
    }

    /// A task ended.
    pub fn ended(&mut self, ended: &TaskEnd) {
        let latency = ended.at.since(ended.due);
        if ended.attempts > 1 {
            self.timeline.sent_again(ended.due);
        }
        if let Ending::Refused(_) = ended.ending {
            self.timeline.refused(ended.due);
        }
        if let Ending::Reply { .. } = ended.ending {
            self.timeline.replied(ended.at, latency.0);
            if self.measured.contains(&ended.at) {
                let kind = &mut self.kinds[ended.kind];
                kind.replied_in_time += 1;
                kind.parts.at(ended.at).replied_in_time += 1;
                if let Some(stage) = stage_at(&mut self.stages, ended.at) {
                    stage.replied_in_time += 1;
                    if let Some(parts) = &mut stage.parts {
                        parts.at(ended.at).replied_in_time += 1;
                    }
                }
            }
        }
        if ended.due < self.measured.start {
            self.warm_up.end(ended);
            return;
        }
        let kind = &mut self.kinds[ended.kind];
        kind.counts.end(ended);
        if let Ending::Reply { failed: false, switch_wait, worker_wait, service } = ended.ending {
            kind.in_time += u64::from(kind.within.is_some_and(|within| latency <= within));
            kind.times.record(latency, switch_wait, worker_wait, service);
        }
        count(kind.parts.at(ended.due), &ended.ending, latency);
        if let Some(stage) = stage_at(&mut self.stages, ended.due) {
            stage.counts.end(ended);
            if let Some(parts) = &mut stage.parts {
                count(parts.at(ended.due), &ended.ending, latency);
            }
            if let Ending::Reply { failed: false, .. } = ended.ending {
                record(&mut stage.latency, latency.0);
            }
        }
    }

    /// All measured tasks.
    pub fn measured(&self) -> Counts {
        let mut all = Counts::default();
        self.kinds.iter().for_each(|kind| all.add(&kind.counts));
        all
    }

    /// All tasks.
    pub fn everything(&self) -> Counts {
        let mut all = self.measured();
        all.add(&self.warm_up);
        all
    }
}

/// Counts a task that was due in a part.
fn count(part: &mut PartTally, ending: &Ending, latency: Nanos) {
    match ending {
        Ending::Reply { failed: true, .. } => part.failed += 1,
        Ending::Reply { .. } => record(part.latency.get_or_insert_with(histogram), latency.0),
        Ending::Refused(_) => part.refused += 1,
        Ending::Unknown(_) => part.unknown += 1,
    }
}

/// The stage in which this time is.
fn stage_at(stages: &mut [StageTally], at: Nanos) -> Option<&mut StageTally> {
    let place = stages.partition_point(|stage| stage.span.end <= at);
    stages.get_mut(place).filter(|stage| stage.span.contains(&at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: Ending = Ending::Reply {
        failed: false,
        switch_wait: Nanos(1_000),
        worker_wait: Nanos(1_000),
        service: Nanos(2_000),
    };

    fn tally() -> Tally {
        Tally::new(["get".to_owned()], Some(100.0), Nanos(100)..Nanos(50_000))
    }

    fn end(tally: &mut Tally, due: u64, at: u64, ending: Ending) {
        tally.due(0, Nanos(due), Nanos(0));
        let complaint = matches!(ending, Ending::Reply { failed: true, .. }).then(|| format!("at {at}"));
        let (kind, due, at, worker) = (0, Nanos(due), Nanos(at), Some(0));
        tally.ended(&TaskEnd { kind, due, at, attempts: 1, worker, ending, complaint });
    }

    #[test]
    fn every_task_has_one_outcome_and_what_has_none_is_lost() {
        let mut tally = tally();
        end(&mut tally, 100, 10_100, REPLY);
        end(&mut tally, 101, 10_100, Ending::Refused("queue_full"));
        end(&mut tally, 102, 10_100, Ending::Unknown("deadline"));
        tally.due(0, Nanos(103), Nanos(0));
        let counts = tally.measured();
        assert_eq!((counts.sent, counts.replied, counts.refused(), counts.unknown()), (4, 1, 1, 1));
        assert_eq!(counts.lost(), 1);
    }

    #[test]
    fn the_warm_up_is_counted_apart_and_not_measured() {
        let mut tally = tally();
        end(&mut tally, 99, 10_099, REPLY);
        assert_eq!(tally.warm_up.replied, 1);
        assert_eq!(tally.measured(), Counts::default());
        assert!(tally.kinds[0].times.latency.is_empty());
        assert_eq!(tally.everything().replied, 1);
    }

    #[test]
    fn slowdowns_are_over_the_tasks_own_service() {
        let mut tally = tally();
        end(&mut tally, 100, 10_100, REPLY);
        let times = &tally.kinds[0].times;
        assert_eq!(times.latency.max() / 1_000, 10);
        assert!((times.slowdown.mean() / SLOWDOWN_SCALE - 5.0).abs() < 0.02);
        assert!((times.slowdown_server.mean() / SLOWDOWN_SCALE - 2.0).abs() < 0.02);
    }

    #[test]
    fn a_task_counts_in_the_stage_in_which_it_is_due_and_its_reply_where_it_comes() {
        let mut tally = tally();
        tally.count_stages(&[(Nanos(900), false), (Nanos(49_000), true)]);
        end(&mut tally, 99, 199, REPLY);
        end(&mut tally, 100, 999, REPLY);
        end(&mut tally, 999, 1_999, REPLY);
        end(&mut tally, 1_000, 60_000, Ending::Refused("busy"));
        let found = |of: fn(&StageTally) -> u64| tally.stages.iter().map(of).collect::<Vec<_>>();
        assert_eq!(found(|stage| stage.counts.sent), [2, 1]);
        assert_eq!(found(|stage| stage.counts.replied), [2, 0]);
        assert_eq!(found(|stage| stage.counts.refused()), [0, 1]);
        assert_eq!(found(|stage| stage.replied_in_time), [2, 1]);
        assert_eq!(found(|stage| stage.latency.len()), [2, 0]);
        assert_eq!(tally.stages[1].span, Nanos(1_000)..Nanos(50_000));
    }

    #[test]
    fn the_scheduling_delay_is_the_latency_without_the_service() {
        let mut tally = tally();
        end(&mut tally, 100, 10_100, REPLY);
        end(&mut tally, 100, 1_100, REPLY);
        let times = &tally.kinds[0].times;
        assert_eq!((times.scheduling_delay.max() / 10, times.scheduling_delay.min()), (800, 0));
    }

    #[test]
    fn answers_in_time_are_those_of_measured_tasks_whose_service_succeeded_within_the_latency() {
        let mut tally = tally();
        end(&mut tally, 100, 9_100, REPLY);
        assert_eq!(tally.kinds[0].in_time, 0, "nobody asks for goodput");
        tally.count_within(&[Nanos(9_000)]);
        end(&mut tally, 100, 9_100, REPLY);
        end(&mut tally, 100, 9_101, REPLY);
        end(&mut tally, 99, 1_099, REPLY);
        let failed =
            Ending::Reply { failed: true, switch_wait: Nanos(0), worker_wait: Nanos(0), service: Nanos(5) };
        end(&mut tally, 100, 200, failed);
        end(&mut tally, 100, 200, Ending::Refused("busy"));
        assert_eq!(tally.kinds[0].in_time, 1);
        assert_eq!(tally.timeline.bins()[0].refused, 1);
    }

    #[test]
    fn a_failed_service_counts_as_a_reply_and_has_no_times() {
        let mut tally = tally();
        let failed =
            Ending::Reply { failed: true, switch_wait: Nanos(0), worker_wait: Nanos(0), service: Nanos(5) };
        end(&mut tally, 100, 10_100, failed);
        end(&mut tally, 100, 10_200, failed);
        assert_eq!((tally.measured().replied, tally.measured().failed), (2, 2));
        assert_eq!(tally.everything().first_failure.as_deref(), Some("at 10100"));
        assert!(tally.kinds[0].times.latency.is_empty());
    }

    #[test]
    fn replies_that_come_when_the_measured_time_is_over_are_no_throughput() {
        let mut tally = tally();
        for at in [99, 100, 49_999, 50_000, 60_000] {
            end(&mut tally, 50, at, REPLY);
        }
        assert_eq!(tally.kinds[0].replied_in_time, 2);
        tally.cut(Nanos(30_000));
        end(&mut tally, 100, 30_000, REPLY);
        assert_eq!((tally.kinds[0].replied_in_time, tally.measured_time().end), (2, Nanos(30_000)));
    }
}
