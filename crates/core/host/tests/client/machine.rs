//! The client's behaviour in each situation that the protocol names.

use sluice_host::client::{
    Action, Busy, Client, ClientSettings, Outcome, RefusedWhy, Submission, UnknownWhy, Urgency,
};
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{
    Age, Attempt, BytesOf, ClientId, Endpoint, Epoch, Handle, Incarnation, Key, Nanos, Need, Notice, Packet,
    Part, Payload, Reject, RejectReason, Reply, ReplyStatus, Serial, SliceId, SliceLoad, Submit, TaskId,
    TaskType,
};

const ME: Incarnation = Incarnation(0xfeed);
pub(super) const GET: TaskType = TaskType(1);
const SCAN: TaskType = TaskType(2);
pub(super) const SECOND: u64 = 1_000;

/// A client, its clock in milliseconds, and its actions since the last look.
pub(super) struct Bench {
    pub(super) client: Client,
    settings: ClientSettings,
    now: Nanos,
    out: Vec<Action>,
}

impl Bench {
    pub(super) fn new() -> Self {
        let client = Client::new(ME, Serial(u32::MAX - 7));
        Self { client, settings: ClientSettings::default(), now: Nanos::from_millis(1), out: Vec::new() }
    }

    pub(super) fn registered() -> Self {
        let mut bench = Self::new();
        bench.grant(grant(5));
        bench
    }

    fn without_budget() -> Self {
        let mut bench = Self::registered();
        bench.settings.retry_burst = 0;
        bench
    }

    pub(super) fn grant(&mut self, grant: ClientRegistration) {
        self.client.grant(self.now, &self.settings, grant, &mut self.out);
    }

    fn offer(&mut self, task_type: TaskType, retry: bool) -> Result<TaskId, Busy> {
        let deadline = self.now + Nanos::from_millis(5 * SECOND);
        let payload = Payload { len: 100, inline: [0; 8], handle: Handle(7) };
        let submission = Submission {
            task_type,
            urgency: Urgency::Unstated,
            payload,
            deadline,
            retry,
            tag: 42,
            ..Submission::default()
        };
        self.client.submit(self.now, &self.settings, submission, &mut self.out)
    }

    /// Submits a GET and returns its first attempt.
    pub(super) fn submit(&mut self) -> Submit {
        self.offer(GET, true).expect("the share has room");
        self.sent().pop().expect("a task that was taken is sent")
    }

    pub(super) fn hear(&mut self, packet: Packet) {
        self.client.packet(self.now, &self.settings, &packet, &mut self.out);
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now + Nanos::from_millis(ms);
        self.client.tick(self.now, &self.settings, &mut self.out);
    }

    /// Advances the clock from deadline to deadline.
    pub(super) fn run(&mut self, ms: u64) {
        let end = self.now + Nanos::from_millis(ms);
        while let Some(at) = self.client.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.client.tick(self.now, &self.settings, &mut self.out);
        }
        self.now = end;
    }

    pub(super) fn sent(&mut self) -> Vec<Submit> {
        let sent = self.out.iter().filter_map(|action| match action {
            Action::ToSwitch(submit) => Some(*submit),
            _ => None,
        });
        let sent = sent.collect();
        self.out.retain(|action| !matches!(action, Action::ToSwitch(_)));
        sent
    }

    fn renewals(&mut self) -> usize {
        let before = self.out.len();
        self.out.retain(|action| !matches!(action, Action::Renew));
        before - self.out.len()
    }

    pub(super) fn outcomes(&mut self) -> Vec<Outcome> {
        let outcomes = self.out.iter().filter_map(|action| match action {
            Action::Done { outcome, .. } => Some(*outcome),
            _ => None,
        });
        let outcomes = outcomes.collect();
        self.out.retain(|action| !matches!(action, Action::Done { .. }));
        outcomes
    }
}

pub(super) fn grant(epoch: u32) -> ClientRegistration {
    ClientRegistration {
        client: ClientId(3),
        key: Key(epoch * 100),
        epoch: Epoch(epoch),
        switch: Endpoint::default(),
        replay_cells: 16,
        slices: vec![(GET, SliceId(0)), (SCAN, SliceId(1))],
        shares: vec![(SliceId(0), 8), (SliceId(1), 2)],
        classes: 1,
        jobs: 1,
        sizes: Vec::new(),
        retry_for: Nanos::from_millis(5_000),
    }
}

