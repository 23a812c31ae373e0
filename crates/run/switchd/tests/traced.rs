//! The spans of a switch: what became of each traced task, where it lies in its trace.

#[path = "../../traces/tests/receiver/mod.rs"]
mod receiver;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use receiver::{TAKEN, TakenRequest, receiver};
use sluice_net::clock::monotonic;
use sluice_net::traces::{RunningExporter, TraceEndpoint, TraceId, Tracer};
use sluice_net::udp::{Socket, SocketOptions};
use sluice_switch::registry::Choice;
use sluice_switchd::switch::{SwitchConfig, SwitchDriver};
use sluice_wire::tables::{ClientRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Epoch, Generation, Incarnation, Key, Nonce, Packet, Serial, SliceId, Submit, TaskId,
    TaskJob, TaskType, Token, WorkerId, encode,
};

const EPOCH: Epoch = Epoch(1);
const KEY: Key = Key(2);
const GENERATION: Generation = Generation(0);
/// How long what was sent may be on its way.
const PATIENCE: Duration = Duration::from_mins(1);

/// A switch whose spans a receiver takes, and the two ends of its tasks.
struct TracedSwitch {
    driver: SwitchDriver,
    client: Socket,
    worker: Socket,
    issued: u32,
    tracer: Tracer,
    running: RunningExporter,
    received: Receiver<TakenRequest>,
}

fn socket() -> Socket {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Socket::bind(at, &SocketOptions::default()).expect("the loopback has free ports")
}

fn task(sequence: u32) -> TaskId {
    TaskId { incarnation: Incarnation(1), sequence: Serial(sequence) }
}

fn submit(sequence: u32) -> Submit {
    Submit { epoch: EPOCH, key: KEY, task: task(sequence), attempt: Attempt(1), ..Submit::default() }
}

impl TracedSwitch {
    fn new(one_in: u32, policy: &str) -> Self {
        let (at, received) = receiver(&[TAKEN]);
        let endpoint = TraceEndpoint::found(Some(&format!("http://{at}")), None).expect("an address");
        let one_in = NonZeroU32::new(one_in).expect("some");
        let (tracer, running) = Tracer::start(endpoint, one_in, "leaf 1").expect("a thread");
        let program: Choice = policy.parse().expect("a policy");
        let size = program.traits().full_size(EPOCH);
        let config = SwitchConfig { traces: Some(tracer.clone()), program, ..SwitchConfig::new(size) };
        let mut driver = SwitchDriver::new(&config).expect("free ports");
        let (client, worker) = (socket(), socket());
        let row = WorkerRow {
            key: KEY,
            at: worker.local().into(),
            slice: SliceId(0),
            generation: GENERATION,
            open: true,
            life: 1,
            ..WorkerRow::default()
        };
        let client_row = ClientRow { key: KEY, at: client.local().into(), incarnation: Incarnation(1) };
        let ops = vec![
            TableOp::SetSlice(SliceId(0), SliceRow { open: true, limit: 2, ..SliceRow::default() }),
            TableOp::SetType(TaskType(0), Some(SliceId(0))),
            TableOp::SetWorker(WorkerId::default(), Some(row)),
            TableOp::SetClient(ClientId::default(), Some((client_row, Serial(0)))),
        ];
        driver.handle().tables().send(ops, |_| ()).expect("the switch lives");
        driver.step().expect("the socket works");
        Self { driver, client, worker, issued: 0, tracer, running, received }
    }

    fn submit(&mut self, packet: Packet) {
        let to = self.driver.local().into();
        self.client.outbox().send_with(to, |out: &mut [u8]| encode(&packet, &[], out).expect("legal"));
        self.client.flush();
        self.pass();
    }

    /// A token comes, and a task leaves or does not.
    fn token(&mut self) {
        self.issued += 1;
        let (nonce, issued) = (Nonce(self.issued), Serial(self.issued));
        let (epoch, key, generation) = (EPOCH, KEY, GENERATION);
        let packet = Packet::Token(Token { epoch, key, generation, nonce, issued, ..Token::default() });
        let to = self.driver.local().into();
        self.worker.outbox().send_with(to, |out: &mut [u8]| encode(&packet, &[], out).expect("legal"));
        self.worker.flush();
        self.pass();
    }

    fn pass(&mut self) {
        while self.driver.step().expect("the socket works") == 0 {}
        // Tasks of a submission enter one by one.
        self.driver.step_at(monotonic()).expect("the socket works");
    }

    /// Ends the switch once so many spans were sent. Returns its spans, and how many were dropped.
    fn spans(self, expected: u64) -> (Vec<Span>, u64) {
        let Self { mut driver, tracer, running, received, .. } = self;
        // At the end, the exporter gives what still waits little time.
        let began = Instant::now();
        while tracer.counts().0 < expected && began.elapsed() < PATIENCE {
            driver.step_at(monotonic()).expect("the socket works");
            thread::sleep(Duration::from_millis(1));
        }
        drop(driver);
        drop(running);
        let (sent, dropped) = tracer.counts();
        let mut spans = Vec::new();
        while (spans.len() as u64) < sent {
            let got = received.recv_timeout(PATIENCE).expect("what was sent comes");
            let resources = got.request.resource_spans;
            spans.extend(resources.into_iter().flat_map(|of| of.scope_spans).flat_map(|of| of.spans));
        }
        (spans, dropped)
    }
}

