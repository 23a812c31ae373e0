//! HTTP/1.1 over a socket.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::common::example;
use super::rig::{KvRack, connect, exchange, has, read, text};

fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

#[test]
fn a_post_is_a_task_and_each_outcome_has_its_status() {
    let rack = KvRack::start();
    let (gateway, said) = rack.gateway(&["--http", "127.0.0.1:0"]);
    let at = text(&said, "http");
    let long = "x".repeat(65_537);
    for (request, status, parts) in [
        (post("/reverse", "", "stressed"), "200", &["sluice-outcome: done", "\r\n\r\ndesserts"][..]),
        (post("/9", "sluice-deadline: 2s\r\n", "abc"), "200", &["\r\n\r\ncba"]),
        (
            post("/kv-get", "", "x"),
            "500",
            &["sluice-outcome: failed", "sluice-why: failed", "the message of 1 bytes ends within"],
        ),
        (
            post("/spin", "", "x"),
            "404",
            &["sluice-outcome: refused", "sluice-why: no-slice", "it did not run"],
        ),
        (post("/3", "", "x"), "404", &["sluice-why: no-slice"]),
        (post("/nothing", "", "x"), "404", &["sluice-outcome: malformed", "sluice-why: no-type"]),
        (post("/0", "", "x"), "404", &["sluice-why: no-type"]),
        (post("/65536", "", "x"), "404", &["sluice-why: no-type"]),
        (post("/", "", "x"), "404", &["sluice-why: no-type"]),
        (post("/9", "", &long), "413", &["sluice-why: too-long"]),
        (post("/9", "sluice-deadline: soon\r\n", "x"), "400", &["sluice-deadline: "]),
        (post("/9", "sluice-budget: 0s\r\n", "x"), "400", &["sluice-budget is zero"]),
        (post("/9", "sluice-budget: 1s\r\n", "x"), "400", &["sluice-why: long-budget"]),
        (post("/9", "origin: http://evil.example\r\n", "x"), "403", &["sluice-why: origin"]),
        (b"GET /9 HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), "405", &["allow: POST"]),
        (
            b"POST /9 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n".to_vec(),
            "200",
            &["\r\n\r\nba"],
        ),
        (b"PING\r\n\r\n".to_vec(), "400", &[]),
    ] {
        let came = exchange(&at, &request);
        let asked = String::from_utf8_lossy(&request[..request.len().min(80)]).into_owned();
        assert!(came.starts_with(&format!("HTTP/1.1 {status} ")), "{asked}\n{came}");
        assert!(parts.iter().all(|part| came.contains(part)), "{asked}\n{came}");
    }
    gateway.ends_well();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let rack = KvRack::start();
    let (_gateway, said) = rack.gateway(&["--http", "127.0.0.1:0"]);
    let requests: Vec<u8> = (10..60).flat_map(|number| post("/reverse", "", &number.to_string())).collect();
    let came = exchange(&text(&said, "http"), &requests);
    let bodies: Vec<&str> = came.split("\r\n\r\n").skip(1).map(|rest| &rest[..2]).collect();
    let expected: Vec<String> =
        (10..60).map(|number: u32| number.to_string().chars().rev().collect()).collect();
    assert_eq!(bodies, expected);
}

#[test]
fn a_rack_without_workers_is_unavailable_and_one_that_stands_still_unknown() {
    let rack = KvRack::without_workers();
    let (gateway, said) = rack.gateway(&["--http", "127.0.0.1:0"]);
    let at = text(&said, "http");
    let came = exchange(&at, &post("/reverse", "sluice-deadline: 60s\r\n", "x"));
    assert!(came.starts_with("HTTP/1.1 503 ") && came.contains("sluice-why: no-workers"), "{came}");
    let mut worker = Command::new(example("reverse_service"));
    worker.args(["--controller", &rack.controller, "--slice", "words", "--quiet"]);
    let worker = super::common::Running(worker.stderr(Stdio::null()).spawn().expect("it starts"));
    rack.wait_for_workers(1);
    let pid = rustix::process::Pid::from_child(&worker.0);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it lives");
    let came = exchange(&at, &post("/reverse", "sluice-deadline: 2s\r\n", "x"));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it lives");
    assert!(came.starts_with("HTTP/1.1 504 ") && came.contains("sluice-outcome: unknown"), "{came}");
    // A connection that is open says goodbye when the gateway ends.
    let mut open = connect(&at);
    open.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("it is taken");
    assert!(read(&mut open, 12).ends_with("405"));
    gateway.ends_well();
}

#[test]
fn curl_sends_tasks() {
    if !has("sh") || !has_curl() {
        return;
    }
    let rack = KvRack::start();
    let (_gateway, said) = rack.gateway(&["--http", "127.0.0.1:0"]);
    let url = format!("http://{}", text(&said, "http"));
    let line = format!(
        "curl --silent --data stressed {url}/reverse; curl --silent --head {url}/reverse; \
         head -c 60000 /dev/zero | curl --silent --data-binary @- {url}/9 | wc -c"
    );
    let ended = Command::new("sh").args(["-c", &line]).output().expect("a shell");
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(out.starts_with("dessertsHTTP/1.1 405") && out.trim_end().ends_with("\n60000"), "{out}");
}

/// Whether curl is here.
pub(crate) fn has_curl() -> bool {
    let there = Command::new("sh").args(["-c", "curl --version"]).output();
    let there = there.is_ok_and(|ended| ended.status.success());
    if !there {
        eprintln!("skipped: there is no curl");
    }
    there
}