fn age(ms: u64) -> Age {
    Age::of(Nanos::from_millis(ms))
}

pub(super) fn reply(to: &Submit) -> Packet {
    reply_with(to, ReplyStatus::Done)
}

fn reply_with(to: &Submit, status: ReplyStatus) -> Packet {
    let Submit { epoch, client, task, attempt, task_type, .. } = *to;
    Packet::Reply(Reply { epoch, client, task, attempt, task_type, status, ..Reply::default() })
}

pub(super) fn reject(to: &Submit, hint_ms: u64) -> Packet {
    let Submit { epoch, client, task, attempt, task_type, .. } = *to;
    let retry_after_ns = Nanos::from_millis(hint_ms).saturated();
    let (reason, behind, load) = (RejectReason::QueueFull, 0, SliceLoad::default());
    Packet::Reject(Reject { epoch, client, task, attempt, task_type, reason, behind, retry_after_ns, load })
}

fn notice(to: &Submit, epoch: u32) -> Packet {
    Packet::Notice(Notice { epoch: Epoch(epoch), client: to.client, task: to.task, attempt: to.attempt })
}

/// The REJECT of a type that no slice takes; it names no retry time.
fn no_slice(to: &Submit) -> Packet {
    let Packet::Reject(of_room) = reject(to, 0) else { panic!("no REJECT") };
    Packet::Reject(Reject { reason: RejectReason::UnknownType, ..of_room })
}

pub(super) const REJECTED: Outcome = Outcome::Refused(RefusedWhy::Rejected(RejectReason::QueueFull));
pub(super) const TOO_LATE: Outcome = Outcome::Unknown(UnknownWhy::Deadline);

#[test]
fn a_reply_ends_the_task_once_and_frees_its_bytes() {
    let mut bench = Bench::registered();
    let submit = bench.submit();
    assert_eq!((submit.epoch, submit.key, submit.attempt), (Epoch(5), Key(500), Attempt(1)));
    bench.hear(reply(&submit));
    assert!(
        matches!(bench.out[..], [Action::Done { tag: 42, attempts: 1, .. }, Action::Release(Handle(7))]),
        "{:?}",
        bench.out
    );
    bench.out.clear();
    bench.hear(reply(&submit));
    bench.run(10 * SECOND);
    assert_eq!(bench.out, []);
    assert_eq!((bench.client.outstanding(), bench.client.stats().late), (0, 1));
    assert_eq!(bench.client.deadline(), None);
}

#[test]
fn a_failed_service_is_a_reply_and_a_reply_that_is_gone_is_unknown() {
    let mut bench = Bench::registered();
    let (failed, gone) = (bench.submit(), bench.submit());
    bench.hear(reply_with(&failed, ReplyStatus::Failed));
    bench.hear(reply_with(&gone, ReplyStatus::Gone));
    let outcomes = bench.outcomes();
    assert!(matches!(outcomes[0], Outcome::Reply(Reply { status: ReplyStatus::Failed, .. })));
    assert_eq!(outcomes[1], Outcome::Unknown(UnknownWhy::ReplyGone));
}

#[test]
fn without_a_registration_tasks_are_pushed_back() {
    let mut bench = Bench::new();
    assert_eq!(bench.offer(GET, true), Err(Busy::NotRegistered));
    assert_eq!((bench.out.len(), bench.client.deadline()), (0, None));
    assert_eq!(bench.client.stats().pushed_back, 1);
}

#[test]
fn a_task_whose_deadline_has_passed_is_refused_without_being_sent_even_when_not_registered() {
    let mut bench = Bench::new();
    let submission = Submission {
        task_type: GET,
        urgency: Urgency::Unstated,
        payload: Payload { len: 9, inline: [0; 8], handle: Handle(1) },
        deadline: bench.now,
        retry: true,
        tag: 1,
        ..Submission::default()
    };
    let task = bench.client.submit(bench.now, &bench.settings, submission, &mut bench.out).expect("taken");
    let outcome = Outcome::Refused(RefusedWhy::NeverSent);
    let done = Action::Done { tag: 1, task, attempts: 0, outcome };
    assert_eq!(bench.out, [done, Action::Release(Handle(1))]);
}

