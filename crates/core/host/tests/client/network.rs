//! The client with an arbitrary network, switch and clock: each task ends exactly once, whatever arrives.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;
use sluice_host::client::{
    Action, Client, ClientSettings, Outcome, RefusedWhy, Submission, UnknownWhy, Urgency,
};
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{
    Attempt, ClientId, Endpoint, Epoch, Handle, Incarnation, Key, Nanos, Need, Notice, Packet, Payload,
    Reject, RejectReason, Reply, ReplyStatus, Serial, SliceId, SliceLoad, Submit, TaskId, TaskType,
};

const ME: Incarnation = Incarnation(77);
/// Types 0 and 1 have slices of their own; 2 is mapped to a slice without a share, 3 to none.
const KINDS: u16 = 4;

#[derive(Clone, Debug)]
enum Step {
    Offer { kind: u16, patience_ms: u64, retry: bool, large: bool },
    Answer { attempt: Index, answer: Answer },
    Jump { ms: u64 },
    NextDeadline,
    Grant { change: Change, cells: u32, share: u32 },
    Heartbeat { ahead: u32 },
    Refused,
    Noise { sequence: u32, attempt: u16, mine: bool, kind: u8 },
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Reply(ReplyStatus),
    Reject { hint_ms: u64, epochs_back: u32 },
    Notice { ahead: u32 },
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    Key,
    Epoch,
    Stale,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let status = prop_oneof![4 => Just(ReplyStatus::Done), 1 => Just(ReplyStatus::Failed), 1 => Just(ReplyStatus::Gone), 1 => Just(ReplyStatus::Old)];
    let answer = prop_oneof![
        3 => status.prop_map(Answer::Reply),
        4 => (0..60u64, prop_oneof![9 => Just(0), 1 => Just(1u32)])
            .prop_map(|(hint_ms, epochs_back)| Answer::Reject { hint_ms, epochs_back }),
        1 => (0..2u32).prop_map(|ahead| Answer::Notice { ahead }),
    ];
    let change = prop_oneof![
        3 => Just(Change::Nothing),
        1 => Just(Change::Key),
        3 => Just(Change::Epoch),
        1 => Just(Change::Stale)
    ];
    let step = prop_oneof![
        12 => (0..KINDS, 0..900u64, prop::bool::weighted(0.85), any::<bool>()).prop_map(
            |(kind, patience_ms, retry, large)| Step::Offer { kind, patience_ms, retry, large }),
        12 => (any::<Index>(), answer).prop_map(|(attempt, answer)| Step::Answer { attempt, answer }),
        3 => prop_oneof![9 => 0..120u64, 1 => 0..5_000u64].prop_map(|ms| Step::Jump { ms }),
        6 => Just(Step::NextDeadline),
        2 => (change, 0..5u32, 0..9u32)
            .prop_map(|(change, cells, share)| Step::Grant { change, cells: 1 << cells, share }),
        1 => (0..2u32).prop_map(|ahead| Step::Heartbeat { ahead }),
        1 => Just(Step::Refused),
        1 => (any::<u32>(), any::<u16>(), any::<bool>(), 0..4u8).prop_map(
            |(sequence, attempt, mine, kind)| Step::Noise { sequence, attempt, mine, kind }),
    ];
    prop::collection::vec(step, 1..250)
}

/// What the test saw of one attempt.
#[derive(Clone, Copy, Debug)]
struct Seen {
    submit: Submit,
    at: Nanos,
    rejected: bool,
}

/// What the test knows of one task.
#[derive(Debug)]
struct Told {
    submission: Submission,
    attempts: Vec<Seen>,
    freed_in: BTreeSet<Epoch>,
    ended: bool,
}

impl Told {
    fn every_attempt_was_rejected(&self) -> bool {
        !self.attempts.is_empty() && self.attempts.iter().all(|seen| seen.rejected)
    }
}

