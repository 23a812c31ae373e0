//! The port over real sockets: what it answers, whom it refuses, and that nobody keeps others from it.
#![allow(clippy::float_cmp, reason = "counts are whole numbers")]

mod strict;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use sluice_metrics::{
    MetricFamily, MetricSample, MetricSource, MetricsOutlets, ReportedProcesses, ServedMetrics, TextForm,
    written,
};

/// How many connections the port serves at once.
const PLACES: usize = 16;

fn values() -> Vec<MetricSample> {
    vec![
        MetricSample::count(MetricFamily::SwitchReceived, 7),
        MetricSample::count(MetricFamily::SwitchRefused, 1).with("reason", "foreign"),
        MetricSample::level(MetricFamily::SliceWaiting, 3).with("slice", "say \"hi\"\\\nthere"),
    ]
}

fn served(at: &str) -> (SocketAddr, ServedMetrics) {
    let outlets = MetricsOutlets::bind(Some(at.parse().expect("an address")), None).expect("a free port");
    let local = outlets.local().expect("it was asked for");
    (local, outlets.serve(vec![Arc::new(values)]).expect("a thread"))
}

/// What the port answers to these bytes, until it hangs up.
fn answer(at: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(at).expect("it listens");
    // Who is refused is hung up on while he still writes, and the connection reset behind its answer.
    stream.write_all(request.as_bytes()).ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    String::from_utf8(answer).expect("text")
}

/// The head and the body of an answer.
fn parts(answer: &str) -> (String, &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {answer}"));
    (head.to_ascii_lowercase(), body)
}

