//! The client's clock, under arbitrary grants, submissions and packets.

use proptest::prelude::*;
use sluice_host::client::{Action, Client, ClientSettings, Submission, Urgency};
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{
    BytesOf, ClientId, Endpoint, Epoch, Handle, Incarnation, Key, Nanos, Need, Notice, Packet, Part, Payload,
    Reject, RejectReason, Reply, ReplyStatus, Serial, SliceId, SliceLoad, Submit, TaskType, WorkerId,
};

use super::{assert_later, jump};

#[derive(Clone, Copy, Debug)]
enum Step {
    Grant { epoch: u32, key: u32, share: u32, retry_for: Nanos },
    Submit { within: Nanos, retry: bool, ever: bool },
    Reply { which: u8, worker: u16, total: u16, status: u8 },
    Reject { which: u8, epoch: u32, hint: u32 },
    Notice { which: u8, epoch: u32 },
    Part { which: u8, worker: u16, offset: u32 },
    Checked(u8, bool),
    Need(u8),
    Epoch(u32),
    Refused,
    Tick(Nanos),
}

fn step() -> impl Strategy<Value = Step> {
    let (which, worker) = (any::<u8>(), 0..2_u16);
    prop_oneof![
        4 => (0..2_u32, 0..2_u32, 0..8_u32, jump())
            .prop_map(|(epoch, key, share, retry_for)| Step::Grant { epoch, key, share, retry_for }),
        12 => (jump(), any::<bool>(), proptest::bool::weighted(0.1))
            .prop_map(|(within, retry, ever)| Step::Submit { within, retry, ever }),
        6 => (which, worker.clone(), any::<u16>(), 0..6_u8)
            .prop_map(|(which, worker, total, status)| Step::Reply { which, worker, total, status }),
        6 => (which, 0..2_u32, any::<u32>())
            .prop_map(|(which, epoch, hint)| Step::Reject { which, epoch, hint }),
        2 => (which, 0..2_u32).prop_map(|(which, epoch)| Step::Notice { which, epoch }),
        4 => (which, worker, 0..8_u32)
            .prop_map(|(which, worker, offset)| Step::Part { which, worker, offset: offset * 1_024 }),
        2 => (which, any::<bool>()).prop_map(|(which, is_right)| Step::Checked(which, is_right)),
        1 => which.prop_map(Step::Need),
        1 => (0..2_u32).prop_map(Step::Epoch),
        1 => Just(Step::Refused),
        16 => jump().prop_map(Step::Tick),
    ]
}

/// A client, and the attempts that it sent last.
struct Bench {
    client: Client,
    settings: ClientSettings,
    now: Nanos,
    epoch: Epoch,
    key: Key,
    sent: Vec<Submit>,
    out: Vec<Action>,
}

fn long(total: u32, len: u16) -> Payload {
    Payload { len, inline: (u64::from(total) << 32 | 0x63).to_be_bytes(), handle: Handle::NONE }
}

impl Bench {
    fn new(settings: ClientSettings) -> Self {
        Self {
            client: Client::new(Incarnation(7), Serial(u32::MAX - 7)),
            settings,
            now: Nanos(1_000),
            epoch: Epoch(1),
            key: Key(1),
            sent: Vec::new(),
            out: Vec::new(),
        }
    }

    fn take(&mut self, step: Step) {
        let (now, settings) = (self.now, self.settings);
        match step {
            Step::Grant { epoch, key, share, retry_for } => self.grant(epoch, key, share, retry_for),
            Step::Submit { within, retry, ever } => {
                let deadline = if ever { Nanos(u64::MAX) } else { now + within };
                let (task_type, payload) = (TaskType(1), Payload::EMPTY);
                let submission = Submission {
                    task_type,
                    urgency: Urgency::Unstated,
                    payload,
                    deadline,
                    retry,
                    tag: 0,
                    ..Submission::default()
                };
                let _ = self.client.submit(now, &settings, submission, &mut self.out);
            }
            Step::Checked(which, is_right) => {
                let Some(Submit { task, .. }) = self.one(which) else { return };
                self.client.checked(now, &settings, task, is_right, &mut self.out);
            }
            Step::Epoch(ahead) => {
                self.client.epoch(now, &settings, Epoch(self.epoch.0 + ahead), &mut self.out);
            }
            Step::Refused => self.client.refused(now, &settings, &mut self.out),
            Step::Tick(late) => {
                self.now = now + late;
                self.client.tick(self.now, &settings, &mut self.out);
                assert_later(self.client.deadline(), self.now);
            }
            Step::Reply { which, .. }
            | Step::Reject { which, .. }
            | Step::Notice { which, .. }
            | Step::Part { which, .. }
            | Step::Need(which) => {
                if let Some(submit) = self.one(which) {
                    self.hear_of(&submit, step);
                }
            }
        }
        self.look();
    }