struct World {
    client: Client,
    settings: ClientSettings,
    now: Nanos,
    grant: ClientRegistration,
    heard: Epoch,
    tasks: BTreeMap<u64, Told>,
    sent: Vec<Submit>,
    /// The reply that was delivered in this step, if any.
    delivered: Option<Reply>,
    renewed: Option<Nanos>,
    retries_in_haste: u64,
}

impl World {
    fn new() -> Self {
        let settings = ClientSettings {
            retry_burst: 3,
            unmapped_share: 2,
            timeout_max: Nanos::from_millis(300),
            ..ClientSettings::default()
        };
        let grant = registration(1, 1, 8, 6);
        let mut world = Self {
            client: Client::new(ME, Serial(u32::MAX - 8)),
            settings,
            now: Nanos::from_millis(10),
            grant: grant.clone(),
            heard: Epoch(1),
            tasks: BTreeMap::new(),
            sent: Vec::new(),
            delivered: None,
            renewed: None,
            retries_in_haste: 0,
        };
        let mut out = Vec::new();
        world.client.grant(world.now, &settings, grant, &mut out);
        world.check_actions(&out);
        world
    }

    fn take(&mut self, step: &Step) {
        self.delivered = None;
        match step {
            Step::Offer { kind, patience_ms, retry, large } => {
                self.offer(*kind, *patience_ms, *retry, *large);
            }
            Step::Answer { attempt, answer } => {
                if !self.sent.is_empty() {
                    self.answer(self.sent[attempt.index(self.sent.len())], *answer);
                }
            }
            Step::Jump { ms } => self.pass_until(self.now + Nanos::from_millis(*ms)),
            Step::NextDeadline => self.pass_until(self.client.deadline().unwrap_or(self.now).max(self.now)),
            Step::Grant { change, cells, share } => self.grant(*change, *cells, *share),
            Step::Heartbeat { ahead } => {
                let epoch = Epoch(self.heard.0 + ahead);
                self.heard = epoch;
                let mut out = Vec::new();
                self.client.epoch(self.now, &self.settings, epoch, &mut out);
                self.check_actions(&out);
            }
            Step::Refused => {
                let mut out = Vec::new();
                self.client.refused(self.now, &self.settings, &mut out);
                self.check_actions(&out);
            }
            Step::Noise { sequence, attempt, mine, kind } => self.noise(*sequence, *attempt, *mine, *kind),
        }
        self.check_state();
    }

    fn offer(&mut self, kind: u16, patience_ms: u64, retry: bool, large: bool) {
        let tag = self.tasks.len() as u64;
        let handle = if large { Handle(tag as u32) } else { Handle::NONE };
        // For a large task: a descriptor.
        let inline = [[kind as u8; 8], [0, 0, 0, 9, 1, 2, 3, kind as u8]][usize::from(large)];
        let payload = Payload { len: 8 + u16::from(large), inline, handle };
        let deadline = self.now + Nanos::from_millis(patience_ms);
        let submission = Submission {
            task_type: TaskType(kind),
            urgency: Urgency::Unstated,
            payload,
            deadline,
            retry,
            tag,
            ..Submission::default()
        };
        let mut out = Vec::new();
        let taken = self.client.submit(self.now, &self.settings, submission, &mut out);
        if taken.is_err() {
            assert_eq!(out, [], "what was pushed back leaves no trace");
            return;
        }
        let told = Told { submission, attempts: Vec::new(), freed_in: BTreeSet::new(), ended: false };
        self.tasks.insert(tag, told);
        self.check_actions(&out);
        if patience_ms > 0 {
            self.check_bounds_of_new(kind, taken.expect("checked above"));
        }
    }

