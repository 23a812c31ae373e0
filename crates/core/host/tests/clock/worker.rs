//! The worker's clock, under arbitrary grants, packets and calls.

use proptest::prelude::*;
use sluice_host::worker::{Action, EarlySettings, RemainingTime, Worker, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::Feed;
use sluice_wire::{
    Answer, Attempt, BytesOf, Counters, Dispatch, Empty, Epoch, Generation, Handle, Incarnation, Nanos, Need,
    Nonce, Packet, Part, Payload, Place, ReplyStatus, Serial, TaskId,
};

use super::{assert_later, jump};

#[derive(Clone, Copy, Debug)]
enum Step {
    Grant { epoch: u32, generation: u32, quota: u8, feed: u8 },
    Dispatch { ahead: u32, task: u32, total: u16, at_client: bool },
    Answer { open: bool, lost: u32, age: u32 },
    Empty(u32),
    Part { task: u32, offset: u32 },
    Checked(u32, bool),
    NeedReply(u32),
    Finish(Nanos),
    Expect(Option<u64>),
    Refused,
    Suspend,
    Leave,
    Left(Option<u32>),
    Quota(u8),
    Tick(Nanos),
}

fn step() -> impl Strategy<Value = Step> {
    let task = 0..24_u32;
    let dispatch = (0..6_u32, task.clone(), any::<u16>(), any::<bool>());
    prop_oneof![
        4 => (0..2_u32, 0..2_u32, 0..10_u8, 0..6_u8)
            .prop_map(|(epoch, generation, quota, feed)| Step::Grant { epoch, generation, quota, feed }),
        12 => dispatch
            .prop_map(|(ahead, task, total, at_client)| Step::Dispatch { ahead, task, total, at_client }),
        6 => (any::<bool>(), 0..9_u32, 0..3_u32).prop_map(|(open, lost, age)| Step::Answer { open, lost, age }),
        2 => (0..3_u32).prop_map(Step::Empty),
        4 => (task.clone(), 0..8_u32).prop_map(|(task, offset)| Step::Part { task, offset: 1_024 * offset }),
        4 => (task.clone(), any::<bool>()).prop_map(|(task, is_right)| Step::Checked(task, is_right)),
        1 => task.prop_map(Step::NeedReply),
        12 => jump().prop_map(Step::Finish),
        2 => any::<Option<u64>>().prop_map(Step::Expect),
        1 => Just(Step::Refused),
        1 => Just(Step::Suspend),
        1 => Just(Step::Leave),
        1 => any::<Option<u32>>().prop_map(Step::Left),
        1 => (0..10_u8).prop_map(Step::Quota),
        16 => jump().prop_map(Step::Tick),
    ]
}

/// A worker, and what a switch and a service know of it.
struct Bench {
    worker: Worker,
    settings: WorkerSettings,
    now: Nanos,
    grant: WorkerRegistration,
    sent: Serial,
    issued: Serial,
    nonce: Nonce,
    running: Option<(u64, Nanos)>,
    handles: u32,
    out: Vec<Action>,
}

fn task(sequence: u32) -> TaskId {
    TaskId { incarnation: Incarnation(7), sequence: Serial(sequence) }
}

fn long(total: u32, len: u16, handle: u32) -> Payload {
    Payload { len, inline: (u64::from(total) << 32 | 0x63).to_be_bytes(), handle: Handle(handle) }
}

fn feed(choice: u8) -> Feed {
    match choice {
        0 => Feed::Polls { every: Nanos(0) },
        1 => Feed::Polls { every: Nanos::from_micros(7) },
        2 => Feed::Pushed { reports: true },
        _ => Feed::TOKENS,
    }
}

impl Bench {
    fn new(settings: WorkerSettings) -> Self {
        Self {
            worker: Worker::new(),
            settings,
            now: Nanos(1_000),
            grant: WorkerRegistration {
                epoch: Epoch(1),
                generation: Generation(1),
                ..WorkerRegistration::default()
            },
            sent: Serial(0),
            issued: Serial(0),
            nonce: Nonce(0),
            running: None,
            handles: 0,
            out: Vec::new(),
        }
    }

    fn take(&mut self, step: Step) {
        let (now, settings) = (self.now, self.settings);
        match step {
            Step::Grant { epoch, generation, quota, feed: choice } => {
                self.grant.epoch.0 += epoch;
                self.grant.generation.0 += generation;
                if epoch + generation > 0 {
                    (self.sent, self.issued) = (self.grant.start, self.grant.start);
                }
                self.grant = WorkerRegistration { quota, feed: feed(choice), ..self.grant };
                self.worker.grant(now, &settings, self.grant, &mut self.out);
            }
            Step::Dispatch { ahead, task, total, at_client } => self.dispatch(ahead, task, total, at_client),
            Step::Answer { open, lost, age } => self.answer(open, lost, age),
            Step::Empty(ahead) => {
                self.sent = self.sent.plus(ahead);
                let WorkerRegistration { epoch, generation, .. } = self.grant;
                let empty =
                    Empty { epoch, generation, sent: self.sent, seen: self.issued, ..Empty::default() };
                self.hear(Packet::Empty(empty));
            }
            Step::Part { task: sequence, offset } => {
                let payload = long(0, 1_024, 1 << 20);
                self.hear(Packet::Part(Part { task: task(sequence), offset, payload, ..Part::default() }));
            }
            Step::Checked(sequence, is_right) => {
                self.worker.checked(now, &settings, task(sequence), is_right, &mut self.out);
            }
            Step::NeedReply(sequence) => {
                let (of, attempt) = (BytesOf::Reply, Attempt(1));
                self.hear(Packet::Need(Need { of, task: task(sequence), attempt, ..Need::default() }));
            }
            Step::Finish(service) => self.finish(service),
            Step::Expect(left) => self.expect(left),
            Step::Refused => self.worker.refused(now, &settings, &mut self.out),
            Step::Suspend => self.worker.suspend(),
            Step::Leave => self.worker.leave(),
            Step::Left(last) => self.worker.left(now, last.map(|ahead| self.sent.plus(ahead % 4))),
            Step::Quota(quota) => self.worker.set_quota(quota),
            Step::Tick(late) => self.tick(late),
        }
        self.look();
    }

    fn dispatch(&mut self, ahead: u32, sequence: u32, total: u16, at_client: bool) {
        self.sent = self.sent.plus(ahead);
        self.handles += 1;
        let WorkerRegistration { epoch, generation, .. } = self.grant;
        let payload = long(total.into(), total.clamp(9, 1_400), self.handles);
        self.hear(Packet::Dispatch(Dispatch {
            epoch,
            generation,
            sent: self.sent,
            seen: self.issued,
            task: task(sequence),
            attempt: Attempt(1),
            payload,
            place: if at_client { Place::AtClient } else { Place::Here },
            wait_ns: ahead,
            ..Dispatch::default()
        }));
    }

    /// Answers one of the last PROBEs.
    fn answer(&mut self, open: bool, lost: u32, age: u32) {
        let WorkerRegistration { epoch, generation, .. } = self.grant;
        let nonce = Nonce(self.nonce.0.wrapping_sub(age));
        let seen = Serial(self.issued.0.wrapping_sub(lost));
        let counters = open.then_some(Counters { seen, sent: self.sent });
        self.hear(Packet::Answer(Answer { epoch, generation, nonce, counters, ..Answer::default() }));
    }

    fn finish(&mut self, service: Nanos) {
        let Some((slot, started)) = self.running.take() else { return };
        self.now = started.max(self.now) + service;
        self.handles += 1;
        let reply = Payload { len: 100, inline: [0; 8], handle: Handle(self.handles) };
        let Self { worker, settings, now, out, .. } = self;
        worker.finished(*now, settings, slot, started, ReplyStatus::Done, reply, out);
    }

    fn expect(&mut self, left: Option<u64>) {
        let Some((slot, _)) = self.running else { return };
        let left = left.map(|word| RemainingTime::Left(Nanos(word % 1_000_000)));
        self.worker.expect(self.now, slot, left.unwrap_or(RemainingTime::Units(1)));
    }

    fn tick(&mut self, late: Nanos) {
        self.now = self.now + late;
        let Self { worker, settings, now, out, .. } = self;
        worker.tick(*now, settings, out);
        assert_later(worker.deadline(settings), *now);
        worker.early(*now, settings, out);
        assert_later(worker.early_at(settings), *now);
    }

    fn hear(&mut self, packet: Packet) {
        self.worker.packet(self.now, self.now, &self.settings, &packet, &mut self.out);
    }

    fn look(&mut self) {
        for action in self.out.drain(..) {
            match action {
                Action::ToSwitch(Packet::Token(token)) => {
                    (self.nonce, self.issued) = (token.nonce, token.issued);
                }
                Action::ToSwitch(Packet::Probe(probe)) => self.nonce = probe.nonce,
                Action::Run { slot, .. } => self.running = Some((slot, self.now)),
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_workers_tick_leaves_nothing_due(
        early in any::<bool>(),
        small in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let early = early.then(EarlySettings::default);
        let settings = WorkerSettings { early, ..WorkerSettings::default() };
        let few = WorkerSettings { finished_max: 6, held_max: 3, replies_max: 2, ..settings };
        let mut bench = Bench::new(if small { few } else { settings });
        for step in steps {
            bench.take(step);
        }
    }
}
