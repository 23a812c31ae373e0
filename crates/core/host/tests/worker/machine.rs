//! The worker's behaviour in each situation that the protocol names.

use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{
    Age, Answer, Attempt, ClientId, Counters, Dispatch, Endpoint, Epoch, Generation, Handle, Incarnation,
    Nanos, Nonce, Packet, Payload, Probe, Reply, ReplyStatus, Serial, SliceId, TaskId, TaskType, Token,
    WorkerId,
};

const START: Serial = Serial(u32::MAX - 7);
const RTT: Nanos = Nanos(10_000);
const EPOCH: Epoch = Epoch(50);

/// A worker, its clock, and its actions since the last look.
struct Bench {
    worker: Worker,
    settings: WorkerSettings,
    now: Nanos,
    grant: WorkerRegistration,
    out: Vec<Action>,
}

impl Bench {
    fn new(quota: u8) -> Self {
        let settings = WorkerSettings { first_rtt: RTT, counters_start: START, ..WorkerSettings::default() };
        let (generation, worker) = (Generation(4), WorkerId(2));
        let grant = WorkerRegistration {
            worker,
            epoch: EPOCH,
            generation,
            quota,
            start: START,
            ..WorkerRegistration::default()
        };
        Self { worker: Worker::new(), settings, now: Nanos(1_000_000), grant, out: Vec::new() }
    }

    /// A registered worker that has sent all its tokens.
    fn serving(quota: u8) -> Self {
        let mut bench = Self::new(quota);
        bench.granted();
        assert_eq!(bench.tokens().len(), quota.into());
        bench
    }

    fn granted(&mut self) {
        self.worker.grant(self.now, &self.settings, self.grant, &mut self.out);
    }

    fn later(&mut self, wait: Nanos) {
        self.now = self.now + wait;
    }

    fn tick_after(&mut self, wait: Nanos) {
        self.later(wait);
        self.worker.tick(self.now, &self.settings, &mut self.out);
    }

    /// Advances the clock to the worker's deadline. Returns how long that took.
    fn wait(&mut self) -> Nanos {
        let wait = self.worker.deadline(&self.settings).expect("it waits for something").since(self.now);
        self.tick_after(wait);
        wait
    }

    fn hear(&mut self, packet: Packet) {
        self.worker.packet(self.now, self.now, &self.settings, &packet, &mut self.out);
    }

    /// Delivers the `number`th DISPATCH of this generation: this task, with bytes whose handle is `number`.
    fn dispatch(&mut self, number: u32, sequence: u32, attempt: u16) {
        self.hear(Packet::Dispatch(self.dispatched(number, sequence, attempt)));
    }

    fn dispatched(&self, number: u32, sequence: u32, attempt: u16) -> Dispatch {
        Dispatch {
            epoch: self.grant.epoch,
            worker: self.grant.worker,
            generation: self.grant.generation,
            sent: START.plus(number),
            seen: START.plus(number),
            client: ClientId(9),
            client_at: Endpoint { port: 900 + attempt, ..Endpoint::default() },
            task: task(sequence),
            attempt: Attempt(attempt),
            task_type: TaskType(1),
            payload: Payload { len: 100, handle: Handle(number), ..Payload::EMPTY },
            ..Dispatch::default()
        }
    }

    fn answer(&mut self, nonce: Nonce, counters: Option<(u32, u32)>) {
        let WorkerRegistration { epoch, worker, generation, .. } = self.grant;
        let counters =
            counters.map(|(seen, sent)| Counters { seen: START.plus(seen), sent: START.plus(sent) });
        self.hear(Packet::Answer(Answer { epoch, worker, generation, nonce, counters }));
    }

    fn finish(&mut self, slot: u64, handle: u32) {
        let reply = Payload { len: 50, handle: Handle(handle), ..Payload::EMPTY };
        let (started, done) = (self.now, ReplyStatus::Done);
        self.worker.finished(self.now, &self.settings, slot, started, done, reply, &mut self.out);
    }

    fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.out)
    }

    fn tokens(&mut self) -> Vec<Token> {
        let token = |action| match action {
            Action::ToSwitch(Packet::Token(token)) => Some(token),
            _ => None,
        };
        self.actions().into_iter().filter_map(token).collect()
    }

    fn probe(&mut self) -> Probe {
        match self.actions()[..] {
            [Action::ToSwitch(Packet::Probe(probe))] => probe,
            ref other => panic!("expected one probe, got {other:?}"),
        }
    }

    fn renewals(&mut self) -> usize {
        self.actions().iter().filter(|action| **action == Action::Renew).count()
    }

    fn promised(&self) -> (u32, u32) {
        (self.worker.stats().tokens_out, self.worker.stats().held)
    }
}

fn task(sequence: u32) -> TaskId {
    TaskId { incarnation: Incarnation(33), sequence: Serial(sequence) }
}

fn run(actions: &[Action]) -> Option<(u64, TaskId)> {
    actions.iter().find_map(|action| match action {
        Action::Run { slot, task, .. } => Some((*slot, *task)),
        _ => None,
    })
}

fn replies(actions: &[Action]) -> Vec<(Endpoint, Reply)> {
    let reply = |action: &Action| match action {
        Action::Reply { to, packet } => Some((*to, *packet)),
        _ => None,
    };
    actions.iter().filter_map(reply).collect()
}

#[test]
fn a_grant_brings_as_many_tokens_as_its_quota_and_an_unchanged_one_none() {
    let mut bench = Bench::new(4);
    assert_eq!(bench.worker.deadline(&bench.settings), None);
    bench.granted();
    let issued: Vec<_> = bench.tokens().iter().map(|token| token.issued.since(START)).collect();
    assert_eq!(issued, [1, 2, 3, 4]);
    bench.granted();
    assert_eq!(bench.actions(), []);
}

#[test]
fn no_quota_is_above_what_the_switch_believes() {
    let mut bench = Bench::new(200);
    bench.granted();
    assert_eq!(bench.tokens().len(), 16);
}

#[test]
fn an_older_grant_changes_nothing_and_a_newer_one_starts_the_counters_anew() {
    let mut bench = Bench::serving(2);
    bench.dispatch(1, 1, 1);
    bench.grant.generation = Generation(3);
    bench.grant.quota = 8;
    bench.granted();
    assert_eq!(bench.tokens(), []);
    bench.grant.generation = Generation(5);
    bench.grant.quota = 3;
    bench.granted();
    let tokens = bench.tokens();
    assert_eq!(tokens.len(), 2, "one of three is held");
    assert_eq!((tokens[1].issued.since(START), tokens[1].generation), (2, Generation(5)));
}

#[test]
fn a_newer_epoch_outranks_a_higher_generation() {
    let mut bench = Bench::serving(1);
    bench.grant.epoch = Epoch(EPOCH.0 + 1);
    bench.grant.generation = Generation(1);
    bench.granted();
    assert_eq!(bench.tokens()[0].epoch, Epoch(EPOCH.0 + 1));
}

#[test]
fn a_grant_of_an_older_epoch_changes_nothing_however_high_its_generation() {
    let mut bench = Bench::serving(2);
    bench.dispatch(1, 1, 1);
    bench.actions();
    let present = bench.grant;
    bench.grant =
        WorkerRegistration { epoch: Epoch(EPOCH.0 - 1), generation: Generation(9), quota: 8, ..present };
    bench.granted();
    assert_eq!((bench.actions(), bench.promised()), (vec![], (1, 1)));
    bench.grant = present;
    bench.dispatch(1, 1, 1);
    assert_eq!(bench.worker.stats().duplicates, 1, "its number was not forgotten");
}