    /// Checks that a newly taken task keeps the bounds of its slice's share and has a replay cell of its
    /// own.
    fn check_bounds_of_new(&self, kind: u16, task: TaskId) {
        let outstanding = || self.tasks.values().filter(|told| !told.ended);
        let share = |kind: u16| if kind < 2 { kind } else { 2 };
        let charged =
            outstanding().filter(|told| share(told.submission.task_type.0) == share(kind)).count() as u32;
        let limit = if kind < 2 { self.grant.shares[kind as usize].1 } else { self.settings.unmapped_share };
        assert!(charged <= limit, "{charged} outstanding of {limit}");
        let residues: BTreeSet<u32> = outstanding()
            .map(|told| told.attempts[0].submit.task.sequence.0 % self.grant.replay_cells)
            .collect();
        assert_eq!(residues.len(), outstanding().count(), "{task} shares its residue");
    }

    fn answer(&mut self, to: Submit, answer: Answer) {
        let Submit { client, task, attempt, task_type, epoch, .. } = to;
        let packet = match answer {
            Answer::Reply(status) => {
                let reply = Reply { epoch, client, task, attempt, task_type, status, ..Reply::default() };
                self.delivered = Some(reply);
                Packet::Reply(reply)
            }
            Answer::Reject { hint_ms, epochs_back } => {
                let epoch = Epoch(epoch.0 - epochs_back);
                let retry_after_ns = Nanos::from_millis(hint_ms).saturated();
                let reason = RejectReason::QueueFull;
                self.note_reject(&to, epoch);
                Packet::Reject(Reject {
                    epoch,
                    client,
                    task,
                    attempt,
                    task_type,
                    reason,
                    behind: 0,
                    retry_after_ns,
                    load: SliceLoad::default(),
                })
            }
            Answer::Notice { ahead } => {
                let epoch = Epoch(self.heard.0 + ahead);
                self.heard = epoch;
                Packet::Notice(Notice { epoch, client, task, attempt })
            }
        };
        self.deliver(&packet);
    }

    /// Notes a REJECT, which counts only for the newest attempt and only from the epoch in which that
    /// attempt was sent.
    fn note_reject(&mut self, of: &Submit, epoch: Epoch) {
        let of_task = |told: &&mut Told| told.attempts.last().is_some_and(|seen| seen.submit == *of);
        if let Some(told) = self.tasks.values_mut().find(of_task).filter(|_| of.epoch == epoch) {
            told.attempts.last_mut().expect("it was just compared").rejected = true;
        }
    }

    fn noise(&mut self, sequence: u32, attempt: u16, mine: bool, kind: u8) {
        let incarnation = if mine { ME } else { Incarnation(1) };
        // Sequence numbers half the space away were never used. Tasks of other clients may look like this
        // client's.
        let sequence = if mine { Serial((sequence >> 2) + (1 << 30)) } else { Serial(sequence) };
        let task = TaskId { incarnation, sequence };
        let epoch = if mine { self.heard } else { Epoch(u32::MAX) };
        let attempt = Attempt(attempt);
        let reason = RejectReason::NoRoom;
        self.deliver(&match kind {
            0 => Packet::Reply(Reply { epoch, task, attempt, ..Reply::default() }),
            1 => Packet::Notice(Notice { epoch, task, attempt, ..Notice::default() }),
            2 => Packet::Need(Need { task, attempt, ..Need::default() }),
            _ => Packet::Reject(Reject {
                epoch,
                client: ClientId(0),
                task,
                attempt,
                task_type: TaskType(0),
                reason,
                behind: 0,
                retry_after_ns: 0,
                load: SliceLoad::default(),
            }),
        });
    }

    fn deliver(&mut self, packet: &Packet) {
        let mut out = Vec::new();
        self.client.packet(self.now, &self.settings, packet, &mut out);
        self.check_actions(&out);
    }

    fn pass_until(&mut self, at: Nanos) {
        self.now = at;
        let mut out = Vec::new();
        self.client.tick(at, &self.settings, &mut out);
        self.check_actions(&out);
        assert!(self.client.deadline().is_none_or(|next| next > at || at == Nanos(u64::MAX)));
    }

