//! What it costs a client to hand over the spans of a traced task: four, as many as of a task that was
//! answered. A worker hands over three. Encoding them and sending them is another thread's work.

use std::hint::black_box;
use std::num::NonZeroU32;

use sluice_net::clock::Clock;
use sluice_net::traces::{SpanKind, TaskSpan, TraceEndpoint, TraceId, Tracer, task_name};
use sluice_wire::{Incarnation, Nanos, Serial, TaskId};

use crate::scale::on_the_scale;

/// The spans below that of the task.
const PARTS: [&str; 3] = ["switch wait", "worker wait", "service"];

pub(super) fn spans(tasks: u32) {
    // Nobody takes the spans.
    let endpoint = TraceEndpoint::found(Some("http://127.0.0.1:9"), None).expect("an address");
    let (tracer, _running) = Tracer::start(endpoint, NonZeroU32::MIN, "load").expect("a thread");
    for sequence in 0..tasks {
        let task = black_box(TaskId { incarnation: Incarnation(7), sequence: Serial(sequence) });
        on_the_scale(|| {
            if tracer.takes(task) {
                hand_over(&tracer, task);
            }
        });
    }
}

fn hand_over(tracer: &Tracer, task: TaskId) {
    let (trace, clock) = (TraceId::of(task), Clock::start());
    let at = |ns| clock.to_realtime(Nanos(ns));
    let span = |part, parent, name| TaskSpan {
        trace,
        id: trace.span(part),
        parent,
        name,
        kind: SpanKind::Client,
        from_ns: at(1_000),
        to_ns: at(2_000),
        attributes: vec![("sluice.times", "length from the reply, place computed".into())],
        events: Vec::new(),
        failure: None,
    };
    (1..).zip(PARTS).for_each(|(part, name)| tracer.push(span(part, Some(trace.root()), name)));
    let mut whole = span(0, None, "task");
    whole.attributes = vec![
        ("sluice.task.id", task_name(task).into()),
        ("sluice.task.type", 1.into()),
        ("sluice.attempts", 1.into()),
        ("sluice.worker.id", 3.into()),
        ("sluice.outcome", "done".into()),
    ];
    whole.events = vec![(at(1_000), "attempt sent")];
    tracer.push(whole);
}