#[test]
fn each_slice_has_its_own_share() {
    let mut bench = Bench::registered();
    for _ in 0..8 {
        bench.submit();
    }
    assert_eq!(bench.offer(GET, true), Err(Busy::ShareSpent));
    assert!(bench.offer(SCAN, true).is_ok() && bench.offer(SCAN, true).is_ok());
    assert_eq!(bench.offer(SCAN, true), Err(Busy::ShareSpent));
}

#[test]
fn whatever_ends_a_task_frees_its_share() {
    let mut bench = Bench::registered();
    for end in [reply, |to: &Submit| reject(to, 1), |to: &Submit| reply_with(to, ReplyStatus::Gone)] {
        for _ in 0..8 {
            bench.offer(GET, false).expect("the share is free again");
        }
        assert_eq!(bench.offer(GET, false), Err(Busy::ShareSpent));
        bench.sent().iter().for_each(|submit| bench.hear(end(submit)));
        assert_eq!(bench.outcomes().len(), 8);
    }
    (0..8).for_each(|_| _ = bench.offer(GET, false).expect("the share is free again"));
    bench.run(10 * SECOND);
    assert_eq!(bench.outcomes(), [TOO_LATE; 8]);
    assert!(bench.offer(GET, false).is_ok());
}

#[test]
fn a_type_that_no_slice_serves_is_sent_on_a_share_of_its_own() {
    let mut bench = Bench::registered();
    bench.settings.unmapped_share = 1;
    bench.grant(ClientRegistration { shares: vec![(SliceId(0), 8)], ..grant(5) });
    assert!(bench.offer(TaskType(9), true).is_ok());
    assert_eq!(bench.offer(TaskType(10), true), Err(Busy::ShareSpent));
    assert_eq!(bench.offer(SCAN, true), Err(Busy::ShareSpent), "its slice has no share");
    assert!(bench.offer(GET, true).is_ok());
}

#[test]
fn a_type_that_no_slice_takes_is_refused_at_once_and_not_tried_again() {
    let mut bench = Bench::registered();
    bench.offer(TaskType(9), true).expect("it has a share of its own");
    let submit = bench.sent().pop().expect("it is sent");
    bench.hear(no_slice(&submit));
    let why = RefusedWhy::NoSlice(TaskType(9));
    assert_eq!(bench.outcomes(), [Outcome::Refused(why)]);
    assert!(why.to_string().starts_with("no slice takes type 9: "), "{why}");
    bench.run(10 * SECOND);
    assert_eq!(bench.sent(), []);
    assert_eq!(bench.client.stats().retries_paid, 0);
}

#[test]
fn a_type_that_no_slice_takes_any_more_is_not_refused_while_an_earlier_try_may_have_run() {
    let mut bench = Bench::registered();
    bench.submit();
    bench.run(100);
    let again = bench.sent().pop().expect("it timed out");
    bench.hear(no_slice(&again));
    assert_eq!(bench.outcomes(), []);
    bench.run(10 * SECOND);
    assert_eq!(bench.outcomes(), [TOO_LATE]);
}

#[test]
fn a_share_that_shrinks_takes_nothing_new_until_enough_has_ended() {
    let mut bench = Bench::registered();
    let tasks: Vec<Submit> = (0..4).map(|_| bench.submit()).collect();
    bench.grant(ClientRegistration { shares: vec![(SliceId(0), 3)], ..grant(5) });
    assert_eq!(bench.sent(), [], "an unchanged registration sends nothing again");
    for task in &tasks[..2] {
        assert_eq!(bench.offer(GET, true), Err(Busy::ShareSpent));
        bench.hear(reply(task));
    }
    assert!(bench.offer(GET, true).is_ok());
}

#[test]
fn a_type_that_moves_to_another_slice_is_charged_there() {
    let mut bench = Bench::registered();
    bench.submit();
    bench.submit();
    bench.grant(ClientRegistration { slices: vec![(GET, SliceId(1)), (SCAN, SliceId(1))], ..grant(5) });
    assert_eq!(bench.offer(SCAN, true), Err(Busy::ShareSpent));
}

