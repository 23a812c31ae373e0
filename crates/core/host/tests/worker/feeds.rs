//! Workers that poll, and workers whose tasks are pushed.

use proptest::prelude::*;
use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::Feed;
use sluice_wire::{
    Answer, Attempt, Counters, Dispatch, Empty, Epoch, Generation, Incarnation, Nanos, Packet, Payload,
    Probe, Reply, ReplyStatus, Serial, TaskId, WorkerId,
};

const START: Serial = Serial(u32::MAX - 7);
const EVERY: Nanos = Nanos(3_000);

struct Bench {
    worker: Worker,
    settings: WorkerSettings,
    now: Nanos,
    out: Vec<Action>,
}

impl Bench {
    fn new(feed: Feed) -> Self {
        Self::with_patience(feed, 0)
    }

    fn with_patience(feed: Feed, patience: u8) -> Self {
        let settings = WorkerSettings {
            patience,
            first_rtt: Nanos(10_000),
            held_max: 4,
            counters_start: START,
            ..WorkerSettings::default()
        };
        let mut bench = Self { worker: Worker::new(), settings, now: Nanos(1_000_000), out: Vec::new() };
        let grant = WorkerRegistration { start: START, quota: 8, feed, ..Bench::life() };
        bench.worker.grant(bench.now, &bench.settings, grant, &mut bench.out);
        bench
    }

    fn life() -> WorkerRegistration {
        WorkerRegistration {
            worker: WorkerId(2),
            epoch: Epoch(50),
            generation: Generation(4),
            ..WorkerRegistration::default()
        }
    }

    fn hear(&mut self, packet: Packet) {
        self.worker.packet(self.now, self.now, &self.settings, &packet, &mut self.out);
    }

    /// Delivers the `number`th packet of this generation, with a task.
    fn dispatch(&mut self, number: u32, sequence: u32) {
        self.dispatch_from_among(number, sequence, 0);
    }

    /// Delivers such a packet while `occupancy` more tasks wait in the switch.
    fn dispatch_from_among(&mut self, number: u32, sequence: u32, occupancy: u16) {
        let WorkerRegistration { worker, epoch, generation, .. } = Self::life();
        let task = TaskId { incarnation: Incarnation(33), sequence: Serial(sequence) };
        let (sent, seen) = (START.plus(number), START);
        let attempt = Attempt(1);
        let dispatch = Dispatch {
            worker,
            epoch,
            generation,
            sent,
            seen,
            task,
            attempt,
            occupancy,
            ..Dispatch::default()
        };
        self.hear(Packet::Dispatch(dispatch));
    }

    /// Delivers the `number`th packet of this generation, without a task.
    fn empty(&mut self, number: u32) {
        let WorkerRegistration { worker, epoch, generation, .. } = Self::life();
        let (sent, seen) = (START.plus(number), START.plus(number));
        self.hear(Packet::Empty(Empty { worker, epoch, generation, sent, seen }));
    }

    fn tick_at_deadline(&mut self) -> Nanos {
        let due = self.worker.deadline(&self.settings).expect("it waits for something");
        let waited = due.since(self.now);
        self.now = due;
        self.worker.tick(due, &self.settings, &mut self.out);
        waited
    }

    fn finish(&mut self, slot: u64) {
        let (started, done) = (self.now, ReplyStatus::Done);
        self.worker.finished(self.now, &self.settings, slot, started, done, Payload::EMPTY, &mut self.out);
    }

    fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.out)
    }

    fn tokens(&mut self) -> Vec<u32> {
        let token = |action| match action {
            Action::ToSwitch(Packet::Token(token)) => Some(token.issued.since(START) as u32),
            _ => None,
        };
        self.actions().into_iter().filter_map(token).collect()
    }

    fn ranks(&mut self) -> Vec<u8> {
        let rank = |action| match action {
            Action::ToSwitch(Packet::Token(token)) => Some(token.rank.get()),
            _ => None,
        };
        self.actions().into_iter().filter_map(rank).collect()
    }

    /// The run that the worker wants to start.
    fn run(&mut self) -> u64 {
        let slot = |action| match action {
            Action::Run { slot, .. } => Some(slot),
            _ => None,
        };
        self.actions().into_iter().find_map(slot).expect("a run begins")
    }

    fn reports(&mut self) -> Vec<Reply> {
        let report = |action| match action {
            Action::Report(reply) => Some(reply),
            _ => None,
        };
        self.actions().into_iter().filter_map(report).collect()
    }
}

#[test]
fn a_pushed_worker_that_leaves_waits_for_the_tasks_that_are_still_under_way() {
    let mut bench = Bench::new(Feed::Pushed { reports: false });
    bench.dispatch(1, 1);
    bench.worker.leave();
    bench.worker.left(bench.now, Some(START.plus(2)));
    assert_eq!(bench.worker.stats().tokens_out, 1);
    bench.dispatch(2, 2);
    assert_eq!((bench.worker.stats().tokens_out, bench.worker.stats().held), (0, 2));
}

#[test]
fn of_tasks_that_a_leaving_workers_switch_had_pushed_those_too_far_back_are_written_off() {
    let mut bench = Bench::new(Feed::Pushed { reports: false });
    bench.dispatch(1, 1);
    bench.worker.left(bench.now, Some(START.plus(100)));
    assert_eq!((bench.worker.stats().written_off, bench.worker.stats().tokens_out), (99 - 64, 64));
}

#[test]
fn a_poll_that_finds_nothing_is_repeated_at_once_when_there_is_no_pause() {
    let mut bench = Bench::new(Feed::Polls { every: Nanos(0) });
    assert_eq!(bench.tokens(), [1], "one is out at most, whatever the quota");
    bench.empty(1);
    assert_eq!(bench.tokens(), [2]);
    bench.empty(1);
    assert_eq!(bench.tokens(), [], "the EMPTY came twice");
    bench.empty(2);
    assert_eq!(bench.tokens(), [3]);
}

#[test]
fn a_poll_that_finds_nothing_is_repeated_after_the_pause() {
    let mut bench = Bench::new(Feed::Polls { every: EVERY });
    bench.tokens();
    bench.empty(1);
    assert_eq!(bench.tokens(), []);
    assert_eq!(bench.worker.stats().tokens_out, 0);
    assert_eq!(bench.tick_at_deadline(), EVERY);
    assert_eq!(bench.tokens(), [2]);
}

#[test]
fn a_worker_that_runs_a_task_does_not_poll_and_polls_at_once_when_it_ends() {
    let mut bench = Bench::new(Feed::Polls { every: EVERY });
    bench.tokens();
    bench.dispatch(1, 1);
    assert!(matches!(bench.actions()[..], [Action::Run { slot: 1, .. }]));
    bench.finish(1);
    let actions = bench.actions();
    assert!(matches!(actions[..], [Action::Reply { .. }, Action::ToSwitch(Packet::Token(_))]), "{actions:?}");
}

#[test]
fn a_lost_empty_is_found_by_a_probe_and_written_off() {
    let mut bench = Bench::new(Feed::Polls { every: Nanos(0) });
    bench.tokens();
    bench.tick_at_deadline();
    let [Action::ToSwitch(Packet::Probe(probe))] = bench.actions()[..] else { panic!("no probe") };
    let counters = Some(Counters { seen: START.plus(1), sent: START.plus(1) });
    let WorkerRegistration { worker, epoch, generation, .. } = Bench::life();
    let nonce = probe.nonce;
    bench.hear(Packet::Answer(Answer { epoch, worker, generation, nonce, counters }));
    assert_eq!(bench.tokens(), []);
    while bench.worker.stats().written_off == 0 {
        bench.tick_at_deadline();
    }
    assert_eq!(bench.tokens(), [2]);
}

