//! With a closed pipe every command ends as usual; with a full disk it reports an error in one line.

mod common;

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use common::{SMALL, command, sluice, stderr, stdout};
use sluice_ports::free_address;

/// Commands that end by themselves, with their arguments, and whether they have `--json`.
const SHORT: [(&str, &[&str], bool); 19] = [
    ("up", &["plan.toml", "--length", "200ms"], true),
    ("versus", &["--today", "reuseport", "--workers", "2", "--tasks", "1000", "--dilate", "20"], true),
    ("doctor", &[], true),
    ("policies", &[], true),
    ("resources", &[], true),
    (
        "profile",
        &["rocksdb", "--keys", "2000", "--samples", "100", "--get", "1", "--scan", "1", "--out", "p.toml"],
        true,
    ),
    ("write", &["--length", "300ms", "--rate", "10k", "--training", "1000"], true),
    ("sim", &["--load", "0.5", "--tasks", "2k", "--replications", "2"], true),
    ("sweep", &["rain:1", "central", "--load", "0.5", "--tasks", "2k", "--replications", "2"], true),
    ("compare", &["rain:1", "central", "--load", "0.5", "--tasks", "2k", "--replications", "2"], true),
    ("throughput", &["central", "--slo", "p99<200us", "--workers", "2", "--tasks", "2k"], true),
    ("table", &["central", "--only", "--workloads", "exp", "--tasks", "2k", "--replications", "2"], true),
    ("reproduce", &["--list"], true),
    ("report", &["study/study.json"], false),
    ("diff", &["study/study.json", "study/study.json"], true),
    ("replay-fault", &["3"], false),
    ("fault-runs", &["--count", "20"], true),
    ("completions", &["bash"], false),
    ("man", &["pages"], false),
];

/// Commands that need a rack, with their arguments beside its controller.
const ASKING: [(&str, &[&str], bool); 4] = [
    ("status", &[], true),
    ("load", &["plan.toml", "--length", "200ms", "--warm-up", "10ms", "--patience", "60s"], true),
    ("move", &["w-1", "work"], false),
    ("map", &["hold", "work"], false),
];

/// Commands that run until they are stopped.
const LASTING: [&str; 6] = ["switch", "controller", "worker", "server", "dashboard", "gateway"];

/// The target of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sink {
    /// A pipe whose reader is gone.
    Closed,
    /// A full disk.
    Full,
}

impl Sink {
    fn open(self) -> Stdio {
        match self {
            Self::Closed => {
                let (reader, writer) = std::io::pipe().expect("a pipe");
                drop(reader);
                writer.into()
            }
            Self::Full => OpenOptions::new().write(true).open("/dev/full").expect("Linux has it").into(),
        }
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("plan.toml"), SMALL).expect("written");
    folder
}

/// Whether the command ended well; on a busy machine a load may miss its gates.
fn is_well(args: &[&str], output: &Output) -> bool {
    let has_gates = matches!(args[0], "up" | "load");
    output.status.success() || has_gates && matches!(output.status.code(), Some(3 | 5))
}

/// Runs a command; one that asks a controller, up to ten times while it ends as with wrong input. A busy
/// machine may keep a controller from answering for a second.
fn answered(args: &[&str], run: impl Fn() -> std::io::Result<Output>) -> Output {
    let mut output = run().expect("sluice starts");
    for _ in 1..10 {
        if !args.contains(&"--controller") || output.status.code() != Some(2) {
            break;
        }
        output = run().expect("sluice starts");
    }
    output
}