#[test]
fn residues_of_outstanding_tasks_are_skipped_across_the_wrap() {
    let mut bench = Bench::registered();
    bench.grant(ClientRegistration { replay_cells: 4, ..grant(5) });
    let stuck = bench.submit();
    for _ in 0..40 {
        let submit = bench.submit();
        assert_ne!(submit.task.sequence.0 % 4, stuck.task.sequence.0 % 4);
        bench.hear(reply(&submit));
        bench.outcomes();
    }
    assert_eq!(bench.client.floor(), stuck.task.sequence);
    for _ in 0..3 {
        bench.submit();
    }
    assert_eq!(bench.offer(GET, true), Err(Busy::CellsSpent));
}

#[test]
fn without_outstanding_tasks_the_floor_is_the_next_sequence() {
    let mut bench = Bench::registered();
    assert_eq!(bench.client.floor(), Serial(u32::MAX - 7));
    let submit = bench.submit();
    bench.hear(reply(&submit));
    assert_eq!(bench.client.floor(), Serial(u32::MAX - 6));
}

#[test]
fn silence_is_answered_by_retries_whose_timeouts_double() {
    let mut bench = Bench::registered();
    let first = bench.submit();
    let (mut waited, mut age_ms) = (50, 0);
    for attempt in 2..=6 {
        bench.wait(waited - 1);
        assert_eq!(bench.sent(), []);
        bench.wait(1);
        age_ms += waited;
        assert_eq!(bench.sent(), [Submit { attempt: Attempt(attempt), age: age(age_ms), ..first }]);
        waited *= 2;
    }
}

#[test]
fn with_the_budget_spent_a_silent_task_is_tried_again_once_per_backed_off_timeout() {
    let mut bench = Bench::without_budget();
    bench.submit();
    bench.run(149);
    assert_eq!(bench.sent(), [], "the first timeout was not backed off");
    bench.run(1);
    assert_eq!(bench.sent().len(), 1);
    bench.run(199);
    assert_eq!(bench.sent(), []);
    bench.run(1);
    assert_eq!(bench.sent().len(), 1);
    assert_eq!((bench.client.stats().retries_probing, bench.client.stats().retries_paid), (2, 0));
}

#[test]
fn the_budget_is_a_tenth_of_the_tasks_sent() {
    let mut bench = Bench::registered();
    bench.settings.retry_burst = 2;
    bench.grant(ClientRegistration {
        replay_cells: 1 << 10,
        shares: vec![(SliceId(0), 1 << 10)],
        ..grant(5)
    });
    for _ in 0..2 {
        let submit = bench.submit();
        bench.hear(reject(&submit, 0));
    }
    bench.wait(0);
    bench.sent();
    for _ in 0..100 {
        let submit = bench.submit();
        bench.hear(reject(&submit, 0));
    }
    assert_eq!(bench.outcomes().len(), 90);
    bench.wait(0);
    assert_eq!(bench.sent().len(), 10);
}

#[test]
fn a_deadline_with_an_unanswered_attempt_is_unknown() {
    let mut bench = Bench::registered();
    bench.submit();
    bench.run(5 * SECOND - 1);
    assert_eq!(bench.outcomes(), []);
    bench.run(1);
    assert_eq!(bench.outcomes(), [TOO_LATE]);
    assert_eq!(bench.client.deadline(), None);
}

#[test]
fn a_reply_to_an_older_attempt_is_accepted_and_one_to_an_attempt_never_made_is_not() {
    let mut bench = Bench::registered();
    let first = bench.submit();
    bench.wait(50);
    for attempt in [0, 3, u16::MAX] {
        bench.hear(reply(&Submit { attempt: Attempt(attempt), ..first }));
    }
    assert_eq!((bench.outcomes().len(), bench.client.stats().foreign), (0, 3));
    bench.hear(reply(&first));
    assert!(matches!(bench.outcomes()[..], [Outcome::Reply(_)]));
}

#[test]
fn packets_of_another_start_of_this_client_change_nothing() {
    let mut bench = Bench::registered();
    let submit = bench.submit();
    let task = TaskId { incarnation: Incarnation(1), ..submit.task };
    let other = Submit { task, epoch: Epoch(9), ..submit };
    for packet in [reply(&other), reject(&other, 0), notice(&other, 9), Packet::Submit(submit)] {
        bench.hear(packet);
    }
    assert_eq!((bench.out.len(), bench.client.stats().foreign), (0, 4));
}