fn text(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

/// A task's span, what it says became of the task and why, and its wait in the queue.
fn of(spans: &[Span], sequence: u32) -> (&Span, String, Option<String>, Option<&Span>) {
    let root = TraceId::of(task(sequence)).root().to_be_bytes();
    let all: Vec<_> =
        spans.iter().filter(|span| span.name == "switch" && span.parent_span_id == root).collect();
    assert_eq!(all.len(), 1, "task {sequence}: {all:#?}");
    let queue = spans.iter().find(|span| span.name == "queue" && span.parent_span_id == all[0].span_id);
    let outcome = text(all[0], "sluice.switch.outcome").expect("it says so");
    (all[0], outcome, text(all[0], "sluice.switch.reason"), queue)
}

#[test]
fn each_traced_task_has_a_span_that_says_what_became_of_it() {
    let mut switch = TracedSwitch::new(1, "rain:2");
    switch.token();
    switch.submit(Packet::Submit(submit(0)));
    for waiting in 1..=3 {
        switch.submit(Packet::Submit(submit(waiting)));
    }
    switch.submit(Packet::Submit(submit(1)));
    switch.token();
    switch.submit(Packet::Submit(Submit { key: Key(3), ..submit(4) }));
    switch.submit(Packet::Submit(Submit { epoch: Epoch(9), ..submit(5) }));
    switch.submit(Packet::Submit(Submit { task_type: TaskType(7), ..submit(6) }));
    switch.driver.handle().drain();
    switch.submit(Packet::Submit(submit(7)));
    let (spans, dropped) = switch.spans(8);
    assert_eq!(dropped, 0);
    let told = |sequence| {
        let (span, outcome, reason, queue) = of(&spans, sequence);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        (outcome, reason.unwrap_or_default(), queue.is_some(), span.status.as_ref().map(|of| of.code))
    };
    let expected = |outcome: &str, reason: &str, waited, failed: bool| {
        (outcome.to_owned(), reason.to_owned(), waited, failed.then_some(2))
    };
    assert_eq!(told(0), expected("matched", "", false, false));
    assert_eq!(told(1), expected("waited", "", true, false));
    assert_eq!(told(3), expected("refused", "queue_full", false, true));
    assert_eq!(told(4), expected("dropped", "wrong_key", false, true));
    assert_eq!(told(5), expected("dropped", "wrong_epoch", false, true));
    assert_eq!(told(6), expected("refused", "unknown_type", false, true));
    assert_eq!(told(7), expected("dropped", "not_taken", false, true));
    let (switch, _, _, queue) = of(&spans, 1);
    let queue = queue.expect("it waited");
    assert!(switch.start_time_unix_nano <= queue.start_time_unix_nano);
    assert!(queue.start_time_unix_nano < queue.end_time_unix_nano);
    assert_eq!(queue.end_time_unix_nano, switch.end_time_unix_nano);
    // Task 2 still waits; so did nobody's span name it.
    let waits = TraceId::of(task(2)).root().to_be_bytes();
    assert!(spans.iter().all(|span| span.parent_span_id != waits));
}

#[test]
fn a_packet_that_comes_twice_is_told_only_if_the_first_has_left() {
    let mut switch = TracedSwitch::new(1, "rain:2");
    switch.submit(Packet::Submit(submit(0)));
    switch.submit(Packet::Submit(submit(0)));
    // A stranger who knows the task's id changes nothing either.
    switch.submit(Packet::Submit(Submit { key: Key(3), ..submit(0) }));
    switch.token();
    switch.submit(Packet::Submit(submit(0)));
    let (spans, _) = switch.spans(3);
    let whole = spans.iter().filter(|span| span.name == "switch");
    let told: Vec<_> = whole.map(|span| (text(span, "sluice.switch.outcome"), span.status.clone())).collect();
    assert_eq!(told, [(Some("waited".to_owned()), None), (Some("dropped".to_owned()), None)]);
}

#[test]
fn tasks_of_one_submission_have_a_span_each() {
    let mut switch = TracedSwitch::new(2, "draconis:jobs=5");
    let mut job = TaskJob::of(submit(0)).expect("it is short");
    (1..5).for_each(|sequence| assert!(job.push(&submit(sequence))));
    switch.submit(Packet::Job(job));
    (0..5).for_each(|_| switch.token());
    let (spans, dropped) = switch.spans(3);
    assert_eq!(dropped, 0);
    let whole = spans.iter().filter(|span| span.name == "switch");
    assert_eq!(whole.count(), 2, "one in two is traced: {spans:#?}");
    // Two find room, and one REJECT answers the others.
    let told = [1, 3].map(|sequence| of(&spans, sequence).1);
    assert_eq!(told, ["waited", "refused"]);
}