/// Stdout goes to a closed pipe, which changes nothing, and to a full disk, which gives one line and exit
/// code 1.
fn holds_without_stdout(folder: &Path, args: &[&str]) {
    for sink in [Sink::Closed, Sink::Full] {
        let output = answered(args, || command(folder, args).stdout(sink.open()).output());
        let said = stderr(&output);
        let failures: Vec<&str> = said.lines().filter(|line| line.starts_with("sluice: ")).collect();
        assert!(!said.contains("panicked"), "{args:?} with stdout {sink:?}: {said}");
        match sink {
            Sink::Closed => assert!(
                is_well(args, &output) && (failures.is_empty() || !output.status.success()),
                "{args:?} with stdout {sink:?}: {}\n{said}",
                output.status
            ),
            Sink::Full => assert!(
                output.status.code() == Some(1)
                    && failures.len() == 1
                    && failures[0].contains("No space left"),
                "{args:?} with stdout {sink:?}: {}\n{said}",
                output.status
            ),
        }
    }
}

/// Stderr goes to a closed pipe or a full disk, which changes nothing.
fn holds_without_stderr(folder: &Path, args: &[&str]) {
    for sink in [Sink::Closed, Sink::Full] {
        let output = answered(args, || command(folder, args).stderr(sink.open()).output());
        assert!(is_well(args, &output), "{args:?} with stderr {sink:?}: {}", output.status);
        assert!(!stdout(&output).is_empty(), "{args:?} with stderr {sink:?} prints nothing");
    }
}