#[test]
fn a_reject_is_retried_after_its_hint() {
    let mut bench = Bench::registered();
    let first = bench.submit();
    bench.hear(reject(&first, 3));
    bench.wait(2);
    assert_eq!(bench.sent(), []);
    bench.wait(1);
    assert_eq!(bench.sent(), [Submit { attempt: Attempt(2), age: age(3), ..first }]);
}

#[test]
fn a_reject_of_several_tasks_is_one_of_each_of_them_and_of_no_other() {
    let mut bench = Bench::registered();
    let tasks: Vec<Submit> = (0..4).map(|_| bench.submit()).collect();
    let Packet::Reject(of_one) = reject(&tasks[1], 3) else { panic!("no REJECT") };
    bench.hear(Packet::Reject(Reject { behind: 1, ..of_one }));
    bench.wait(3);
    let again = |task: Submit| Submit { attempt: Attempt(2), age: age(3), ..task };
    assert_eq!(bench.sent(), [again(tasks[1]), again(tasks[2])]);
    assert_eq!(bench.client.stats().rejects, 2);
}

#[test]
fn a_reject_that_the_network_doubles_counts_once() {
    let mut bench = Bench::registered();
    bench.settings.retry_burst = 1;
    let first = bench.submit();
    bench.hear(reject(&first, 3));
    bench.hear(reject(&first, 3));
    assert_eq!(bench.outcomes(), [], "the second would have found the budget spent");
    bench.wait(3);
    let second = bench.sent().pop().expect("the paid retry");
    bench.hear(reject(&first, 3));
    assert_eq!(bench.outcomes(), []);
    bench.hear(reject(&second, 3));
    assert_eq!(bench.outcomes(), [REJECTED]);
}

#[test]
fn a_reject_that_comes_after_the_next_attempt_leaves_its_own_unanswered() {
    let mut bench = Bench::registered();
    let first = bench.submit();
    bench.wait(50);
    let second = bench.sent().pop().expect("the retry");
    bench.settings.retry_burst = 0;
    bench.hear(reject(&first, 1));
    bench.hear(reject(&second, 1));
    bench.run(10 * SECOND);
    assert_eq!(bench.outcomes(), [TOO_LATE]);
}

#[test]
fn with_the_budget_spent_a_task_of_which_every_attempt_was_rejected_is_refused_at_once() {
    let mut bench = Bench::without_budget();
    let submit = bench.submit();
    bench.hear(reject(&submit, 1));
    assert_eq!(bench.outcomes(), [REJECTED]);
}

#[test]
fn a_reject_whose_hint_lies_past_the_deadline_is_final() {
    let mut bench = Bench::registered();
    let (patient, late) = (bench.submit(), bench.submit());
    bench.now = bench.now + Nanos::from_millis(4_900);
    bench.hear(reject(&patient, 99));
    assert_eq!(bench.outcomes(), []);
    bench.hear(reject(&late, 100));
    assert_eq!(bench.outcomes(), [REJECTED]);
}

#[test]
fn a_task_without_retry_has_one_attempt_and_its_first_reject_is_final() {
    let mut bench = Bench::registered();
    bench.offer(GET, false).expect("there is room");
    let only = bench.sent().pop().expect("it is sent");
    bench.hear(reject(&only, 1));
    assert_eq!(bench.outcomes(), [REJECTED]);
    bench.offer(GET, false).expect("there is room");
    bench.run(SECOND);
    bench.grant(grant(6));
    bench.run(10 * SECOND);
    assert_eq!(bench.sent().len(), 1);
    assert_eq!(bench.outcomes(), [TOO_LATE]);
}

#[test]
fn a_notice_stops_sending_asks_for_the_controller_and_counts_as_unanswered() {
    let mut bench = Bench::registered();
    let first = bench.submit();
    bench.hear(notice(&first, 6));
    assert_eq!(bench.renewals(), 1);
    assert_eq!(bench.offer(GET, true), Err(Busy::NotRegistered));
    bench.run(SECOND);
    assert_eq!(bench.sent(), []);
    bench.grant(grant(6));
    let second = Submit { attempt: Attempt(2), epoch: Epoch(6), key: Key(600), age: age(SECOND), ..first };
    assert_eq!(bench.sent(), [second]);
    bench.settings.retry_burst = 0;
    bench.hear(reject(&second, 1));
    bench.run(10 * SECOND);
    assert_eq!(bench.outcomes(), [TOO_LATE]);
}

