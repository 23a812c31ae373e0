//! Traces of a real rack: client, switches and workers write spans of the same tasks into the same traces,
//! and a real collector takes them, if this machine has one.

mod common;
#[path = "../../../run/traces/tests/receiver/mod.rs"]
mod receiver;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, read_to_string};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use common::{Running, SMALL, json, sluice, stderr};
use opentelemetry_proto::tonic::trace::v1::Span;
use receiver::{TAKEN, receiver};
use sluice_ports::free_address;

/// Two racks below a spine. The last spans, for which a process has a second at its end, are a small part.
const RACKS: &str = r#"
name = "racks"
policy = "dc-horus:idle-rack=random"
[racks]
count = 2
[[slice]]
name = "hold"
types = ["hold"]
[[worker]]
name = "w"
count = 2
slice = "hold"
service = "hold"
[load]
rate = 300
mix = "hold=1"
warm_up = "200ms"
length = "4s"
behind_max = "60s"
"#;

/// How far two processes' comparisons of the wall clock with the other one can be apart, in ns.
const CLOCKS_APART: u64 = 2_000;

/// Runs a small rack whose spans go to `at`, with these flags.
fn run(folder: &Path, plan: &str, one_in: &str, at: &str, flags: &[&str]) -> Output {
    std::fs::write(folder.join("small.toml"), plan).expect("written");
    let mut all = vec!["up", "small.toml", "--json", "--quiet", "--trace-one-in", one_in, "--otlp", at];
    all.extend(flags);
    sluice(folder, &all)
}

/// The spans of each trace, each with its process.
type TracesSeen = BTreeMap<Vec<u8>, Vec<(String, Span)>>;

/// All spans of a run by their traces, each with the service that wrote it, and how many tasks were sent.
fn traces(plan: &str, one_in: &str) -> (TracesSeen, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (at, received) = receiver(&[TAKEN]);
    let result = json(&run(folder.path(), plan, one_in, &format!("http://{at}"), &[]));
    let mut traces: BTreeMap<Vec<u8>, Vec<(String, Span)>> = BTreeMap::new();
    while let Ok(got) = received.recv_timeout(Duration::from_millis(500)) {
        for of in got.request.resource_spans {
            let attributes = of.resource.expect("a resource").attributes;
            let service = format!("{:?}", attributes.iter().find(|of| of.key == "service.name"));
            for span in of.scope_spans.into_iter().flat_map(|of| of.spans) {
                traces.entry(span.trace_id.clone()).or_default().push((service.clone(), span));
            }
        }
    }
    (traces, result["tasks"]["sent"].as_u64().expect("a number"))
}

/// Whether the client sent the task more than once: a busy machine may keep an answer for so long.
fn was_sent_again(spans: &[(String, Span)]) -> bool {
    spans.iter().any(|(_, span)| span.events.len() > 1)
}

/// Fails unless a trace is one tree whose spans lie within those that they are below.
fn check_tree(spans: &[(String, Span)]) {
    let ids: BTreeSet<_> = spans.iter().map(|(_, span)| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "no two spans have one name");
    // A try that another one overtook may still wait after the task has ended.
    if was_sent_again(spans) {
        return;
    }
    for (_, span) in spans {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        if span.parent_span_id.is_empty() {
            assert_eq!(span.name, "task");
            continue;
        }
        let above = spans.iter().find(|(_, above)| above.span_id == span.parent_span_id);
        let (_, above) = above.expect("its parent is there");
        // A worker that is kept from reading its socket counts a DISPATCH as received before that.
        let begins = above.start_time_unix_nano <= span.start_time_unix_nano + CLOCKS_APART;
        let lies = (begins || span.name == "worker")
            && span.end_time_unix_nano <= above.end_time_unix_nano + CLOCKS_APART;
        assert!(lies, "{span:#?} does not lie in {above:#?}");
    }
}

fn names(spans: &[(String, Span)]) -> BTreeSet<&str> {
    spans.iter().map(|(_, span)| span.name.as_str()).filter(|name| *name != "queue").collect()
}

/// The traces of tasks that were sent once. Fails unless nine in ten of all traces are whole, and each of
/// those is a tree.
fn sent_once(traces: &TracesSeen) -> Vec<&[(String, Span)]> {
    let all = ["run", "service", "switch", "switch wait", "task", "wait", "worker", "worker wait"];
    let whole: Vec<_> = traces.values().filter(|spans| names(spans).iter().eq(all.iter())).collect();
    assert!(whole.len() * 10 >= traces.len() * 9, "{} of {}", whole.len(), traces.len());
    for spans in &whole {
        check_tree(spans);
    }
    let once = whole.iter().filter(|spans| !was_sent_again(spans)).map(|spans| &spans[..]);
    let once: Vec<_> = once.collect();
    assert!(!once.is_empty(), "all {} were sent again", whole.len());
    once
}