fn subcommands() -> Vec<String> {
    let help = sluice(Path::new("."), &["--help"]);
    let help = stdout(&help);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    listed.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_command_is_tried() {
    let mut tried: Vec<&str> = SHORT.iter().chain(&ASKING).map(|(name, ..)| *name).chain(LASTING).collect();
    let mut there = subcommands();
    there.retain(|name| name != "help");
    tried.sort_unstable();
    there.sort_unstable();
    assert_eq!(tried, there, "add a new command to one of the lists above");
}

#[test]
fn help_ends_quietly_where_nobody_reads_it() {
    let folder = folder();
    holds_without_stdout(folder.path(), &["--help"]);
    holds_without_stdout(folder.path(), &["--version"]);
    for sink in [Sink::Closed, Sink::Full] {
        let unasked = command(folder.path(), &[]).stderr(sink.open()).output().expect("sluice starts");
        assert!(unasked.status.success(), "help that nobody asked for, stderr {sink:?}: {}", unasked.status);
    }
    for name in subcommands().iter().filter(|name| *name != "help") {
        holds_without_stdout(folder.path(), &[name.as_str(), "--help"]);
    }
}

#[test]
fn wrong_input_keeps_its_exit_code_where_nobody_hears_why() {
    let folder = folder();
    for sink in [Sink::Closed, Sink::Full] {
        for args in [&["sim"][..], &["upp", "--json"]] {
            let output = command(folder.path(), args).stdout(sink.open()).stderr(sink.open()).output();
            assert_eq!(output.expect("sluice starts").status.code(), Some(2), "{args:?} {sink:?}");
        }
    }
}

#[test]
fn a_command_that_ends_by_itself_minds_neither_a_closed_pipe_nor_hides_a_full_disk() {
    let folder = folder();
    let study = ["sim", "--load", "0.5", "--tasks", "2k", "--replications", "2", "--out", "study"];
    assert!(sluice(folder.path(), &study).status.success());
    for (name, args, knows_json) in SHORT {
        let args = [&[name], args].concat();
        holds_without_stdout(folder.path(), &args);
        holds_without_stderr(folder.path(), &args);
        if knows_json {
            let args = [&args[..], &["--json"]].concat();
            holds_without_stdout(folder.path(), &args);
            holds_without_stderr(folder.path(), &args);
        }
    }
}

/// The parts of a rack; dropping this value stops them.
struct Parts(Vec<Child>);

impl Drop for Parts {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Starts a part that prints its addresses as JSON; returns the value of `key`.
fn start(parts: &mut Parts, mut command: Command, key: &str) -> String {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("sluice starts");
    let mut line = String::new();
    let read = BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line);
    parts.0.push(child);
    read.expect("its first line");
    let said: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    said[key].as_str().expect("an address").to_owned()
}

#[test]
fn a_command_that_asks_a_rack_minds_neither_a_closed_pipe_nor_hides_a_full_disk() {
    let folder = folder();
    let mut parts = Parts(Vec::new());
    let switch = ["switch", "plan.toml", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--json"];
    let controller = start(&mut parts, command(folder.path(), &switch), "control");
    for name in ["w-1", "w-2"] {
        let worker = ["worker", "hold", "--name", name, "--slice", "work", "--controller", &controller];
        let child = command(folder.path(), &worker).stderr(Stdio::null()).spawn().expect("sluice starts");
        parts.0.push(child);
    }
    wait_for(folder.path(), &controller, "workers", 2);
    for (name, args, knows_json) in ASKING {
        let args = [&[name], args, &["--controller", &controller]].concat();
        holds_without_stdout(folder.path(), &args);
        holds_without_stderr(folder.path(), &args);
        if knows_json {
            holds_without_stdout(folder.path(), &[&args[..], &["--json"]].concat());
        }
    }
    // A watch ends when its output is no longer read.
    let watch = ["status", "--watch", "--every", "50ms", "--controller", &controller];
    holds_without_stdout(folder.path(), &watch);
    holds_without_stdout(folder.path(), &[&watch[..], &["--json"]].concat());
}

/// Waits until this controller answers and shows `count` rows of `what`.
fn wait_for(folder: &Path, controller: &str, what: &str, count: usize) {
    for _ in 0..2_400 {
        let asked: Output = sluice(folder, &["status", "--json", "--controller", controller]);
        let said: Option<serde_json::Value> = serde_json::from_str(&stdout(&asked)).ok();
        let rows = said.as_ref().and_then(|said| said[what].as_array()).map(Vec::len);
        if rows == Some(count) {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("no {count} {what} at {controller}");
}

/// Asks a child to end; returns its exit code.
fn ended(mut child: Child) -> Option<i32> {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it lives");
    child.wait().expect("it ends").code()
}

#[test]
fn a_part_that_runs_until_it_is_stopped_does_not_need_anybody_to_listen() {
    let folder = folder();
    for json in [false, true] {
        let with_json = |args: &[&str]| {
            let mut command = command(folder.path(), args);
            command.args(json.then_some("--json")).stdout(Sink::Closed.open()).stderr(Sink::Closed.open());
            command.spawn().expect("sluice starts")
        };
        let (tables, control) = (free_address().to_string(), free_address().to_string());
        let state = format!("state-{json}");
        let switch =
            ["switch", "plan.toml", "--listen", "127.0.0.1:0", "--control", &tables, "--state", &state];
        let mut parts = vec![with_json(&[&switch[..], &["--controller-apart"]].concat())];
        parts.push(with_json(&["controller", "plan.toml", "--tables", &tables, "--control", &control]));
        wait_for(folder.path(), &control, "slices", 1);
        let listen = free_address().to_string();
        let server =
            ["server", "--name", "s", "--memory", &state, "--listen", &listen, "--controller", &control];
        parts.push(with_json(&server));
        parts.push(with_json(&["worker", "hold", "--slice", "work", "--controller", &control]));
        let page = free_address().to_string();
        parts.push(with_json(&["dashboard", "--listen", &page, "--controller", &control]));
        let resp = free_address().to_string();
        parts.push(with_json(&["gateway", "--resp", &resp, "--controller", &control]));
        while TcpStream::connect(&page).is_err() || TcpStream::connect(&resp).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
        wait_for(folder.path(), &control, "servers", 1);
        wait_for(folder.path(), &control, "workers", 1);
        // The worker ends first: it waits until the switch has noticed.
        let codes: Vec<Option<i32>> = parts.into_iter().rev().map(ended).collect();
        assert_eq!(codes, [Some(0); 6], "gateway, page, worker, server, controller, switch; --json: {json}");
    }
}

#[test]
fn a_part_whose_first_line_finds_no_room_does_not_run_on_unheard() {
    let folder = folder();
    let args = ["switch", "plan.toml", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--json"];
    let full: File = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let output = command(folder.path(), &args).stdout(full).output().expect("sluice starts");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}
