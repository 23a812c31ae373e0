//! Spans as a collector gets them: OpenTelemetry's own crate decodes them, and a collector that is away,
//! slow or refuses holds up nobody.

mod receiver;

use std::net::TcpListener;
use std::num::NonZeroU32;
use std::thread;
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind as OtlpKind;
use receiver::{TAKEN, receive, receiver};
use sluice_traces::{AttributeValue, RunningExporter, SpanKind, TaskSpan, TraceEndpoint, TraceId, Tracer};
use sluice_wire::{Incarnation, Serial, TaskId};

fn task(sequence: u32) -> TaskId {
    TaskId { incarnation: Incarnation(0xabc), sequence: Serial(sequence) }
}

fn tracer(at: impl std::fmt::Display, one_in: u32) -> (Tracer, RunningExporter) {
    let endpoint = TraceEndpoint::found(Some(&format!("http://{at}")), None).expect("an address");
    Tracer::start(endpoint, NonZeroU32::new(one_in).expect("some"), "worker w-1").expect("a thread")
}

fn span(sequence: u32) -> TaskSpan {
    let trace = TraceId::of(task(sequence));
    TaskSpan {
        trace,
        id: trace.span(1),
        parent: Some(trace.root()),
        name: "service",
        kind: SpanKind::Server,
        from_ns: 1_700_000_000_000_000_001,
        to_ns: 1_700_000_000_000_000_501,
        attributes: vec![("sluice.attempts", 2.into()), ("error.type", AttributeValue::from("failed"))],
        events: vec![(1_700_000_000_000_000_100, "attempt sent")],
        failure: Some("it failed".to_owned()),
    }
}

/// Waits until so many spans were sent and dropped.
fn wait_for(tracer: &Tracer, sent: u64, dropped: u64) {
    for _ in 0..6_000 {
        if tracer.counts() == (sent, dropped) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{:?} instead of {:?}", tracer.counts(), (sent, dropped));
}

#[test]
fn opentelemetrys_own_crate_reads_what_is_sent() {
    let (at, received) = receiver(&[TAKEN]);
    let (tracer, running) = tracer(at, 1);
    tracer.push(span(7));
    let got = received.recv().expect("a request");
    assert!(got.head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{}", got.head);
    assert!(got.head.contains("content-type: application/x-protobuf\r\n"), "{}", got.head);
    let of = &got.request.resource_spans[0];
    let text = |key: &str| {
        let attributes = &of.resource.as_ref().expect("a resource").attributes;
        let found = attributes.iter().find(|attribute| attribute.key == key).expect("it is there");
        found.value.clone().and_then(|value| value.value)
    };
    assert_eq!(text("service.name"), Some(Value::StringValue("sluice-worker".to_owned())));
    assert_eq!(text("service.instance.id"), Some(Value::StringValue("worker w-1".to_owned())));
    let one = &of.scope_spans[0].spans[0];
    assert_eq!((one.trace_id.len(), one.span_id.len(), one.parent_span_id.len()), (16, 8, 8));
    assert_eq!((one.name.as_str(), one.kind()), ("service", OtlpKind::Server));
    assert_eq!(one.end_time_unix_nano - one.start_time_unix_nano, 500);
    assert_eq!(
        (one.events[0].name.as_str(), one.events[0].time_unix_nano),
        ("attempt sent", 1_700_000_000_000_000_100)
    );
    let status = one.status.as_ref().expect("it failed");
    assert_eq!((status.code, status.message.as_str()), (2, "it failed"));
    assert_eq!(one.attributes.len(), 2);
    wait_for(&tracer, 1, 0);
    drop(running);
}

#[test]
fn one_task_in_n_is_traced_in_each_process_the_same() {
    let (at, _received) = receiver(&[TAKEN]);
    let ((one, _first), (other, _second)) = (tracer(at, 10), tracer(at, 10));
    let taken = |tracer: &Tracer| (0..1_000).filter(|number| tracer.takes(task(*number))).collect::<Vec<_>>();
    assert_eq!(taken(&one).len(), 100);
    assert_eq!(taken(&one), taken(&other));
}

#[test]
fn a_collector_that_comes_late_gets_what_waited_and_what_found_no_room_is_counted() {
    let closed = sluice_ports::free_address();
    let (tracer, running) = tracer(closed, 1);
    let pushed = 20_000;
    (0..pushed).for_each(|number| tracer.push(span(number)));
    let dropped = tracer.counts().1;
    assert!(dropped > 0 && dropped < u64::from(pushed), "{dropped}");
    let received = receive(TcpListener::bind(closed).expect("it is still free"), &[TAKEN]);
    wait_for(&tracer, u64::from(pushed) - dropped, dropped);
    drop(running);
    let got = received.try_iter().map(|got| got.request.resource_spans[0].scope_spans[0].spans.len());
    assert_eq!(got.sum::<usize>() as u64, u64::from(pushed) - dropped);
}

#[test]
fn a_busy_collector_is_asked_again_and_one_that_refuses_is_not() {
    let busy = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
    let (at, received) = receiver(&[busy, TAKEN]);
    let (first, running) = tracer(at, 1);
    first.push(span(1));
    wait_for(&first, 1, 0);
    assert_eq!(received.try_iter().count(), 2);
    drop(running);
    let (at, _received) = receiver(&["HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"]);
    let (second, _running) = tracer(at, 1);
    second.push(span(1));
    wait_for(&second, 0, 1);
}

#[test]
fn spans_that_the_collector_refuses_of_those_it_took_are_counted_as_dropped() {
    let partial = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\x0a\x02\x08\x01";
    let (at, _received) = receiver(&[partial]);
    let (tracer, _running) = tracer(at, 1);
    tracer.push(span(1));
    wait_for(&tracer, 0, 1);
}

/// A collector that accepts connections and never answers, or answers what is no HTTP.
#[test]
fn the_end_of_a_process_waits_for_no_collector() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (garbage, _received) = receiver(&["I am no web server\r\n\r\n"]);
    for at in [silent.local_addr().expect("bound"), garbage] {
        let (tracer, running) = tracer(at, 1);
        (0..2_000).for_each(|number| tracer.push(span(number)));
        drop(running);
        assert_eq!(tracer.counts().0, 0);
    }
}