    fn grant(&mut self, change: Change, cells: u32, share: u32) {
        let (epoch, key) = match change {
            Change::Nothing => (self.grant.epoch.0, self.grant.key.0),
            Change::Key => (self.grant.epoch.0, self.grant.key.0 + 1),
            Change::Epoch => (self.heard.0.max(self.grant.epoch.0 + 1), self.grant.key.0 + 1),
            Change::Stale => (self.grant.epoch.0 - 1, self.grant.key.0 + 1),
        };
        let grant = registration(epoch, key, cells, share);
        if Epoch(epoch) >= self.heard {
            self.heard = Epoch(epoch);
            self.grant = grant.clone();
        }
        let mut out = Vec::new();
        self.client.grant(self.now, &self.settings, grant, &mut out);
        self.check_actions(&out);
    }

    fn check_actions(&mut self, out: &[Action]) {
        let mut to_release = None;
        for action in out {
            if let Some(handle) = to_release.take().filter(|handle| *handle != Handle::NONE) {
                assert_eq!(*action, Action::Release(handle), "bytes go with their task's end");
                continue;
            }
            match action {
                Action::ToSwitch(submit) => self.check_attempt(submit),
                Action::Done { tag, task, attempts, outcome } => {
                    to_release = Some(self.check_end(*tag, *task, *attempts, outcome));
                }
                Action::Release(handle) => panic!("{handle} was released without an end"),
                Action::Parts { .. } => panic!("nobody asked: {action:?}"),
                Action::Gone { packet, .. } => {
                    assert_ne!(packet.task.incarnation, ME, "nobody asked for bytes of its tasks");
                }
                Action::Need { .. }
                | Action::Begin { .. }
                | Action::Place { .. }
                | Action::Check { .. }
                | Action::Forget(_) => panic!("every reply here comes whole: {action:?}"),
                Action::Renew => {
                    let gap = self.renewed.map(|renewed| self.now - renewed);
                    assert!(gap.is_none_or(|gap| gap >= self.settings.renew_gap));
                    self.renewed = Some(self.now);
                }
            }
        }
        assert!(to_release.is_none_or(|handle| handle == Handle::NONE), "bytes were kept");
    }

    fn check_attempt(&mut self, submit: &Submit) {
        let grant = (self.grant.epoch, self.grant.key, self.grant.client);
        assert_eq!((submit.epoch, submit.key, submit.client), grant);
        assert_eq!(self.heard, submit.epoch, "nothing is sent on a dead registration");
        let of_task = |told: &&mut Told| match told.attempts.first() {
            Some(first) => first.submit.task == submit.task,
            None => !told.ended,
        };
        let told = self.tasks.values_mut().find(of_task).expect("a task that was submitted");
        assert!(!told.ended, "an attempt after the end");
        assert!(told.submission.deadline > self.now);
        assert_eq!(submit.attempt.0 as usize, told.attempts.len() + 1);
        assert_eq!(submit.payload, told.submission.payload);
        if let Some(last) = told.attempts.last() {
            assert!(told.submission.retry);
            let anew = (last.submit.epoch, last.submit.key) != (submit.epoch, submit.key);
            let free = anew && told.freed_in.insert(submit.epoch);
            if !free && self.now - last.at < self.settings.first_timeout {
                assert!(last.rejected, "a retry before its timeout");
                self.retries_in_haste += 1;
            }
        }
        told.attempts.push(Seen { submit: *submit, at: self.now, rejected: false });
        self.sent.push(*submit);
    }