#[test]
fn a_tasks_spans_of_client_switch_and_worker_are_one_tree() {
    let (traces, sent) = traces(&SMALL.replace("length = \"1s\"", "length = \"4s\""), "10");
    let expected = sent as usize / 10;
    assert!(traces.len() * 10 >= expected * 9, "{} of {expected}", traces.len());
    for spans in sent_once(&traces) {
        let of = |name: &str| &spans.iter().find(|(_, span)| span.name == name).expect("it is there").1;
        let (task, switch, worker, service) = (of("task"), of("switch"), of("worker"), of("run"));
        assert_eq!([&switch.parent_span_id, &worker.parent_span_id], [&task.span_id; 2]);
        assert_eq!(service.parent_span_id, worker.span_id);
        assert!(switch.end_time_unix_nano <= worker.end_time_unix_nano + CLOCKS_APART);
        assert_eq!(task.events[0].name, "attempt sent");
    }
}

#[test]
fn spine_and_leaf_each_have_a_span_in_a_tasks_trace() {
    let (traces, _) = traces(RACKS, "10");
    let mut seen = 0;
    for spans in sent_once(&traces) {
        let mut both: Vec<_> = spans.iter().filter(|(_, span)| span.name == "switch").collect();
        both.sort_by_key(|(_, span)| span.start_time_unix_nano);
        let [(spine, first), (leaf, second)] = both[..] else { continue };
        seen += 1;
        assert!(spine.contains("sluice-switch") && leaf.contains("sluice-leaf"), "{spine}, {leaf}");
        assert!(first.end_time_unix_nano <= second.start_time_unix_nano + CLOCKS_APART);
        let has = |span: &Span, key: &str| span.attributes.iter().any(|of| of.key == key);
        assert!(has(first, "sluice.rack.id") && has(second, "sluice.worker.id"));
    }
    assert!(seen > 0, "no task has a span in both");
}

#[test]
fn a_switch_that_is_in_no_socket_says_that_it_writes_no_spans() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = sluice(folder.path(), &["switch", "--io", "xdp", "--trace-one-in", "10"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--trace-one-in"), "{}", stderr(&output));
}

#[test]
fn a_collector_that_is_not_there_costs_one_line_and_no_task() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = format!("out = \"out\"\n{SMALL}");
    let result = json(&run(folder.path(), &plan, "1", &format!("http://{}", free_address()), &[]));
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    let log = read_to_string(folder.path().join("out/logs/switch.log")).expect("a log");
    assert_eq!(log.matches("traces-unsent").count(), 1, "{log}");
    let wrong = run(folder.path(), SMALL, "1", "127.0.0.1:4318", &[]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("--otlp"), "{}", stderr(&wrong));
}

#[test]
fn a_real_collector_takes_them() {
    collect("", "http", &[]);
}

#[test]
fn a_real_collector_takes_them_through_tls_and_asks_who_sends() {
    let files = [("cert_file", "own.pem"), ("key_file", "own.key"), ("client_ca_file", "own.pem")];
    let files = files.map(|(key, file)| format!("          {key}: {file}\n")).concat();
    let tls = format!("        tls:\n{files}");
    collect(&tls, "https", &["--otlp-ca", "own.pem", "--otlp-identity", "own.pem", "own.key"]);
}

/// Runs a rack whose spans go to a collector, if this machine has one. The files `own.pem` and `own.key` are
/// a certificate for this machine.
fn collect(tls: &str, scheme: &str, flags: &[&str]) {
    if Command::new("otelcol").arg("--version").output().is_err() {
        return println!("skipped: there is no otelcol in PATH");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = free_address();
    let config = format!(
        "receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: {at}\n{tls}\
         exporters:\n  debug:\n    verbosity: detailed\n\
         service:\n  telemetry:\n    metrics:\n      level: none\n  pipelines:\n    traces:\n      \
         receivers: [otlp]\n      exporters: [debug]\n"
    );
    std::fs::write(folder.path().join("otel.yaml"), config).expect("written");
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    std::fs::write(folder.path().join("own.pem"), own.cert.pem()).expect("written");
    std::fs::write(folder.path().join("own.key"), own.signing_key.serialize_pem()).expect("written");
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
    json(&run(folder.path(), SMALL, "10", &format!("{scheme}://{at}"), flags));
    for service in ["sluice-load", "sluice-switch", "sluice-worker"] {
        wait(&format!("service.name: Str({service})"));
    }
    for name in ["task", "worker", "switch", "switch wait", "run"] {
        assert!(said(&format!("Name           : {name}\n")), "{name}");
    }
}