#[test]
fn a_dead_registration_is_asked_for_again_and_again_until_it_is_renewed() {
    let mut bench = Bench::registered();
    bench.client.epoch(bench.now, &bench.settings, Epoch(6), &mut bench.out);
    bench.run(SECOND);
    assert_eq!(bench.renewals(), 21);
    bench.grant(grant(5));
    assert_eq!(bench.offer(GET, true), Err(Busy::NotRegistered), "that grant is for a dead switch");
    bench.grant(grant(6));
    bench.renewals();
    bench.run(SECOND);
    assert_eq!((bench.renewals(), bench.client.deadline()), (0, None));
    assert!(bench.offer(GET, true).is_ok());
}

#[test]
fn when_no_grant_ever_comes_tasks_still_end_at_their_deadlines() {
    let mut bench = Bench::registered();
    let submit = bench.submit();
    bench.hear(notice(&submit, 6));
    bench.run(5 * SECOND);
    assert_eq!(bench.outcomes(), [TOO_LATE]);
    assert_eq!(bench.sent(), []);
}

#[test]
fn a_new_epoch_gives_each_task_one_retry_outside_the_budget_oldest_first() {
    let mut bench = Bench::without_budget();
    let tasks: Vec<Submit> = (0..8).map(|_| bench.submit()).collect();
    bench.hear(reply(&tasks[0]));
    let newest = bench.submit();
    bench.grant(grant(6));
    let again: Vec<TaskId> = bench.sent().iter().map(|submit| submit.task).collect();
    let expected: Vec<TaskId> = tasks[1..].iter().chain([&newest]).map(|submit| submit.task).collect();
    assert_eq!(again, expected);
    bench.grant(grant(6));
    assert_eq!(bench.sent(), []);
    bench.grant(ClientRegistration { key: Key(601), ..grant(6) });
    assert_eq!(bench.sent(), [], "this epoch's free retry is used up");
    bench.run(150);
    assert!(bench.sent().iter().all(|submit| submit.key == Key(601) && submit.attempt == Attempt(3)));
}

#[test]
fn a_new_key_in_the_same_epoch_sends_outstanding_tasks_again_with_it() {
    let mut bench = Bench::registered();
    let first = bench.submit();
    bench.grant(ClientRegistration { key: Key(501), client: ClientId(4), ..grant(5) });
    let expected = Submit { attempt: Attempt(2), key: Key(501), client: ClientId(4), ..first };
    assert_eq!(bench.sent(), [expected]);
}

#[test]
fn a_rejected_task_that_waits_for_a_grant_is_kept_and_sent_with_it() {
    let mut bench = Bench::registered();
    let first = bench.submit();
    bench.client.epoch(bench.now, &bench.settings, Epoch(6), &mut bench.out);
    bench.hear(reject(&first, 1));
    bench.run(SECOND);
    assert_eq!((bench.outcomes(), bench.sent()), (vec![], vec![]));
    bench.grant(grant(6));
    let second = bench.sent().pop().expect("the free retry");
    bench.settings.retry_burst = 0;
    bench.hear(reject(&second, 1));
    assert_eq!(bench.outcomes(), [REJECTED], "both attempts were rejected");
}

#[test]
fn a_rejected_task_that_no_grant_saves_is_refused_at_its_deadline() {
    let mut bench = Bench::registered();
    let first = bench.submit();
    bench.hear(reject(&first, 100));
    bench.client.epoch(bench.now, &bench.settings, Epoch(6), &mut bench.out);
    bench.run(10 * SECOND);
    assert_eq!(bench.outcomes(), [REJECTED]);
}

#[test]
fn a_reject_from_another_epoch_than_its_attempt_proves_nothing() {
    let mut bench = Bench::without_budget();
    let first = bench.submit();
    bench.hear(reject(&Submit { epoch: Epoch(4), ..first }, 1));
    assert_eq!((bench.outcomes().len(), bench.client.stats().late), (0, 1));
}

#[test]
fn three_timeouts_in_silence_ask_for_the_controller_and_a_packet_starts_the_count_anew() {
    let mut bench = Bench::registered();
    let task = bench.submit();
    bench.run(50 + 100);
    assert_eq!(bench.renewals(), 0);
    let other = bench.submit();
    bench.hear(reply(&other));
    bench.run(200 + 400);
    assert_eq!(bench.renewals(), 0);
    bench.run(800);
    assert_eq!(bench.renewals(), 1);
    bench.hear(reply(&task));
}

