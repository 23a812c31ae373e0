//! The end hosts' state machines, one task each, without sockets, services and callbacks.

use std::hint::black_box;

use sluice_host::client::{self, Client, ClientSettings, Submission, Urgency};
use sluice_host::worker::{self, Worker, WorkerSettings};
use sluice_wire::registrations::{ClientRegistration, WorkerRegistration};
use sluice_wire::{
    ClientId, Incarnation, Nanos, Packet, Payload, ReplyStatus, Serial, SliceId, TaskType, WorkerId,
};

use crate::hosts::{EPOCH, GENERATION, KEY, dispatch, reply};
use crate::scale::on_the_scale;

/// A DISPATCH comes, the service runs, the reply and the next token leave.
pub(super) fn worker_task(tasks: u32) {
    let settings = WorkerSettings::default();
    let (mut worker, mut out) = (Worker::new(), Vec::with_capacity(64));
    let grant = WorkerRegistration {
        worker: WorkerId(3),
        key: KEY,
        epoch: EPOCH,
        generation: GENERATION,
        quota: 2,
        ..WorkerRegistration::default()
    };
    worker.grant(Nanos(0), &settings, grant, &mut out);
    for turn in 1..=tasks {
        let now = Nanos::from_micros(u64::from(turn) * 10);
        let mut task = dispatch(3, turn);
        (task.sent, task.seen) = (Serial(turn), Serial(turn + 1));
        let task = black_box(Packet::Dispatch(task));
        out.clear();
        on_the_scale(|| worker.packet(now, now, &settings, &task, &mut out));
        let slot = out.iter().find_map(|action| match action {
            worker::Action::Run { slot, .. } => Some(*slot),
            _ => None,
        });
        let slot = slot.expect("a new task runs at once");
        out.clear();
        on_the_scale(|| {
            worker.finished(now, &settings, slot, now, ReplyStatus::Done, Payload::EMPTY, &mut out);
        });
        assert!(matches!(out[..], [worker::Action::Reply { .. }, worker::Action::ToSwitch(_)]), "{out:?}");
    }
}

/// A task is submitted, sent and answered.
pub(super) fn client_task(tasks: u32) {
    let settings = ClientSettings::default();
    let (mut client, mut out) = (Client::new(Incarnation(7), Serial(0)), Vec::with_capacity(64));
    let grant = ClientRegistration {
        client: ClientId(0),
        key: KEY,
        epoch: EPOCH,
        switch: sluice_wire::Endpoint::default(),
        replay_cells: 4_096,
        slices: vec![(TaskType(1), SliceId(0))],
        shares: vec![(SliceId(0), 256)],
        classes: 1,
        jobs: 1,
        sizes: Vec::new(),
        retry_for: Nanos::from_millis(5_000),
    };
    client.grant(Nanos(0), &settings, grant, &mut out);
    for turn in 1..=tasks {
        let now = Nanos::from_micros(u64::from(turn) * 10);
        let submission = black_box(Submission {
            task_type: TaskType(1),
            urgency: Urgency::Unstated,
            payload: Payload::EMPTY,
            deadline: now + settings.deadline_default,
            retry: true,
            tag: u64::from(turn),
            ..Submission::default()
        });
        out.clear();
        let task = on_the_scale(|| client.submit(now, &settings, submission, &mut out));
        let mut answer = reply(3, turn);
        answer.task = task.expect("one task is below every share");
        let answer = black_box(Packet::Reply(answer));
        out.clear();
        on_the_scale(|| client.packet(now, &settings, &answer, &mut out));
        assert!(matches!(out[..], [client::Action::Done { .. }, ..]), "{out:?}");
    }
}