    /// Delivers a packet about an attempt.
    fn hear_of(&mut self, submit: &Submit, step: Step) {
        let Submit { epoch, client, task, attempt, task_type, .. } = *submit;
        let packet = match step {
            Step::Reply { worker, total, status, .. } => {
                let status = match status {
                    0 => ReplyStatus::Gone,
                    1 => ReplyStatus::Old,
                    2 => ReplyStatus::Failed,
                    _ => ReplyStatus::Done,
                };
                let payload = long(total.into(), total.clamp(9, 1_400));
                let (worker, worker_at) =
                    (WorkerId(worker), Endpoint { port: worker, ..Endpoint::default() });
                Packet::Reply(Reply {
                    epoch,
                    task,
                    attempt,
                    status,
                    payload,
                    worker,
                    worker_at,
                    ..Reply::default()
                })
            }
            Step::Reject { epoch: newer, hint, .. } => {
                let (epoch, reason) = (Epoch(epoch.0 + newer), RejectReason::QueueFull);
                Packet::Reject(Reject {
                    epoch,
                    client,
                    task,
                    attempt,
                    task_type,
                    reason,
                    behind: 0,
                    retry_after_ns: hint,
                    load: SliceLoad::default(),
                })
            }
            Step::Notice { epoch: newer, .. } => {
                let epoch = Epoch(self.epoch.0 + newer);
                Packet::Notice(Notice { epoch, client, task, attempt })
            }
            Step::Part { worker, offset, .. } => {
                let (of, worker, payload) = (BytesOf::Reply, WorkerId(worker), long(0, 1_024));
                Packet::Part(Part { of, worker, task, attempt, offset, payload, ..Part::default() })
            }
            _ => Packet::Need(Need { of: BytesOf::Task, task, attempt, ..Need::default() }),
        };
        self.hear(packet);
    }

    fn grant(&mut self, epoch: u32, key: u32, share: u32, retry_for: Nanos) {
        self.epoch.0 += epoch;
        self.key.0 += key;
        let grant = ClientRegistration {
            client: ClientId(3),
            key: self.key,
            epoch: self.epoch,
            switch: Endpoint::default(),
            replay_cells: 8,
            slices: vec![(TaskType(1), SliceId(0))],
            shares: vec![(SliceId(0), share)],
            classes: 1,
            jobs: 1,
            sizes: Vec::new(),
            retry_for,
        };
        self.client.grant(self.now, &self.settings, grant, &mut self.out);
    }

    /// One of the last attempts.
    fn one(&self, which: u8) -> Option<Submit> {
        let last = self.sent.len().checked_sub(1)?;
        Some(self.sent[last - usize::from(which).min(last)])
    }

    fn hear(&mut self, packet: Packet) {
        self.client.packet(self.now, &self.settings, &packet, &mut self.out);
    }

    fn look(&mut self) {
        let sent = self.out.drain(..).filter_map(|action| match action {
            Action::ToSwitch(submit) => Some(submit),
            _ => None,
        });
        self.sent.extend(sent);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_clients_tick_leaves_nothing_due(
        hurried in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let settings = ClientSettings::default();
        let least = ClientSettings { first_timeout: Nanos(0), timeout_max: Nanos(0), renew_gap: Nanos(0), ..settings };
        let mut bench = Bench::new(if hurried { least } else { settings });
        for step in steps {
            bench.take(step);
        }
    }
}