#[test]
fn a_switch_that_refuses_packets_is_reported_at_most_once_per_gap() {
    let mut bench = Bench::registered();
    for _ in 0..10 {
        bench.client.refused(bench.now, &bench.settings, &mut bench.out);
    }
    assert_eq!(bench.renewals(), 1);
    bench.run(50);
    assert_eq!(bench.renewals(), 1, "what was held back is said when the gap is over");
    bench.run(SECOND);
    assert_eq!(bench.renewals(), 0);
}

#[test]
fn fewer_replay_cells_hold_back_new_tasks_until_the_outstanding_ones_fit() {
    let mut bench = Bench::registered();
    let tasks: Vec<Submit> = (0..6).map(|_| bench.submit()).collect();
    bench.grant(ClientRegistration { replay_cells: 2, ..grant(5) });
    for task in &tasks[..4] {
        assert_eq!(bench.offer(GET, true), Err(Busy::CellsSpent));
        bench.hear(reply(task));
    }
    assert_eq!(bench.offer(GET, true), Err(Busy::CellsSpent));
    bench.hear(reply(&tasks[4]));
    assert!(bench.offer(GET, true).is_ok());
    assert_eq!(bench.offer(GET, true), Err(Busy::CellsSpent));
}

#[test]
fn four_thousand_tasks_end_each_once_when_time_jumps() {
    let mut bench = Bench::new();
    bench.grant(ClientRegistration {
        replay_cells: 1 << 13,
        shares: vec![(SliceId(0), 1 << 13)],
        ..grant(5)
    });
    for _ in 0..5_000 {
        bench.submit();
    }
    bench.wait(3_600 * SECOND);
    assert_eq!(bench.outcomes().len(), 5_000);
    assert_eq!((bench.client.outstanding(), bench.client.deadline()), (0, None));
}

#[test]
fn times_of_the_network_scale_with_dilation() {
    let settings = ClientSettings::dilated(100);
    assert_eq!(settings.first_timeout, Nanos::from_millis(5_000));
    assert_eq!(settings.deadline_default, Nanos::from_millis(160_000));
    assert_eq!(settings.renew_gap, ClientSettings::default().renew_gap);
}

#[test]
fn no_attempt_leaves_later_than_workers_remember_the_task() {
    let mut bench = Bench::new();
    let short = |epoch| ClientRegistration { retry_for: Nanos::from_millis(400), ..grant(epoch) };
    bench.grant(short(5));
    bench.submit();
    bench.run(399);
    assert!(bench.sent().len() > 1, "it is tried again in time");
    bench.run(3_600);
    bench.grant(short(6));
    assert!(bench.sent().is_empty(), "nor for a new switch");
    bench.run(1_001);
    assert!(bench.sent().is_empty());
    assert_eq!(bench.outcomes(), [Outcome::Unknown(UnknownWhy::Deadline)]);
}

#[test]
fn a_client_that_stood_still_past_a_rejects_hint_sends_nothing_that_workers_may_have_forgotten() {
    let mut bench = Bench::new();
    bench.grant(ClientRegistration { retry_for: Nanos::from_millis(400), ..grant(5) });
    let (rejected, silent) = (bench.submit(), bench.submit());
    bench.wait(50);
    let second = bench.sent().into_iter().find(|again| again.task == silent.task).expect("it is tried again");
    bench.hear(reject(&Submit { attempt: Attempt(2), ..rejected }, 3));
    bench.hear(reject(&second, 3));
    bench.wait(400);
    assert_eq!(bench.sent(), [], "their retries were paid, but are too late");
    bench.run(10 * SECOND);
    assert_eq!((bench.sent(), bench.outcomes()), (vec![], vec![TOO_LATE; 2]), "each has a try unanswered");
    let rejected = bench.submit();
    bench.hear(reject(&rejected, 3));
    bench.wait(400);
    assert_eq!((bench.sent(), bench.outcomes()), (vec![], vec![REJECTED]));
}

