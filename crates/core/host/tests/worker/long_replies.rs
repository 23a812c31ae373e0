//! Workers keep replies that are longer than a packet.

use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{
    Attempt, BytesOf, ClientId, Dispatch, Endpoint, Epoch, Generation, Handle, Incarnation, Nanos, Need,
    Packet, Payload, ReplyStatus, Serial, TaskId, WorkerId,
};

const NOW: Nanos = Nanos(1_000);

fn task(sequence: u32) -> TaskId {
    TaskId { incarnation: Incarnation(7), sequence: Serial(sequence) }
}

fn long(handle: u32) -> Payload {
    Payload { len: 1_400, inline: (60_000_u64 << 32 | 0x63).to_be_bytes(), handle: Handle(handle) }
}

/// A worker that has answered tasks 1 to `count` with 60,000 bytes each.
fn worker(settings: &WorkerSettings, count: u32) -> Worker {
    let (mut worker, mut out) = (Worker::new(), Vec::new());
    let (epoch, generation) = (Epoch(1), Generation(1));
    let grant = WorkerRegistration {
        worker: WorkerId(3),
        epoch,
        generation,
        quota: 1,
        ..WorkerRegistration::default()
    };
    worker.grant(Nanos(1), settings, grant, &mut out);
    for turn in 1..=count {
        let (sent, seen, worker_id) = (Serial(turn), Serial(turn), WorkerId(3));
        let task = task(turn);
        let dispatch =
            Dispatch { epoch, generation, worker: worker_id, sent, seen, task, ..Dispatch::default() };
        worker.packet(NOW, NOW, settings, &Packet::Dispatch(dispatch), &mut out);
        worker.finished(NOW, settings, turn.into(), NOW, ReplyStatus::Done, long(turn), &mut out);
    }
    worker
}

fn need(sequence: u32) -> Need {
    let asker_at = Endpoint { port: 9, ..Endpoint::default() };
    Need {
        of: BytesOf::Reply,
        worker: WorkerId(3),
        asker_at,
        client: ClientId(4),
        task: task(sequence),
        attempt: Attempt(1),
        offset: 1_024,
        length: 9_000,
    }
}

fn asked(worker: &mut Worker, settings: &WorkerSettings, need: Need) -> Vec<Action> {
    let mut out = Vec::new();
    worker.packet(NOW, NOW, settings, &Packet::Need(need), &mut out);
    out
}

#[test]
fn a_reply_that_is_kept_is_sent_to_whoever_names_its_task() {
    let settings = WorkerSettings::default();
    let mut worker = worker(&settings, 2);
    let actions = asked(&mut worker, &settings, need(2));
    assert_eq!(actions, [Action::Parts { need: need(2), payload: long(2) }]);
    assert_eq!(asked(&mut worker, &settings, need(3)), [], "a task that never was here");
    assert_eq!(asked(&mut worker, &settings, Need { of: BytesOf::Task, ..need(2) }), []);
    assert_eq!((worker.stats().needs, worker.stats().replies_gone), (1, 0));
}

#[test]
fn long_replies_are_kept_up_to_all_of_their_bytes_and_a_client_hears_of_one_that_is_gone() {
    let settings = WorkerSettings { reply_bytes_max: 150_000, ..WorkerSettings::default() };
    let mut worker = worker(&settings, 3);
    assert_eq!(worker.stats().replies, 2, "three of 60,000 bytes are too many");
    let actions = asked(&mut worker, &settings, need(1));
    let [Action::Reply { to, packet }] = actions[..] else { panic!("{actions:?}") };
    assert_eq!((to.port, packet.status, packet.task), (9, ReplyStatus::Gone, task(1)));
    assert_eq!(packet.attempt, Attempt(1));
    assert_eq!((worker.stats().needs, worker.stats().replies_gone), (1, 1));
}

#[test]
fn a_reply_is_gone_with_its_task_once_no_retry_can_come() {
    let settings = WorkerSettings::default();
    let (mut worker, mut out) = (worker(&settings, 1), Vec::new());
    let later = NOW + settings.retry_horizon;
    worker.tick(later, &settings, &mut out);
    assert!(out.contains(&Action::Forget(Handle(1))));
    assert_eq!(asked(&mut worker, &settings, need(1)), []);
}
