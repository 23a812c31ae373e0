//! The spans of a client's traced tasks.
//!
//! A client knows when it sent each attempt and when the answer came. The answer says for how long the task
//! waited and ran; where these times lie between both ends is computed: what is left of the last attempt's
//! time is divided among its three hops.

use std::collections::HashMap;

use sluice_traces::{AttributeValue, SpanKind, TaskSpan, TraceId, Tracer, task_name};
use sluice_wire::{Nanos, TaskId, TaskType};

use super::outcome::{Outcome, TaskReply};
use crate::clock::Clock;

/// The most attempts of a task that become events.
const ATTEMPTS_MAX: usize = 64;

/// The tracer, if there is one, and its tasks that are under way.
#[derive(Default)]
pub(super) struct ClientTraces {
    tracer: Option<Tracer>,
    under_way: HashMap<TaskId, SentAttempts>,
}

/// When a task's attempts were sent.
struct SentAttempts {
    task_type: TaskType,
    at: Vec<Nanos>,
}

impl ClientTraces {
    pub(super) fn new(tracer: Option<Tracer>) -> Self {
        Self { tracer, under_way: HashMap::new() }
    }

    /// Notes an attempt.
    pub(super) fn sent(&mut self, task: TaskId, task_type: TaskType, at: Nanos) {
        if self.tracer.as_ref().is_some_and(|tracer| tracer.takes(task)) {
            let sent = || SentAttempts { task_type, at: Vec::new() };
            let attempts = &mut self.under_way.entry(task).or_insert_with(sent).at;
            if attempts.len() < ATTEMPTS_MAX {
                attempts.push(at);
            }
        }
    }

    /// Writes the spans of a task that ended at `at`, from when it was submitted.
    pub(super) fn ended(
        &mut self,
        task: TaskId,
        attempts: u16,
        outcome: &Outcome,
        (submitted, at): (Nanos, Nanos),
    ) {
        let Some(tracer) = self.tracer.as_ref().filter(|tracer| tracer.takes(task)) else { return };
        let Some(sent) = self.under_way.remove(&task) else { return };
        let (trace, clock) = (TraceId::of(task), Clock::start());
        // A reply that comes while the socket is read counts as received before that, so before parts of the
        // task ended elsewhere.
        let told = if matches!(outcome, Outcome::Reply(_)) { clock.now() } else { at };
        if let Outcome::Reply(reply) = outcome {
            for span in parts(trace, &clock, &sent.at, reply, at) {
                tracer.push(span);
            }
        }
        let unix = |at| clock.to_realtime(at);
        let mut attributes = vec![
            ("sluice.task.id", task_name(task).into()),
            ("sluice.task.type", i64::from(sent.task_type.0).into()),
            ("sluice.attempts", i64::from(attempts).into()),
        ];
        let failure = outcome_of(outcome, &mut attributes);
        tracer.push(TaskSpan {
            trace,
            id: trace.root(),
            parent: None,
            name: "task",
            kind: SpanKind::Client,
            from_ns: unix(submitted),
            to_ns: unix(told),
            attributes,
            events: sent.at.iter().map(|at| (unix(*at), "attempt sent")).collect(),
            failure,
        });
    }
}

/// Adds what the outcome says, and returns why it is a failure.
fn outcome_of(outcome: &Outcome, attributes: &mut Vec<(&'static str, AttributeValue)>) -> Option<String> {
    let kind = match outcome {
        Outcome::Reply(reply) => {
            attributes.push(("sluice.worker.id", i64::from(reply.worker.0).into()));
            if reply.failed { "failed" } else { "done" }
        }
        Outcome::Refused(_) => "refused",
        Outcome::Unknown(_) => "unknown",
    };
    attributes.push(("sluice.outcome", kind.into()));
    let failed = kind != "done";
    failed.then(|| {
        attributes.push(("error.type", kind.into()));
        outcome.to_string()
    })
}

/// What the reply tells of the way, as spans below the task's.
fn parts(trace: TraceId, clock: &Clock, attempts: &[Nanos], reply: &TaskReply, at: Nanos) -> Vec<TaskSpan> {
    let told = reply.switch_wait + reply.worker_wait + reply.service;
    // The answer is to the last attempt that leaves time for all of it.
    let fits = |sent: &&Nanos| at.since(**sent) >= told;
    let sent = attempts.iter().rev().find(fits).or(attempts.first()).copied().unwrap_or(at);
    let hop = Nanos(at.since(sent).since(told).0 / 3);
    let mut from = sent;
    let spans = [
        ("switch wait", hop, reply.switch_wait),
        ("worker wait", hop, reply.worker_wait),
        ("service", Nanos(0), reply.service),
    ];
    (1..)
        .zip(spans)
        .map(|(part, (name, hop, length))| {
            let begin = from + hop;
            from = begin + length;
            let times = (clock.to_realtime(begin), clock.to_realtime(from));
            TaskSpan {
                attributes: vec![("sluice.times", "length from the reply, place computed".into())],
                ..TaskSpan::within(trace, (trace.span(part), trace.root()), name, times)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_service_lie_within_the_attempt_that_was_answered_with_hops_of_one_length_between() {
        let ms = Nanos::from_millis;
        let reply =
            TaskReply { switch_wait: ms(4), worker_wait: ms(1), service: ms(2), ..TaskReply::default() };
        let trace = TraceId::of(TaskId::default());
        let clock = Clock::start();
        let at = clock.now();
        let attempts = [at - ms(100), at - ms(10), at - ms(3)];
        let parts = parts(trace, &clock, &attempts, &reply, at);
        let ago = |ns: u64| (clock.to_realtime(at) - ns) / 1_000_000;
        let spans: Vec<_> = parts.iter().map(|of| (of.name, ago(of.from_ns), ago(of.to_ns))).collect();
        assert_eq!(spans, [("switch wait", 9, 5), ("worker wait", 4, 3), ("service", 3, 1)]);
        assert!(parts.iter().all(|part| part.parent == Some(trace.root())));
    }
}