#[test]
fn a_worker_that_lacks_bytes_gets_them_until_the_task_has_an_outcome_and_then_hears_so() {
    let mut bench = Bench::registered();
    let sent = bench.submit();
    let task = sent.task;
    let need = Need { task, attempt: Attempt(1), offset: 0, length: 9, ..Need::default() };
    let hear = |bench: &mut Bench, need| {
        bench.client.packet(bench.now, &bench.settings, &Packet::Need(need), &mut bench.out);
        std::mem::take(&mut bench.out)
    };
    assert!(matches!(hear(&mut bench, need)[..], [Action::Parts { need: asked, .. }] if asked == need));
    let never_sent = Need { attempt: Attempt(2), ..need };
    assert_eq!(hear(&mut bench, never_sent), []);
    let unknown = TaskId { sequence: task.sequence.plus(5), ..task };
    assert_eq!(hear(&mut bench, Need { task: unknown, ..need }), []);
    // The task belongs to an earlier life at the same address: the worker holds a place until it is told
    // so.
    let before = Need { task: TaskId { incarnation: Incarnation(1), ..task }, ..need };
    let packet = Part { task: before.task, attempt: Attempt(1), ..Part::default() };
    assert_eq!(hear(&mut bench, before), [Action::Gone { to: need.asker_at, packet }]);
    bench.hear(reply(&sent));
    bench.out.clear();
    let packet = Part { task, attempt: Attempt(1), ..Part::default() };
    assert_eq!(hear(&mut bench, need), [Action::Gone { to: need.asker_at, packet }]);
}

#[test]
fn whatever_comes_is_counted_as_what_it_is() {
    let mut bench = Bench::registered();
    let sent = bench.submit();
    let need = Need { task: sent.task, attempt: Attempt(1), offset: 0, length: 9, ..Need::default() };
    let of_another = TaskId { incarnation: Incarnation(1), ..sent.task };
    let never_sent = TaskId { sequence: sent.task.sequence.plus(5), ..sent.task };
    let counted = |bench: &mut Bench, packet| {
        let before = bench.client.stats();
        bench.hear(packet);
        let after = bench.client.stats();
        [
            after.needs - before.needs,
            after.rejects - before.rejects,
            after.late - before.late,
            after.foreign - before.foreign,
        ]
    };
    let later = |attempt| Submit { attempt, ..sent };
    for (is, packet) in [
        ([1, 0, 0, 0], Packet::Need(need)),
        ([1, 0, 0, 0], Packet::Need(need)),
        ([0, 0, 0, 1], Packet::Need(Need { attempt: Attempt(2), ..need })),
        ([0, 0, 0, 1], Packet::Need(Need { task: of_another, ..need })),
        ([0, 0, 0, 1], Packet::Need(Need { task: never_sent, ..need })),
        ([0, 0, 0, 1], Packet::Need(Need { of: BytesOf::Reply, ..need })),
        ([0, 0, 0, 1], Packet::Part(Part { of: BytesOf::Task, task: sent.task, ..Part::default() })),
        ([0, 0, 0, 1], reply(&later(Attempt(2)))),
        ([0, 0, 0, 1], reply(&later(Attempt(0)))),
        ([0, 1, 0, 0], reject(&sent, 50)),
        ([0, 0, 1, 0], reject(&sent, 50)),
    ] {
        assert_eq!(counted(&mut bench, packet), is, "needs, rejects, late, foreign: {packet:?}");
    }
}

#[test]
fn each_try_is_counted_by_who_pays_for_it_and_each_timeout() {
    let mut bench = Bench::registered();
    let sent = bench.submit();
    bench.run(bench.settings.first_timeout.0 / 1_000_000);
    assert_eq!((bench.client.stats().timeouts, bench.client.stats().retries_paid), (1, 1));
    let again = bench.sent().pop().expect("it is tried again");
    bench.hear(reject(&again, 1));
    bench.run(2);
    assert_eq!((bench.client.stats().timeouts, bench.client.stats().retries_paid), (1, 2));
    bench.hear(reply(&sent));
    assert_eq!((bench.client.stats().sent, bench.client.stats().replied), (3, 1));
}

#[test]
fn each_time_that_the_controller_is_asked_counts() {
    let mut bench = Bench::registered();
    for asked in 1..=3 {
        bench.now = bench.now + bench.settings.renew_gap + Nanos::from_millis(1_000);
        bench.client.refused(bench.now, &bench.settings, &mut bench.out);
        assert_eq!((bench.renewals(), bench.client.stats().renewals), (1, asked));
    }
}
