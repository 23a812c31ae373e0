//! Traces of a real rack: client and workers write spans of the same tasks into the same traces, and a real
//! collector takes them, if this machine has one.

mod common;
#[path = "../../../run/traces/tests/receiver/mod.rs"]
mod receiver;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, read_to_string};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use common::{Running, SMALL, free_tcp, json, sluice, stderr};
use opentelemetry_proto::tonic::trace::v1::Span;
use receiver::{TAKEN, receiver};

/// Runs a small rack whose spans go to `at`.
fn run(folder: &Path, one_in: &str, at: &str) -> Output {
    std::fs::write(folder.join("small.toml"), SMALL).expect("written");
    let flags = ["up", "small.toml", "--json", "--quiet", "--trace-one-in", one_in, "--otlp", at];
    sluice(folder, &flags)
}

#[test]
fn a_tasks_spans_of_client_and_worker_are_one_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let (at, received) = receiver(&[TAKEN]);
    let sent = json(&run(folder.path(), "10", &format!("http://{at}")))["tasks"]["sent"].as_u64();
    let mut traces: BTreeMap<Vec<u8>, Vec<Span>> = BTreeMap::new();
    while let Ok(got) = received.recv_timeout(Duration::from_millis(500)) {
        let spans = got.request.resource_spans.into_iter().flat_map(|of| of.scope_spans);
        for span in spans.flat_map(|of| of.spans) {
            traces.entry(span.trace_id.clone()).or_default().push(span);
        }
    }
    let expected = sent.expect("a number") as usize / 10;
    assert!(traces.len() >= expected, "{} of {expected}", traces.len());
    let names = |spans: &[Span]| spans.iter().map(|span| span.name.clone()).collect::<BTreeSet<_>>();
    let all = ["run", "service", "switch wait", "task", "wait", "worker", "worker wait"];
    let whole: Vec<_> = traces.values().filter(|spans| names(spans).iter().eq(all.iter())).collect();
    assert!(whole.len() * 10 >= traces.len() * 9, "{} of {}", whole.len(), traces.len());
    for spans in whole {
        let of = |name: &str| spans.iter().find(|span| span.name == name).expect("it is there");
        let (task, worker, service) = (of("task"), of("worker"), of("run"));
        assert!(task.parent_span_id.is_empty());
        assert_eq!(worker.parent_span_id, task.span_id);
        assert_eq!(service.parent_span_id, worker.span_id);
        assert!(task.start_time_unix_nano <= worker.start_time_unix_nano);
        assert!(worker.start_time_unix_nano <= service.start_time_unix_nano);
        assert!(service.end_time_unix_nano <= worker.end_time_unix_nano);
        assert_eq!(task.events[0].name, "attempt sent");
    }
}

#[test]
fn a_collector_that_is_not_there_costs_one_line_and_no_task() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = json(&run(folder.path(), "1", &format!("http://{}", free_tcp())));
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    let wrong = run(folder.path(), "1", "127.0.0.1:4318");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("--otlp"), "{}", stderr(&wrong));
}

#[test]
fn a_real_collector_takes_them() {
    if Command::new("otelcol").arg("--version").output().is_err() {
        return println!("skipped: there is no otelcol in PATH");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = free_tcp();
    let config = format!(
        "receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: {at}\n\
         exporters:\n  debug:\n    verbosity: detailed\n\
         service:\n  telemetry:\n    metrics:\n      level: none\n  pipelines:\n    traces:\n      \
         receivers: [otlp]\n      exporters: [debug]\n"
    );
    std::fs::write(folder.path().join("otel.yaml"), config).expect("written");
    let log = folder.path().join("otel.log");
    let open = || File::options().create(true).append(true).open(&log).expect("a file");
    let mut collector = Command::new("otelcol");
    collector.args(["--config", "file:otel.yaml"]).current_dir(folder.path()).stdout(open()).stderr(open());
    let _collector = Running(collector.spawn().expect("it starts"));
    let said = |what: &str| read_to_string(&log).is_ok_and(|said| said.contains(what));
    let wait = |what: &str| {
        let found = (0..1_200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            said(what)
        });
        assert!(found, "no {what}: {}", read_to_string(&log).unwrap_or_default());
    };
    wait("Everything is ready");
    json(&run(folder.path(), "10", &format!("http://{at}")));
    for what in ["service.name: Str(sluice-load)", "service.name: Str(sluice-worker)", "attempt sent"] {
        wait(what);
    }
    for name in ["task", "worker", "switch wait", "run"] {
        assert!(said(&format!("Name           : {name}")), "{name}");
    }
}