#[test]
fn the_reply_leaves_first_then_the_token_then_the_next_task_runs() {
    let mut bench = Bench::serving(2);
    bench.dispatch(1, 1, 1);
    let (slot, first) = run(&bench.actions()).expect("it runs at once");
    assert_eq!(first, task(1));
    bench.dispatch(2, 2, 1);
    assert_eq!(run(&bench.actions()), None, "one runs at a time");
    bench.later(Nanos(500));
    bench.finish(slot, 70);
    match bench.actions()[..] {
        [
            Action::Reply { packet, .. },
            Action::ToSwitch(Packet::Token(token)),
            Action::Release(Handle(1)),
            Action::Run { task: next, .. },
        ] => {
            assert_eq!(
                (packet.task, packet.worker_wait_ns, packet.payload.handle),
                (task(1), 500, Handle(70))
            );
            assert_eq!((token.issued.since(START), next), (3, task(2)));
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_repeat_of_a_finished_task_is_answered_with_the_reply_it_gave() {
    let mut bench = Bench::serving(2);
    bench.dispatch(1, 1, 1);
    bench.finish(1, 70);
    bench.actions();
    bench.dispatch(2, 1, 2);
    let actions = bench.actions();
    let [(to, reply)] = replies(&actions)[..] else { panic!("{actions:?}") };
    assert_eq!((to.port, reply.attempt, reply.status), (902, Attempt(2), ReplyStatus::Done));
    assert_eq!(reply.payload.handle, Handle(70));
    assert!(actions.contains(&Action::Release(Handle(2))));
    assert_eq!((run(&actions), bench.promised()), (None, (2, 0)), "its token was spent and another one sent");
    assert_eq!((bench.worker.stats().repeated_tasks, bench.worker.stats().replies_gone), (1, 0));
}

#[test]
fn a_repeat_of_a_finished_task_whose_reply_is_no_longer_kept_is_told_so() {
    let mut bench = Bench::new(2);
    bench.settings.replies_max = 0;
    bench.granted();
    bench.dispatch(1, 1, 1);
    bench.finish(1, 70);
    assert!(bench.actions().contains(&Action::Forget(Handle(70))));
    bench.dispatch(2, 1, 2);
    let actions = bench.actions();
    assert_eq!(replies(&actions)[0].1.status, ReplyStatus::Gone);
    assert_eq!(run(&actions), None);
    assert_eq!((bench.worker.stats().repeated_tasks, bench.worker.stats().replies_gone), (1, 1));
}

#[test]
fn a_repeat_of_a_held_task_spends_its_token_and_is_answered_when_that_one_ends() {
    let mut bench = Bench::serving(3);
    bench.dispatch(1, 1, 1);
    bench.dispatch(2, 1, 3);
    bench.dispatch(3, 1, 2);
    let actions = bench.actions();
    assert!(replies(&actions).is_empty());
    assert_eq!(bench.promised(), (2, 1));
    bench.finish(1, 70);
    let actions = bench.actions();
    let [(to, reply)] = replies(&actions)[..] else { panic!("{actions:?}") };
    assert_eq!((to.port, reply.attempt), (903, Attempt(3)), "the newest attempt");
    assert_eq!(run(&actions), None);
}

#[test]
fn a_duplicate_is_dropped_and_its_bytes_given_back() {
    let mut bench = Bench::serving(2);
    bench.dispatch(1, 1, 1);
    bench.actions();
    bench.dispatch(1, 1, 1);
    assert_eq!(bench.actions(), [Action::Release(Handle(1))]);
    assert_eq!(bench.promised(), (1, 1));
}

#[test]
fn a_missing_dispatch_is_written_off_after_four_round_trips_and_run_on_top_when_it_comes_after_all() {
    let mut bench = Bench::serving(2);
    bench.dispatch(2, 2, 1);
    bench.actions();
    assert_eq!(bench.promised(), (1, 1));
    bench.tick_after(RTT.times(4) - Nanos(1));
    assert_eq!(bench.worker.stats().written_off, 0);
    bench.actions();
    bench.tick_after(Nanos(1));
    assert_eq!(bench.tokens().len(), 1);
    bench.dispatch(1, 1, 1);
    assert_eq!(bench.promised(), (1, 2), "late ones come on top");
    bench.finish(1, 70);
    assert_eq!(run(&bench.actions()).map(|(_, task)| task), Some(task(1)));
    assert_eq!(bench.promised(), (1, 1), "and bring no token of their own");
    assert_eq!(bench.worker.stats().written_off, 1);
}

/// A worker whose PROBE's answer lay in the switch for `stalled` and said that a DISPATCH is missing.
fn after_a_stall(stalled: Nanos) -> Bench {
    let mut bench = Bench::serving(2);
    bench.wait();
    let probe = bench.probe();
    bench.later(stalled);
    bench.answer(probe.nonce, Some((2, 1)));
    assert_eq!((bench.worker.stats().rtt, bench.promised()), (stalled, (2, 0)));
    bench.actions();
    bench
}

#[test]
fn a_switch_that_stood_still_keeps_no_missing_dispatch_from_being_written_off() {
    for (stalled_ms, after_ms) in [(1, 4), (6, 10), (50, 50)] {
        let mut bench = after_a_stall(Nanos::from_millis(stalled_ms));
        bench.tick_after(Nanos::from_millis(after_ms) - Nanos(1));
        assert_eq!(bench.worker.stats().written_off, 0, "{stalled_ms} ms");
        bench.actions();
        bench.tick_after(Nanos(1));
        assert_eq!((bench.tokens().len(), bench.worker.stats().written_off), (1, 1), "{stalled_ms} ms");
    }
}

#[test]
fn a_missing_dispatch_is_written_off_once_so_many_came_after_it_that_its_number_is_forgotten() {
    let mut bench = Bench::serving(2);
    for number in 2..=64 {
        bench.dispatch(number, number, 1);
        bench.finish(u64::from(number) - 1, 70);
    }
    assert_eq!(bench.worker.stats().written_off, 0);
    bench.dispatch(65, 65, 1);
    assert_eq!(bench.worker.stats().written_off, 1);
}

#[test]
fn late_dispatches_beyond_what_may_be_held_are_dropped() {
    let mut bench = Bench::serving(2);
    bench.settings.held_max = 1;
    bench.dispatch(2, 2, 1);
    bench.tick_after(RTT.times(4));
    bench.actions();
    bench.dispatch(1, 1, 1);
    assert_eq!(bench.actions(), [Action::Release(Handle(1))]);
    assert_eq!(bench.worker.stats().dropped, 1);
}

#[test]
fn an_older_generations_dispatch_is_run_and_held_but_spends_no_token() {
    let mut bench = Bench::serving(2);
    let old = bench.dispatched(1, 1, 1);
    bench.grant.generation = Generation(5);
    bench.granted();
    bench.actions();
    bench.hear(Packet::Dispatch(old));
    assert_eq!(run(&bench.actions()).map(|(_, task)| task), Some(task(1)));
    assert_eq!(bench.promised(), (2, 1));
}

#[test]
fn a_dispatch_meant_for_an_earlier_life_is_dropped() {
    let mut bench = Bench::new(2);
    let mut old = bench.dispatched(1, 1, 1);
    bench.hear(Packet::Dispatch(old));
    assert_eq!(bench.actions(), [Action::Release(Handle(1))], "it is not registered yet");
    bench.granted();
    bench.actions();
    old.generation = Generation(3);
    bench.hear(Packet::Dispatch(old));
    assert_eq!(bench.actions(), [Action::Release(Handle(1))]);
}

#[test]
fn a_dispatch_that_no_honest_switch_can_have_sent_is_dropped() {
    let mut bench = Bench::serving(2);
    bench.dispatch(3, 1, 1);
    assert_eq!(bench.actions(), [Action::Release(Handle(3))]);
    let stray =
        Reply { payload: Payload { len: 9, handle: Handle(8), ..Payload::EMPTY }, ..Reply::default() };
    bench.hear(Packet::Reply(stray));
    assert_eq!(bench.actions(), [Action::Release(Handle(8))]);
    assert_eq!(bench.promised(), (2, 0));
}

#[test]
fn silence_is_probed_after_three_round_trips_then_ever_later_up_to_the_longest_busy_interval() {
    let mut bench = Bench::serving(2);
    let waits: Vec<_> = (0..10).map(|_| bench.wait().0 / RTT.0).collect();
    assert_eq!(waits, [3, 6, 12, 24, 48, 96, 192, 384, 768, 1_000]);
}

#[test]
fn a_long_round_trip_holds_probes_apart() {
    let mut bench = Bench::new(1);
    bench.settings.probe_max_busy = RTT;
    bench.granted();
    let waits: Vec<_> = (0..3).map(|_| bench.wait().0 / RTT.0).collect();
    assert_eq!(waits, [2, 2, 2]);
}

#[test]
fn an_answer_after_long_silence_is_followed_up_within_the_longest_busy_interval() {
    let mut bench = Bench::serving(2);
    let mut nonces = Vec::new();
    for _ in 0..40 {
        assert!(bench.wait() <= bench.settings.probe_max_busy);
        nonces.extend(bench.actions().into_iter().filter_map(|action| match action {
            Action::ToSwitch(Packet::Probe(probe)) => Some(probe.nonce),
            _ => None,
        }));
    }
    bench.answer(*nonces.last().expect("silence is probed"), Some((1, 0)));
    assert_eq!(bench.tokens().len(), 1, "one of two was lost");
    assert!(bench.wait() <= bench.settings.probe_max_busy, "so may be its repeat");
}

#[test]
fn an_answer_that_all_tokens_are_parked_brings_the_longest_interval() {
    let mut bench = Bench::serving(2);
    bench.wait();
    let nonce = bench.probe().nonce;
    bench.later(RTT);
    bench.answer(nonce, Some((2, 0)));
    assert_eq!(bench.actions(), []);
    assert_eq!(bench.worker.deadline(&bench.settings), Some(bench.now + bench.settings.probe_longest));
    assert_eq!(bench.worker.stats().rtt, RTT);
    bench.wait();
    bench.probe();
    assert_eq!(bench.wait(), RTT.times(3), "an unanswered one is followed up soon");
}

#[test]
fn lost_tokens_are_repeated_one_each() {
    let mut bench = Bench::serving(4);
    bench.wait();
    let nonce = bench.probe().nonce;
    bench.later(RTT);
    bench.answer(nonce, Some((1, 0)));
    let tokens = bench.tokens();
    assert_eq!(tokens.len(), 3);
    assert_eq!((bench.worker.stats().probes, bench.worker.stats().repeated_tokens), (1, 3));
    assert!(tokens.iter().all(|token| token.issued == START.plus(4)), "repeats issue nothing");
    assert_eq!(bench.promised(), (4, 0));
    bench.answer(nonce, Some((1, 0)));
    assert_eq!(bench.tokens(), [], "an answer counts once");
}

#[test]
fn a_dispatch_that_tells_of_lost_tokens_brings_repeats_only_after_a_round_trip() {
    let mut bench = Bench::serving(4);
    bench.later(RTT);
    bench.dispatch(1, 1, 1);
    assert_eq!(bench.tokens(), []);
    bench.later(RTT.times(2));
    bench.dispatch(2, 2, 1);
    assert_eq!(bench.tokens().len(), 2);
}

#[test]
fn a_lost_token_does_not_hide_behind_traffic() {
    let mut bench = Bench::serving(2);
    let end = bench.now + bench.settings.probe_max_busy;
    let mut number = 0;
    while bench.now < end {
        number += 1;
        bench.later(RTT);
        bench.dispatch(number, number, 1);
        let (slot, _) = run(&bench.actions()).expect("it is idle");
        bench.finish(slot, 1_000 + number);
        bench.worker.tick(bench.now, &bench.settings, &mut bench.out);
    }
    let probe = bench.actions().into_iter().find_map(|action| match action {
        Action::ToSwitch(Packet::Probe(probe)) => Some(probe.nonce),
        _ => None,
    });
    bench.later(RTT);
    bench.answer(probe.expect("it asks in spite of what it hears"), Some((number + 1, number)));
    assert_eq!(bench.tokens().len(), 1);
}

#[test]
fn three_unanswered_probes_ask_for_the_registration_and_three_further_ask_again() {
    let mut bench = Bench::serving(1);
    let renewals: Vec<_> = (0..10)
        .map(|_| {
            bench.wait();
            bench.renewals()
        })
        .collect();
    assert_eq!(renewals, [0, 0, 0, 1, 0, 0, 1, 0, 0, 1]);
}

#[test]
fn a_closed_answer_stops_the_tokens_and_asks_for_the_registration_without_a_storm() {
    let mut bench = Bench::serving(2);
    bench.dispatch(1, 1, 1);
    bench.actions();
    let mut renewals = 0;
    let end = bench.now + bench.settings.probe_max_busy.times(10);
    while bench.now < end {
        bench.wait();
        let nonce = bench.probe().nonce;
        bench.answer(nonce, None);
        renewals += bench.renewals();
    }
    assert!((2..=11).contains(&renewals), "{renewals} in ten longest busy intervals");
    bench.finish(1, 70);
    assert_eq!(bench.tokens(), []);
    bench.grant.generation = Generation(5);
    bench.granted();
    assert_eq!(bench.tokens().len(), 2);
}

#[test]
fn an_answer_of_a_newer_generation_asks_for_it_and_one_of_an_older_says_nothing() {
    let mut bench = Bench::serving(1);
    bench.wait();
    let nonce = bench.probe().nonce;
    bench.grant.generation = Generation(3);
    bench.answer(nonce, Some((0, 0)));
    assert_eq!(bench.actions(), []);
    bench.grant.generation = Generation(5);
    bench.answer(nonce, Some((0, 0)));
    assert_eq!(bench.actions(), [Action::Renew]);
}

#[test]
fn an_answer_does_not_bring_back_a_worker_that_leaves() {
    let mut bench = Bench::serving(2);
    bench.wait();
    let nonce = bench.probe().nonce;
    bench.worker.leave();
    bench.dispatch(1, 1, 1);
    bench.finish(1, 70);
    bench.actions();
    bench.answer(nonce, Some((2, 1)));
    assert_eq!((bench.tokens(), bench.worker.stats().serving), (vec![], false));
}

#[test]
fn a_worker_whose_registration_stands_on_nothing_sends_no_tokens_until_the_next_grant() {
    let mut bench = Bench::serving(2);
    bench.worker.suspend();
    bench.dispatch(1, 1, 1);
    bench.finish(1, 70);
    assert_eq!((bench.tokens(), bench.worker.stats().serving), (vec![], false));
    bench.granted();
    assert_eq!(bench.tokens().len(), 1);
    bench.worker.leave();
    bench.worker.suspend();
    bench.dispatch(2, 2, 1);
    bench.finish(2, 71);
    bench.granted();
    assert_eq!(bench.tokens(), [], "it leaves as before");
}

#[test]
fn an_answer_to_a_question_never_asked_says_nothing() {
    let mut bench = Bench::serving(1);
    bench.answer(Nonce(START.0.wrapping_add(2)), None);
    bench.answer(Nonce(START.0), None);
    assert_eq!(bench.actions(), []);
    assert!(bench.worker.stats().serving);
}

#[test]
fn a_lowered_quota_binds_as_tokens_are_spent_and_a_raised_one_at_once() {
    let mut bench = Bench::serving(3);
    bench.grant.quota = 1;
    bench.granted();
    bench.dispatch(1, 1, 1);
    bench.finish(1, 70);
    bench.dispatch(2, 2, 1);
    bench.finish(2, 71);
    assert_eq!(bench.tokens(), []);
    assert_eq!(bench.promised(), (1, 0));
    bench.grant.quota = 4;
    bench.granted();
    assert_eq!(bench.tokens().len(), 3);
}

#[test]
fn a_depth_that_the_agent_sets_is_kept_within_what_a_worker_may_have() {
    for (depth, tokens) in [(0, 1), (5, 5), (9, 8)] {
        let mut bench = Bench::serving(1);
        bench.worker.set_quota(depth);
        bench.tick_after(Nanos(0));
        assert_eq!((bench.tokens().len(), bench.promised()), (tokens as usize - 1, (tokens, 0)));
    }
}

#[test]
fn the_agent_hears_what_a_task_waited_for_and_how_long_it_took() {
    let mut bench = Bench::serving(2);
    assert!(bench.worker.sample(bench.now, bench.now).is_none(), "nothing runs");
    bench.hear(Packet::Dispatch(Dispatch { wait_ns: 30, occupancy: 4, ..bench.dispatched(1, 1, 1) }));
    let started = bench.now + Nanos(5);
    let sample = bench.worker.sample(started + Nanos(7), started).expect("it runs");
    let waits = (sample.switch_wait, sample.occupancy, sample.worker_wait, sample.service);
    assert_eq!(waits, (Nanos(30), 4, Nanos(5), Nanos(7)));
}

#[test]
fn where_its_tokens_go_is_known_once_it_is_registered() {
    let mut bench = Bench::new(1);
    bench.grant.slice = SliceId(3);
    assert_eq!(bench.worker.slice(), None);
    bench.granted();
    assert_eq!(bench.worker.slice(), Some(SliceId(3)));
}

#[test]
fn while_the_table_of_finished_tasks_is_full_no_token_is_sent() {
    let mut bench = Bench::new(2);
    bench.settings.finished_max = 2;
    bench.granted();
    for number in 1..=2 {
        bench.dispatch(number, number, 1);
        bench.finish(number.into(), 70 + number);
    }
    assert_eq!(bench.tokens().len(), 2, "those of the grant");
    assert_eq!(bench.promised(), (0, 0));
    assert_eq!(bench.wait(), bench.settings.retry_horizon);
    assert_eq!(bench.tokens().len(), 2);
}

#[test]
fn a_repeat_that_was_received_during_a_long_run_is_known_when_the_run_is_over() {
    let mut bench = Bench::serving(3);
    bench.dispatch(1, 1, 1);
    bench.finish(1, 70);
    bench.dispatch(2, 2, 1);
    bench.actions();
    bench.later(bench.settings.retry_horizon.times(2));
    bench.finish(2, 71);
    bench.dispatch(3, 1, 2);
    assert!(!bench.actions().iter().any(|action| matches!(action, Action::Run { .. })), "it ran before");
    bench.tick_after(Nanos(0));
    assert_eq!(bench.worker.stats().table, 1, "and is forgotten once everything received was taken");
}

#[test]
fn a_task_so_old_that_it_may_have_been_run_and_forgotten_is_not_run() {
    let mut bench = Bench::serving(4);
    bench.dispatch(1, 1, 1);
    bench.finish(1, 70);
    let finished = bench.now;
    bench.wait();
    bench.tick_after(bench.settings.retry_horizon);
    assert_eq!(bench.worker.stats().table, 0, "forgotten");
    bench.actions();
    let since = bench.now - finished;
    let transit = bench.settings.transit;
    let aged = |bench: &Bench, number, age| Dispatch { age, ..bench.dispatched(number, number, 2) };
    for (number, age) in [(2, Age::of(since)), (3, Age::of(since - transit)), (4, Age::MAX)] {
        bench.hear(Packet::Dispatch(aged(&bench, number, age)));
        let actions = bench.actions();
        let [(_, reply)] = replies(&actions)[..] else { panic!("{actions:?}") };
        assert_eq!((reply.status, reply.attempt), (ReplyStatus::Old, Attempt(2)));
        assert_eq!(run(&actions), None);
        assert!(actions.contains(&Action::Release(Handle(number))));
        assert_eq!(bench.promised(), (4, 0), "its token was spent and another one sent");
    }
    let younger = Age::of(since - transit - Nanos::from_millis(1));
    bench.hear(Packet::Dispatch(aged(&bench, 5, younger)));
    assert!(run(&bench.actions()).is_some(), "what it remembers reaches back beyond this one's birth");
    assert_eq!(bench.worker.stats().too_old, 3);
}

#[test]
fn a_worker_that_has_forgotten_nothing_runs_a_task_of_any_age() {
    let mut bench = Bench::serving(2);
    bench.hear(Packet::Dispatch(Dispatch { age: Age::MAX, ..bench.dispatched(1, 1, 1) }));
    assert!(run(&bench.actions()).is_some());
}

#[test]
fn a_worker_that_leaves_is_done_when_the_last_task_came_and_ended() {
    let mut bench = Bench::serving(2);
    bench.worker.leave();
    bench.worker.left(bench.now, Some(START.plus(1)));
    assert!(!bench.worker.is_done(bench.now, &bench.settings));
    bench.dispatch(1, 1, 1);
    assert!(!bench.worker.is_done(bench.now, &bench.settings), "it holds one");
    bench.finish(1, 70);
    assert_eq!(bench.tokens(), []);
    assert!(bench.worker.is_done(bench.now, &bench.settings));
}

#[test]
fn a_worker_that_leaves_does_not_wait_for_a_lost_task_beyond_the_time_of_reordering() {
    let mut bench = Bench::serving(2);
    bench.worker.leave();
    bench.granted();
    assert_eq!(bench.actions(), [], "a grant that comes too late");
    bench.worker.left(bench.now, None);
    assert_eq!(bench.wait(), RTT.times(4));
    assert!(bench.worker.is_done(bench.now, &bench.settings));
    assert_eq!(bench.worker.deadline(&bench.settings), None);
}

#[test]
fn the_end_of_a_run_that_is_not_the_present_one_only_gives_the_bytes_back() {
    let mut bench = Bench::serving(1);
    bench.finish(9, 70);
    assert_eq!(bench.actions(), [Action::Forget(Handle(70))]);
    bench.dispatch(1, 1, 1);
    bench.actions();
    bench.finish(9, 71);
    assert_eq!(bench.actions(), [Action::Forget(Handle(71))]);
    assert_eq!(bench.promised(), (0, 1));
}

#[test]
fn refusals_ask_for_the_registration_at_once_but_not_each_time() {
    let mut bench = Bench::serving(1);
    for _ in 0..5 {
        bench.worker.refused(bench.now, &bench.settings, &mut bench.out);
    }
    assert_eq!(bench.renewals(), 1);
}