#[test]
fn a_scrape_is_answered_with_openmetrics_and_the_connection_closed() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        let (at, _served) = served(at);
        let got = answer(at, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n");
        let (head, body) = parts(&got);
        assert!(head.starts_with("http/1.1 200 ") && head.contains("connection: close"), "{head}");
        assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        assert!(!head.contains("content-encoding"), "nothing is compressed: {head}");
        let series = strict::read(body);
        assert_eq!(series["sluice_switch_packets_received_total"], 7.0);
        assert_eq!(series[r#"sluice_slice_tasks_waiting{slice="say \"hi\"\\\nthere"}"#], 3.0);
    }
}

#[test]
fn a_reader_of_the_old_form_gets_it() {
    let (at, _served) = served("127.0.0.1:0");
    let ask = |accept: &str| answer(at, &format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{accept}\r\n"));
    let old = ask("Accept: text/plain;version=0.0.4;q=1,*/*;q=0.1\r\n");
    let (head, body) = parts(&old);
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(body.contains("# TYPE sluice_switch_packets_received_total counter\n"), "{body}");
    assert!(body.contains("\nsluice_switch_packets_received_total 7\n") && !body.contains("# EOF"), "{body}");
    for new in [
        "",
        "Accept: */*\r\n",
        "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n",
    ] {
        assert!(ask(new).ends_with("# EOF\n"), "{new}");
    }
}

#[test]
fn head_has_no_body_and_http_1_0_is_understood() {
    let (at, _served) = served("127.0.0.1:0");
    let got = answer(at, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = parts(&got);
    assert!(head.starts_with("http/1.1 200 ") && body.is_empty(), "{got}");
    let length = head.split_once("content-length: ").expect("it says how long").1;
    assert!(!length.starts_with("0\r"), "{head}");
    let got = answer(at, "GET /metrics HTTP/1.0\r\n\r\n");
    assert!(got.starts_with("HTTP/1.0 200 ") && got.ends_with("# EOF\n"), "{got}");
}

#[test]
fn other_paths_methods_and_languages_are_refused() {
    let (at, _served) = served("127.0.0.1:0");
    let long = format!("GET /metrics HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    for (request, status, says) in [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404", "metrics are at /metrics"),
        ("GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n", "404", ""),
        ("GET /../metrics HTTP/1.1\r\nHost: x\r\n\r\n", "404", ""),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "405", "allow: GET, HEAD"),
        ("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405", "GET or HEAD"),
        ("\u{16}\u{3}\u{1} this is no HTTP\r\n\r\n", "400", ""),
        (&long, "431", ""),
    ] {
        let got = answer(at, request);
        // A reader that writes on may lose the answer.
        assert!(got.is_empty() && status == "431" || got.split(' ').nth(1) == Some(status), "{got}");
        assert!(got.contains(says), "{got}");
    }
    let query = answer(at, "GET /metrics?name[]=x HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(query.ends_with("# EOF\n"), "{query}");
}

#[test]
fn who_says_nothing_takes_a_place_only_until_he_is_hung_up_on() {
    let (at, _served) = served("127.0.0.1:0");
    let silent: Vec<TcpStream> = (0..PLACES).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    let ask = || answer(at, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let refused = ask();
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 503 "), "{refused}");
    // The last of them is hung up on without having said anything.
    let mut last = silent.last().expect("there are some");
    assert!(matches!(last.read(&mut [0; 512]), Ok(_) | Err(_)));
    drop(silent);
    let served = std::iter::repeat_with(ask).find(|got| got.starts_with("HTTP/1.1 200 "));
    assert!(served.expect("it ends").ends_with("# EOF\n"));
}

#[test]
fn an_address_that_is_taken_is_told_in_one_line_before_anything_is_served() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = taken.local_addr().expect("bound");
    let why = MetricsOutlets::bind(Some(at), None).expect_err("it is taken");
    let said = why.to_string();
    assert!(why.is_bad_input() && said.lines().count() == 1, "{said}");
    assert!(said.contains(&at.to_string()) && said.contains("choose another port"), "{said}");
    let nowhere = "192.0.2.1:0".parse().expect("an address");
    let said = MetricsOutlets::bind(Some(nowhere), None).expect_err("not this machine's").to_string();
    assert!(said.contains("not one of this machine's"), "{said}");
}

#[test]
fn a_port_that_is_stopped_hangs_up_and_can_be_had_again() {
    let (at, running) = served(&sluice_ports::free_address().to_string());
    let mut open = TcpStream::connect(at).expect("it listens");
    open.write_all(b"GET /metrics HTTP/1.1\r\n").expect("half a request");
    drop(running);
    let mut got = Vec::new();
    // The connection ends, or is reset.
    open.read_to_end(&mut got).ok();
    assert!(got.is_empty());
    let again = MetricsOutlets::bind(Some(at), None).expect("nothing listens there any more");
    assert_eq!(again.local(), Some(at));
}

#[test]
fn a_value_that_is_no_number_or_comes_twice_does_not_spoil_the_scrape() {
    let mut values = values();
    values.extend([
        MetricSample::level(MetricFamily::SwitchUp, f64::NAN),
        MetricSample::level(MetricFamily::SwitchEpoch, f64::INFINITY),
        MetricSample::count(MetricFamily::SwitchReceived, 8),
        MetricSample::level(MetricFamily::SwitchSent, 1),
    ]);
    let text = written(values, TextForm::OpenMetrics).expect("text");
    let series = strict::read(&text);
    assert_eq!(series["sluice_switch_packets_received_total"], 7.0);
    assert_eq!(series.len(), 3, "{text}");
    let none = written(Vec::new(), TextForm::OpenMetrics).expect("text");
    assert_eq!(none, "# EOF\n");
}

#[test]
fn a_launcher_serves_what_its_processes_report_and_says_who_is_silent() {
    let folder = tempfile::tempdir().expect("a folder");
    // The path of a socket may have 108 bytes, and that of a rack's folder more.
    let deep = folder.path().join("x".repeat(120));
    std::fs::create_dir(&deep).expect("a folder");
    let [one, two, dead] = ["1", "2", "3"].map(|name| deep.join(name));
    let report = |path: &std::path::Path| {
        let outlets = MetricsOutlets::bind(None, Some(path)).expect("a socket");
        outlets.serve(vec![Arc::new(values)]).expect("a thread")
    };
    let _one = report(&one);
    // A second life takes the place of the first.
    drop(report(&two));
    let second = report(&two);
    let names = [("switch", one), ("worker a", two), ("worker b", dead)];
    let processes = names.map(|(name, path)| (name.to_owned(), path)).to_vec();
    let outlets = MetricsOutlets::bind(Some("127.0.0.1:0".parse().expect("legal")), None).expect("a port");
    let at = outlets.local().expect("asked for");
    let source: Arc<dyn MetricSource> = Arc::new(ReportedProcesses::new(processes));
    let _served = outlets.serve(vec![source]).expect("a thread");
    let scrape = || {
        let got = answer(at, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        strict::read(parts(&got).1)
    };
    let up = |series: &strict::Series| {
        ["switch", "worker a", "worker b"]
            .map(|name| series[&format!("sluice_process_up{{process=\"{name}\"}}")] as u8)
    };
    let series = scrape();
    assert_eq!(up(&series), [1, 1, 0]);
    assert_eq!(series["sluice_switch_packets_received_total{process=\"worker a\"}"], 7.0);
    drop(second);
    let series = scrape();
    assert_eq!(up(&series), [1, 0, 0]);
    assert!(!series.contains_key("sluice_switch_packets_received_total{process=\"worker a\"}"));
}