#[test]
fn an_empty_of_another_generation_spends_nothing() {
    let mut bench = Bench::new(Feed::Polls { every: Nanos(0) });
    bench.tokens();
    let WorkerRegistration { worker, epoch, .. } = Bench::life();
    for generation in [3, 5] {
        let (sent, seen) = (START.plus(1), START.plus(1));
        bench.hear(Packet::Empty(Empty { worker, epoch, generation: Generation(generation), sent, seen }));
    }
    assert_eq!(bench.tokens(), []);
    assert_eq!((bench.worker.stats().tokens_out, bench.worker.stats().dropped), (1, 2));
}

#[test]
fn pushed_tasks_are_taken_without_tokens_and_never_asked_for() {
    let mut bench = Bench::new(Feed::Pushed { reports: false });
    assert_eq!(bench.actions(), []);
    assert_eq!(bench.worker.deadline(&bench.settings), None);
    bench.dispatch(1, 1);
    bench.dispatch(2, 2);
    bench.dispatch(2, 2);
    let stats = bench.worker.stats();
    assert_eq!((stats.held, stats.duplicates, stats.tokens_out), (2, 1, 0));
    assert!(matches!(bench.actions()[..], [Action::Run { slot: 1, .. }]));
    bench.finish(1);
    let actions = bench.actions();
    assert!(matches!(actions[..], [Action::Reply { .. }, Action::Run { slot: 2, .. }]), "{actions:?}");
}

#[test]
fn a_pushed_task_that_is_lost_is_written_off_without_a_probe() {
    let mut bench = Bench::new(Feed::Pushed { reports: false });
    bench.dispatch(3, 1);
    bench.actions();
    bench.tick_at_deadline();
    assert_eq!(bench.worker.stats().written_off, 2);
    bench.dispatch(1, 2);
    assert_eq!((bench.worker.stats().late, bench.worker.stats().written_off), (1, 2));
    assert_eq!(bench.actions(), [], "nothing is asked, and the first task still runs");
}

#[test]
fn pushed_tasks_that_lie_further_back_than_numbers_are_kept_are_written_off_at_once() {
    let mut bench = Bench::new(Feed::Pushed { reports: false });
    bench.dispatch(1, 1);
    // Of the 98 missing numbers, 63 may still come: the window keeps 64 numbers.
    bench.dispatch(100, 2);
    assert_eq!(bench.worker.stats().written_off, 98 - 63);
}

#[test]
fn more_pushed_tasks_than_may_be_held_are_dropped() {
    let mut bench = Bench::new(Feed::Pushed { reports: false });
    (1..=6).for_each(|number| bench.dispatch(number, number));
    let stats = bench.worker.stats();
    assert_eq!((stats.held, stats.dropped), (4, 2));
}

#[test]
fn pushed_tasks_are_dropped_while_no_more_can_be_remembered() {
    let mut bench = Bench::new(Feed::Pushed { reports: false });
    bench.settings.finished_max = 2;
    for number in 1..=6 {
        bench.dispatch(number, number);
        bench.finish(number.into());
    }
    assert_eq!(
        (bench.worker.stats().finished, bench.worker.stats().dropped),
        (6, 0),
        "as many as may be held on top"
    );
    bench.dispatch(7, 7);
    assert_eq!(bench.worker.stats().dropped, 1);
}

#[test]
fn reports_tell_how_much_is_held_after_the_task() {
    let mut bench = Bench::new(Feed::Pushed { reports: true });
    (1..=3).for_each(|number| bench.dispatch(number, number));
    bench.actions();
    for (slot, load) in [(1, 2), (2, 1), (3, 0)] {
        bench.finish(slot);
        let reports = bench.reports();
        assert_eq!(reports.iter().map(|report| report.load).collect::<Vec<_>>(), [load]);
    }
    bench.dispatch(4, 1);
    assert_eq!(bench.reports().len(), 1, "a repeat is answered through the switch too");
}

