//! The example service and the example client of the manual, run as programs.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::rack::Rack;

#[test]
fn the_ten_line_service_and_client_work_and_the_service_sums_up_on_sigterm() {
    let rack = Rack::start();
    let service = service(&["--controller", &rack.controller(), "--json"]);
    rack.until_serving(1);
    let output = client(&[&rack.controller(), "stressed"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "desserts\n");

    let (code, stdout, stderr) = terminate(service);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("1 tasks in"), "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("one JSON object");
    assert_eq!(report["schema"], "sluice.worker.v1");
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../schemas/worker.v1.json"))
            .expect("the schema is JSON");
    assert_eq!(keys(&report), keys(&schema["properties"]));
    for part in ["dropped", "packets"] {
        assert_eq!(keys(&report[part]), keys(&schema["properties"][part]["properties"]));
    }
    assert_eq!((&report["finished"], &report["drained"]), (&1.into(), &true.into()));
}

#[test]
fn a_flag_that_makes_no_sense_ends_with_two_and_one_line() {
    for flags in [&["--quota", "17"][..], &["--faults", "lost=1"], &["--listen", "0.0.0.0:0"], &["--frob"]] {
        let output =
            Command::new(example("reverse_service")).args(flags).arg("--json").output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let error: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!(error["error"]["kind"], "bad_input");
    }
}

/// A pipe whose reader is gone, and a full disk.
fn sinks() -> [Stdio; 2] {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    [writer.into(), File::options().write(true).open("/dev/full").expect("Linux has it").into()]
}

#[test]
fn a_client_and_a_service_that_nobody_reads_end_as_they_would_have_and_do_not_hide_a_full_disk() {
    let rack = Rack::start();
    for (sink, code) in sinks().into_iter().zip([0, 1]) {
        let service = service_to(&["--controller", &rack.controller(), "--json"], sink);
        rack.until_serving(1);
        assert!(client(&[&rack.controller(), "stressed"]).status.success());
        let (ended, _, stderr) = terminate(service);
        assert_eq!(ended, Some(code), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
    let _service = Killed(service(&["--controller", &rack.controller(), "--quiet"]));
    rack.until_serving(1);
    for (name, args) in [
        ("reverse_client", vec![rack.controller(), "stressed".to_owned()]),
        ("secure_client", vec!["stressed".to_owned(), "--controller".to_owned(), rack.controller()]),
    ] {
        for (sink, code) in sinks().into_iter().zip([0, 1]) {
            let output = Command::new(example(name)).args(&args).stdout(sink).output().expect("it runs");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{name}: {stderr}");
            assert!(!stderr.contains("panicked"), "{name}: {stderr}");
        }
    }
}

#[test]
fn a_client_says_why_it_cannot_also_where_nobody_listens() {
    for (args, code) in [(&[][..], 2), (&["nonsense", "word"], 1)] {
        for sink in sinks() {
            let status = Command::new(example("reverse_client")).args(args).stderr(sink).status();
            assert_eq!(status.expect("it runs").code(), Some(code), "{args:?}");
        }
    }
}

/// Sends SIGTERM. Returns the exit code, stdout and stderr.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn service_to(flags: &[&str], stdout: Stdio) -> Child {
    let mut command = Command::new(example("reverse_service"));
    command.args(flags).stdout(stdout).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn service(flags: &[&str]) -> Child {
    service_to(flags, Stdio::piped())
}

fn client(args: &[&str]) -> Output {
    Command::new(example("reverse_client")).args(args).output().expect("it runs")
}

/// Sends SIGTERM; gives the exit code and what the child said.
fn terminate(mut child: Child) -> (Option<i32>, String, String) {
    let killed =
        Command::new("sh").args(["-c", &format!("kill {}", child.id())]).status().expect("there is a shell");
    assert!(killed.success());
    let give_up = Instant::now() + Duration::from_mins(2);
    let code = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status.code();
        }
        assert!(Instant::now() < give_up, "it did not end");
        thread::sleep(Duration::from_millis(10));
    };
    let (mut stdout, mut stderr) = (String::new(), String::new());
    if let Some(mut piped) = child.stdout.take() {
        piped.read_to_string(&mut stdout).expect("text");
    }
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
    (code, stdout, stderr)
}

fn keys(object: &serde_json::Value) -> Vec<&String> {
    let mut keys: Vec<&String> = object.as_object().expect("an object").keys().collect();
    keys.sort();
    keys
}

/// The folder in which cargo puts examples: beside this test's own.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let path =
        test.parent().and_then(|deps| deps.parent()).expect("a folder above").join("examples").join(name);
    if !path.exists() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "-q", "-p", "sluice-net", "--example", name])
            .status()
            .expect("cargo runs");
        assert!(built.success());
    }
    path
}