    fn check_end(&mut self, tag: u64, task: TaskId, attempts: u16, outcome: &Outcome) -> Handle {
        let told = self.tasks.get_mut(&tag).expect("a task that was submitted");
        assert!(!told.ended, "a second end");
        told.ended = true;
        assert_eq!(attempts as usize, told.attempts.len());
        assert!(told.attempts.iter().all(|seen| seen.submit.task == task));
        match outcome {
            Outcome::Reply(reply) => {
                assert_eq!((Some(*reply), reply.task), (self.delivered, task));
                assert!(matches!(reply.status, ReplyStatus::Done | ReplyStatus::Failed));
            }
            Outcome::Refused(RefusedWhy::Rejected(reason)) => {
                assert_eq!(*reason, RejectReason::QueueFull);
                assert!(told.every_attempt_was_rejected());
            }
            Outcome::Refused(RefusedWhy::Late(_) | RefusedWhy::LongBudget) => panic!("nobody has a budget"),
            Outcome::Refused(RefusedWhy::NoClass { .. }) => panic!("nobody asks for a class"),
            Outcome::Refused(RefusedWhy::UnknownLabel) => panic!("nobody asks for a label"),
            Outcome::Refused(RefusedWhy::Busy { .. }) => panic!("no slice has a target"),
            Outcome::Refused(RefusedWhy::TooLong) => panic!("no task is so long"),
            Outcome::Refused(RefusedWhy::NoSlice(_)) => panic!("a slice takes every type"),
            Outcome::Refused(RefusedWhy::NeverSent) => {
                assert!(told.attempts.is_empty() && told.submission.deadline <= self.now);
            }
            Outcome::Unknown(UnknownWhy::Deadline) => {
                assert!(told.submission.deadline <= self.now && !told.every_attempt_was_rejected());
            }
            Outcome::Unknown(UnknownWhy::ReplyGone) => {
                assert_eq!(self.delivered.map(|reply| reply.status), Some(ReplyStatus::Gone));
            }
            Outcome::Unknown(UnknownWhy::TooOld) => {
                assert_eq!(self.delivered.map(|reply| reply.status), Some(ReplyStatus::Old));
            }
        }
        told.submission.payload.handle
    }

    fn check_state(&self) {
        let outstanding = || self.tasks.values().filter(|told| !told.ended);
        assert_eq!(self.client.outstanding(), outstanding().count());
        let soonest = outstanding().map(|told| told.submission.deadline).min();
        assert!(soonest.is_none_or(|soonest| self.client.deadline().is_some_and(|at| at <= soonest)));
        let floor = self.client.floor();
        assert!(outstanding().all(|told| told.attempts[0].submit.task.sequence.since(floor) >= 0));
        let stats = self.client.stats();
        let firsts = self.tasks.values().filter(|told| !told.attempts.is_empty()).count() as u64;
        let budget = u64::from(self.settings.retry_burst) * 100
            + firsts * u64::from(self.settings.retry_budget_percent);
        assert!(stats.retries_paid * 100 <= budget, "{stats:?}");
        assert!(self.retries_in_haste <= stats.retries_paid + stats.retries_free);
        assert_eq!(stats.sent, firsts + stats.retries_paid + stats.retries_probing + stats.retries_free);
        assert_eq!(stats.sent, self.sent.len() as u64);
    }
}

fn registration(epoch: u32, key: u32, replay_cells: u32, share: u32) -> ClientRegistration {
    ClientRegistration {
        client: ClientId(2),
        key: Key(key),
        epoch: Epoch(epoch),
        switch: Endpoint::default(),
        replay_cells,
        slices: vec![(TaskType(0), SliceId(0)), (TaskType(1), SliceId(1)), (TaskType(2), SliceId(5))],
        shares: vec![(SliceId(0), share), (SliceId(1), share / 2)],
        classes: 1,
        jobs: 1,
        sizes: Vec::new(),
        retry_for: Nanos::from_millis(5_000),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_network_does_each_task_ends_once_and_within_its_bounds(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
        }
        world.pass_until(Nanos(u64::MAX));
        world.check_state();
        prop_assert!(world.tasks.values().all(|told| told.ended));
        prop_assert_eq!(world.client.outstanding(), 0);
        let stats = world.client.stats();
        prop_assert_eq!(stats.submitted, stats.replied + stats.refused + stats.unknown);
    }
}