proptest! {
    /// Packets come twice, late or never: each task runs once, and the worker holds no more than it may.
    #[test]
    fn pushed_tasks_run_once(numbers in prop::collection::vec((1_u32..40, any::<bool>()), 1..100)) {
        let mut bench = Bench::new(Feed::Pushed { reports: true });
        let (mut ran, mut running) = (std::collections::BTreeSet::new(), None);
        for (number, ends) in numbers {
            bench.now = bench.now + Nanos(5_000);
            bench.dispatch(number, number);
            if let Some(slot) = running.take_if(|_| ends) {
                bench.finish(slot);
            }
            bench.worker.tick(bench.now, &bench.settings, &mut bench.out);
            for action in bench.actions() {
                if let Action::Run { slot, task, .. } = action {
                    prop_assert!(ran.insert(task.sequence.0), "{task} runs twice");
                    running = Some(slot);
                }
            }
            prop_assert!(bench.worker.stats().held <= 4);
        }
    }
}

#[test]
fn a_ranked_token_says_how_many_tasks_stand_before_it_where_it_leaves() {
    let mut bench = Bench::new(Feed::Tokens { ranked: true });
    assert_eq!(
        bench.ranks(),
        [0, 1, 2, 3, 4, 5, 6, 7],
        "of an idle worker's, the first brings its next task"
    );
    (1..=3).for_each(|number| bench.dispatch(number, number));
    for left in [2, 1] {
        let slot = bench.run();
        bench.finish(slot);
        let leaves = bench.actions();
        bench.out = leaves.clone();
        assert_eq!(bench.ranks(), [left], "so many wait");
        bench.out = leaves;
    }
    let slot = bench.run();
    bench.finish(slot);
    assert_eq!(bench.ranks(), [0]);
}

#[test]
fn repeated_tokens_say_how_many_tasks_stand_before_them_too() {
    let mut bench = Bench::new(Feed::Tokens { ranked: true });
    bench.dispatch(1, 1);
    bench.actions();
    bench.tick_at_deadline();
    let [Action::ToSwitch(Packet::Probe(Probe { epoch, worker, generation, nonce, .. }))] =
        bench.actions()[..]
    else {
        panic!("no probe")
    };
    let counters = Some(Counters { seen: START.plus(6), sent: START.plus(1) });
    bench.hear(Packet::Answer(Answer { epoch, worker, generation, nonce, counters }));
    assert_eq!(bench.ranks(), [1, 2]);
}

#[test]
fn where_the_switch_does_not_rank_tokens_say_nothing() {
    let mut bench = Bench::new(Feed::TOKENS);
    assert_eq!(bench.ranks(), [0; 8]);
    (1..=3).for_each(|number| bench.dispatch(number, number));
    let slot = bench.run();
    bench.finish(slot);
    assert_eq!(bench.ranks(), [0]);
}

#[test]
fn a_patient_worker_sends_one_token_only_until_enough_tasks_wait_in_the_switch() {
    let mut bench = Bench::with_patience(Feed::TOKENS, 4);
    assert_eq!(bench.tokens(), [1], "nothing is known of the queue");
    bench.dispatch_from_among(1, 1, 3);
    assert_eq!(bench.tokens(), [0; 0], "three are too few");
    bench.finish(1);
    assert_eq!(bench.tokens(), [2]);
    bench.dispatch_from_among(2, 2, 4);
    assert_eq!(bench.tokens(), [3, 4, 5, 6, 7, 8, 9], "all of its quota, with the task that runs");
    bench.dispatch_from_among(3, 3, 0);
    bench.finish(2);
    assert_eq!(bench.tokens(), [0; 0], "none until what it has is spent");
    (4..=9).for_each(|number| bench.dispatch(number, number));
    (3..=8).for_each(|slot| bench.finish(slot));
    assert_eq!(bench.tokens(), [0; 0]);
    bench.finish(9);
    assert_eq!(bench.tokens(), [10]);
}
