//! When a worker sends early tokens, and when it must not.

use sluice_host::worker::{Action, EarlySettings, RemainingTime, Worker, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::Feed;
use sluice_wire::{
    Answer, Counters, Dispatch, Epoch, Generation, Incarnation, Nanos, Packet, Payload, ReplyStatus, Serial,
    TaskId, TaskType,
};

const GAP: Nanos = Nanos(3_500);
const SERVICE: Nanos = Nanos(100_000);
const LEAD_MAX: Nanos = Nanos(50_000);

/// A worker at a switch in which tasks always wait: each token brings a task after [`GAP`].
struct Bench {
    worker: Worker,
    settings: WorkerSettings,
    now: Nanos,
    out: Vec<Action>,
    generation: Generation,
    sent: u32,
    slot: u64,
    /// How long tasks wait in the switch, in nanoseconds.
    wait_ns: u32,
}

impl Bench {
    fn new(grant: WorkerRegistration) -> Self {
        let settings = WorkerSettings {
            first_rtt: Nanos::from_millis(1),
            early: Some(EarlySettings { lead_max: LEAD_MAX }),
            ..WorkerSettings::default()
        };
        let mut bench = Self {
            worker: Worker::new(),
            settings,
            now: Nanos(1_000_000),
            out: Vec::new(),
            generation: grant.generation,
            sent: 0,
            slot: 0,
            wait_ns: 7_000,
        };
        bench.worker.grant(bench.now, &bench.settings, grant, &mut bench.out);
        bench
    }

    fn with_quota(quota: u8) -> Self {
        Self::fed(Feed::TOKENS, quota)
    }

    fn fed(feed: Feed, quota: u8) -> Self {
        let (epoch, generation) = (Epoch(1), Generation(1));
        Self::new(WorkerRegistration { epoch, generation, quota, feed, ..WorkerRegistration::default() })
    }

    /// A worker that has measured its lead.
    fn experienced(quota: u8) -> Self {
        let mut bench = Self::with_quota(quota);
        (0..4).for_each(|_| bench.round(TaskType(0), SERVICE, None));
        assert_eq!(bench.worker.stats().lead, GAP);
        bench
    }

    /// A task comes [`GAP`] after the last token, runs and ends.
    fn round(&mut self, task_type: TaskType, service: Nanos, outlook: Option<RemainingTime>) {
        self.task_comes(task_type, outlook);
        self.now = self.now + service;
        self.ends(service);
    }

    fn task_comes(&mut self, task_type: TaskType, outlook: Option<RemainingTime>) {
        self.now = self.now + GAP;
        self.arrives(task_type);
        if let Some(outlook) = outlook {
            self.worker.expect(self.now, self.slot, outlook);
        }
    }

    fn arrives(&mut self, task_type: TaskType) {
        self.sent += 1;
        let number = Serial(self.sent);
        let dispatch = Dispatch {
            epoch: Epoch(1),
            generation: self.generation,
            sent: number,
            seen: number,
            task: TaskId { incarnation: Incarnation(5), sequence: number },
            task_type,
            wait_ns: self.wait_ns,
            ..Dispatch::default()
        };
        self.worker.packet(self.now, self.now, &self.settings, &Packet::Dispatch(dispatch), &mut self.out);
        self.note_runs();
    }

    fn ends(&mut self, service: Nanos) {
        let (slot, started, done) = (self.slot, self.now - service, ReplyStatus::Done);
        self.worker.finished(self.now, &self.settings, slot, started, done, Payload::EMPTY, &mut self.out);
        self.note_runs();
    }

    fn note_runs(&mut self) {
        let mut slots = self.out.iter().filter_map(|action| match action {
            Action::Run { slot, .. } => Some(*slot),
            _ => None,
        });
        self.slot = slots.next_back().unwrap_or(self.slot);
        self.out.retain(|action| matches!(action, Action::ToSwitch(Packet::Token(_))));
    }

    fn early_in(&self) -> Option<Nanos> {
        self.worker.early_at(&self.settings).map(|at| at - self.now)
    }

    /// Lets the worker send an early token now. Returns whether it did.
    fn early(&mut self) -> bool {
        let before = self.worker.stats().early_tokens;
        self.worker.early(self.now, &self.settings, &mut self.out);
        self.worker.stats().early_tokens > before
    }

    fn promised(&self) -> (u32, u32) {
        (self.worker.stats().tokens_out, self.worker.stats().held)
    }
}

#[test]
fn the_token_leaves_the_measured_gap_before_the_expected_end_and_not_sooner() {
    let mut bench = Bench::experienced(1);
    bench.task_comes(TaskType(0), Some(RemainingTime::Left(SERVICE)));
    assert_eq!(bench.early_in(), Some(SERVICE - GAP));
    bench.now = bench.now + SERVICE - GAP - Nanos(1);
    assert!(!bench.early(), "a nanosecond too soon");
    bench.now = bench.now + Nanos(1);
    assert!(bench.early());
    assert_eq!(bench.promised(), (1, 1), "N + 1");
    assert!(!bench.early(), "one token a task");
    assert_eq!(bench.early_in(), None);
}

#[test]
fn a_task_that_did_not_wait_in_the_switch_says_nothing_of_its_tokens_way() {
    let mut bench = Bench::with_quota(1);
    bench.wait_ns = 0;
    bench.round(TaskType(0), SERVICE, None);
    bench.round(TaskType(0), SERVICE, None);
    assert_eq!(bench.worker.stats().lead, Nanos(0));
}

/// While tokens are parked, no task can tell how long a token and its task travel.
#[test]
fn a_worker_that_was_let_in_asks_how_long_a_round_trip_is_and_takes_that_for_its_lead_at_first() {
    let settings = WorkerSettings { early: Some(EarlySettings::default()), ..WorkerSettings::default() };
    let (mut worker, mut out, begin) = (Worker::new(), Vec::new(), Nanos(1_000_000));
    let (epoch, generation) = (Epoch(1), Generation(1));
    let grant = WorkerRegistration { epoch, generation, quota: 2, ..WorkerRegistration::default() };
    worker.grant(begin, &settings, grant, &mut out);
    let [.., Action::ToSwitch(Packet::Probe(probe))] = out[..] else { panic!("{out:?}") };
    worker.grant(begin, &settings, grant, &mut out);
    let counters = Some(Counters { seen: Serial(2), sent: Serial(0) });
    let answer = Answer { epoch, generation, nonce: probe.nonce, counters, ..Answer::default() };
    let heard = begin + GAP;
    worker.packet(heard, heard, &settings, &Packet::Answer(answer), &mut out);
    let (sent, seen, task) = (Serial(1), Serial(2), TaskId::default());
    let dispatch = Dispatch { epoch, generation, sent, seen, task, ..Dispatch::default() };
    out.clear();
    worker.packet(heard, heard, &settings, &Packet::Dispatch(dispatch), &mut out);
    let [Action::Run { slot, .. }] = out[..] else { panic!("{out:?}") };
    worker.expect(heard, slot, RemainingTime::Left(SERVICE));
    assert_eq!(worker.early_at(&settings), Some(heard + SERVICE - GAP));
}

#[test]
fn an_early_token_does_not_stand_behind_the_task_that_is_about_to_end() {
    let mut bench = Bench::fed(Feed::Tokens { ranked: true }, 1);
    (0..4).for_each(|_| bench.round(TaskType(0), SERVICE, None));
    bench.task_comes(TaskType(0), Some(RemainingTime::Left(SERVICE)));
    bench.now = bench.now + SERVICE - GAP;
    bench.out.clear();
    assert!(bench.early());
    let [Action::ToSwitch(Packet::Token(token))] = bench.out[..] else { panic!("{:?}", bench.out) };
    assert_eq!(token.rank.get(), 0);
}

#[test]
fn a_task_that_an_early_token_brought_starts_when_the_first_one_ends_and_no_token_follows_it() {
    let mut bench = Bench::experienced(1);
    bench.task_comes(TaskType(0), Some(RemainingTime::Left(SERVICE)));
    bench.now = bench.now + SERVICE - GAP;
    assert!(bench.early());
    bench.now = bench.now + GAP;
    bench.out.clear();
    bench.arrives(TaskType(0));
    let first = bench.slot;
    bench.ends(SERVICE);
    assert_eq!((bench.slot, bench.out.len()), (first + 1, 0));
    assert_eq!(bench.promised(), (0, 1), "N again");
    assert_eq!(bench.early_in(), None, "nothing is known of the next one yet");
}

#[test]
fn what_is_left_may_be_said_anew_as_the_service_goes_on() {
    let mut bench = Bench::experienced(1);
    bench.task_comes(TaskType(0), Some(RemainingTime::Left(SERVICE)));
    bench.worker.expect(bench.now, bench.slot, RemainingTime::Left(SERVICE.times(2)));
    assert_eq!(bench.early_in(), Some(SERVICE.times(2) - GAP));
    bench.worker.expect(bench.now, bench.slot + 1, RemainingTime::Left(Nanos(0)));
    assert_eq!(bench.early_in(), Some(SERVICE.times(2) - GAP), "no such run");
}

#[test]
fn tasks_of_one_size_are_expected_to_take_what_such_tasks_took() {
    let mut bench = Bench::experienced(1);
    for _ in 0..20 {
        assert_eq!(bench.early_in(), None);
        bench.round(TaskType(1), SERVICE, Some(RemainingTime::Units(1)));
        bench.round(TaskType(2), Nanos(800), Some(RemainingTime::Units(4)));
    }
    bench.task_comes(TaskType(1), Some(RemainingTime::Units(1)));
    assert_eq!(bench.early_in(), Some(SERVICE - GAP));
    bench.now = bench.now + SERVICE;
    bench.ends(SERVICE);
    bench.task_comes(TaskType(2), Some(RemainingTime::Units(100)));
    assert_eq!(bench.early_in(), Some(Nanos(200 * 100) - GAP));
}

#[test]
fn without_an_outlook_an_estimate_or_a_measured_gap_the_quota_stays_n() {
    let mut bench = Bench::experienced(1);
    bench.task_comes(TaskType(0), None);
    assert_eq!(bench.early_in(), None);
    bench.worker.expect(bench.now, bench.slot, RemainingTime::Units(1));
    assert_eq!(bench.early_in(), None, "tasks of this type were not measured");
    let mut fresh = Bench::with_quota(1);
    fresh.task_comes(TaskType(0), Some(RemainingTime::Left(Nanos(0))));
    assert_eq!(fresh.early_in(), None, "no gap was measured");
}

#[test]
fn no_early_token_leaves_when_the_option_is_off_or_the_worker_leaves_or_polls() {
    let mut off = Bench::experienced(1);
    off.task_comes(TaskType(0), Some(RemainingTime::Left(Nanos(0))));
    assert_eq!(off.early_in(), Some(Nanos(0)));
    off.settings.early = None;
    assert!(!off.early());
    let mut leaves = Bench::experienced(1);
    leaves.task_comes(TaskType(0), Some(RemainingTime::Left(Nanos(0))));
    leaves.worker.leave();
    assert!(!leaves.early());
    let feed = Feed::Polls { every: Nanos(0) };
    let mut polls = Bench::new(WorkerRegistration {
        epoch: Epoch(1),
        generation: Generation(1),
        quota: 1,
        feed,
        ..WorkerRegistration::default()
    });
    (0..4).for_each(|_| polls.round(TaskType(0), SERVICE, None));
    polls.task_comes(TaskType(0), Some(RemainingTime::Left(Nanos(0))));
    assert!(!polls.early(), "an idle worker polls anyway");
}

#[test]
fn the_lead_never_exceeds_its_setting() {
    let mut bench = Bench::experienced(1);
    bench.settings.early = Some(EarlySettings { lead_max: Nanos(1_000) });
    bench.task_comes(TaskType(0), Some(RemainingTime::Left(SERVICE)));
    assert_eq!(bench.early_in(), Some(SERVICE - Nanos(1_000)));
}

#[test]
fn another_generation_keeps_the_lead_and_holds_to_n_plus_one() {
    let mut bench = Bench::experienced(1);
    bench.task_comes(TaskType(0), Some(RemainingTime::Left(Nanos(0))));
    bench.generation = Generation(2);
    let grant = WorkerRegistration {
        epoch: Epoch(1),
        generation: Generation(2),
        quota: 1,
        ..WorkerRegistration::default()
    };
    bench.worker.grant(bench.now, &bench.settings, grant, &mut bench.out);
    assert!(bench.early());
    assert_eq!((bench.promised(), bench.worker.stats().lead), ((1, 1), GAP));
}
