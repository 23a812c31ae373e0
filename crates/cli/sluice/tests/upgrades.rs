//! Each process of a rack is replaced while a load runs: it is asked to end as a service manager does, and
//! the same program starts anew. No task may be lost, refused or end as unknown. The processes are separate,
//! on loopback. With SLUICE_BEFORE, the program of an earlier build, each replacement is by the other build,
//! as `scripts/upgrade-from` runs it.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Running, command, free_tcp, free_udp, hearing_hup, hold_to_schema, json, sluice, terminate};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A rack whose address stays while its switch is replaced. Three workers serve at once, so that one may be
/// missing.
const PLAN: &str = r#"
name = "upgraded"
[switch]
listen = "SWITCH"
control = "CONTROL"
[[slice]]
name = "work"
types = ["hold"]
[[worker]]
name = "w"
count = 3
slice = "work"
service = "hold"
"#;

/// How often a controller is replaced; other processes are about as often.
const TIMES: usize = 3;
/// Names the program of an earlier build.
const BEFORE: &str = "SLUICE_BEFORE";

/// A running process of the rack, and how to start another.
struct ReplacedPart<'f> {
    folder: &'f Path,
    args: Vec<String>,
    process: Running,
    /// The line by which it says where it listens, if it says so.
    listening: Option<BufReader<ChildStdout>>,
}

impl<'f> ReplacedPart<'f> {
    fn start(folder: &'f Path, args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let (process, listening) = spawn(folder, &args);
        Self { folder, args, process, listening }
    }

    /// Asks it to end, waits for that, and starts it anew at once. SIGHUP, at which it reads its certificates
    /// anew, has not ended it before.
    fn replace(&mut self) {
        kill_process(Pid::from_child(&self.process.0), Signal::HUP).expect("it lives");
        let (next, listening) = {
            terminate(&self.process.0);
            let code = self.process.0.wait().expect("it ends").code();
            assert_eq!(code, Some(0), "{:?}", self.args);
            spawn(self.folder, &self.args)
        };
        (self.process, self.listening) = (next, listening);
    }
}

/// The program for the next process: under SLUICE_BEFORE, the earlier build and this one in turn.
fn program(folder: &Path, args: &[&str]) -> Command {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let before =
        std::env::var_os(BEFORE).filter(|_| STARTED.fetch_add(1, Ordering::Relaxed).is_multiple_of(2));
    let Some(before) = before else { return command(folder, args) };
    let mut command = hearing_hup(before.to_str().expect("a path of text"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", folder.join("runtime"));
    command
}

/// Starts a process, and waits until it listens, if it says when.
fn spawn(folder: &Path, args: &[String]) -> (Running, Option<BufReader<ChildStdout>>) {
    let says = args.iter().any(|arg| arg == "--json") && args[0] != "worker";
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let stdout = if says { Stdio::piped() } else { Stdio::null() };
    let child = program(folder, &args).stdout(stdout).stderr(Stdio::null()).spawn().expect("it starts");
    let mut process = Running(child);
    let listening = process.0.stdout.take().map(|stdout| {
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it says where it listens");
        assert!(line.contains("sluice.listening.v1"), "{args:?}: {line}");
        stdout
    });
    (process, listening)
}

/// A rack under load.
struct LoadedRack {
    folder: tempfile::TempDir,
    control: SocketAddr,
    /// How many workers its controller knows, or leaves above them.
    workers: usize,
}

impl LoadedRack {
    fn new(plan: &str, workers: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let control = free_tcp();
        let plan = plan.replace("SWITCH", &free_udp().to_string()).replace("CONTROL", &control.to_string());
        std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
        Self { folder, control, workers }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn worker(&self, name: &str, controller: SocketAddr) -> ReplacedPart<'_> {
        let at = controller.to_string();
        ReplacedPart::start(
            self.path(),
            &["worker", "--plan", "plan.toml", "--name", name, "--controller", &at],
        )
    }

    fn workers(&self) -> Vec<ReplacedPart<'_>> {
        let workers = ["w-1", "w-2", "w-3"].map(|name| self.worker(name, self.control));
        self.wait(|status| self.is_whole(status));
        workers.into()
    }

    /// Whether the switch is up and all workers serve.
    fn is_whole(&self, status: &Value) -> bool {
        let workers = status["workers"]
            .as_array()
            .map_or(0, |workers| workers.iter().filter(|worker| worker["phase"] == "open").count());
        workers == self.workers && status["switch"]["link"] == "up"
    }

    /// Waits until the rack's status is so.
    fn wait(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let control = self.control.to_string();
        loop {
            let output = sluice(self.path(), &["status", "--controller", &control, "--json"]);
            if output.status.success() {
                let status = json(&output);
                if is_so(&status) {
                    return status;
                }
            }
        }
    }

    /// Runs `replaces` while a load runs; each of its steps waits until the rack serves again. Then checks
    /// that every task got a reply.
    fn under_load(&self, rate: &str, replaces: impl FnOnce()) {
        let control = self.control.to_string();
        let args = ["load", "--controller", &control, "--mix", "hold=1", "--rate", rate, "--warm-up", "0s"];
        let more = ["--length", "10min", "--deadline", "60s", "--json"];
        let mut load = command(self.path(), &[&args[..], &more].concat());
        let load = load.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut load = Running(load);
        self.wait(|status| tasks(status) > 0);
        replaces();
        terminate(&load.0);
        let mut text = String::new();
        load.0.stdout.take().expect("piped").read_to_string(&mut text).expect("it is text");
        let result: Value = serde_json::from_str(&text).expect("a result");
        hold_to_schema(&result);
        let tasks = &result["tasks"];
        for of in ["lost", "unknown", "refused", "failed"] {
            assert_eq!(tasks[of].as_u64().unwrap_or(0), 0, "{of}: {tasks}");
        }
        assert!(tasks["replied"].as_u64() > Some(0), "{tasks}");
        assert_eq!(tasks["sent"], tasks["replied"], "{tasks}");
    }

    /// Waits until all workers serve and tasks reach them.
    fn serves_again(&self) {
        let before = tasks(&self.wait(|status| self.is_whole(status)));
        self.wait(|status| self.is_whole(status) && tasks(status) > before);
    }
}

/// How many tasks the switch dispatched in its life.
fn tasks(status: &Value) -> u64 {
    status["switch"]["counters"]["dispatched"].as_u64().unwrap_or(0)
}

#[test]
fn a_switch_on_a_socket_and_its_workers_are_replaced_under_load_and_every_task_is_answered() {
    let rack = LoadedRack::new(PLAN, 3);
    let mut switch = ReplacedPart::start(rack.path(), &["switch", "plan.toml", "--json"]);
    let mut workers = rack.workers();
    rack.under_load("200", || {
        for worker in &mut workers {
            switch.replace();
            rack.serves_again();
            worker.replace();
            rack.serves_again();
        }
    });
}

#[test]
fn a_controller_in_a_process_of_its_own_and_then_its_switch_are_replaced_under_load() {
    let tables = free_tcp().to_string();
    let rack = LoadedRack::new(PLAN, 3);
    let control = rack.control.to_string();
    let apart = ["switch", "plan.toml", "--json", "--controller-apart", "--control", &tables];
    let mut switch = ReplacedPart::start(rack.path(), &apart);
    let own = ["controller", "plan.toml", "--json", "--tables", &tables, "--control", &control];
    let mut controller = ReplacedPart::start(rack.path(), &own);
    let _workers = rack.workers();
    if std::env::var_os(BEFORE).is_none() {
        let status = rack.wait(|status| status["builds"].as_array().is_some_and(|builds| builds.len() >= 5));
        let kinds = |kind: &str| {
            let builds = status["builds"].as_array().expect("a list").iter();
            builds.filter(|of| of["kind"] == kind && of["build"] == env!("CARGO_PKG_VERSION")).count()
        };
        assert_eq!([kinds("controller"), kinds("switch"), kinds("worker")], [1, 1, 3], "{status}");
    }
    rack.under_load("200", || {
        for _ in 0..TIMES {
            controller.replace();
            rack.serves_again();
        }
        switch.replace();
        rack.serves_again();
    });
}

#[test]
fn a_server_and_the_workers_beside_it_are_replaced_under_load() {
    let rack = LoadedRack::new(&(PLAN.to_owned() + "[rdma]\nservers = 1\n"), 3);
    let control = rack.control.to_string();
    let _switch = ReplacedPart::start(rack.path(), &["switch", "plan.toml", "--json"]);
    let beside = ["server", "plan.toml", "--json", "--controller", &control, "--name", "server-1"];
    let mut server = ReplacedPart::start(rack.path(), &[&beside[..], &["--memory", "memory"]].concat());
    let mut workers = rack.workers();
    rack.under_load("200", || {
        for worker in &mut workers {
            server.replace();
            rack.wait(|status| status["servers"].as_array().is_some_and(|servers| servers.len() == 1));
            worker.replace();
            rack.serves_again();
        }
    });
}

/// Two racks below a spine; each has two workers.
const RACKS: &str = r#"
name = "racks"
policy = "dc-rain:1,told=replies"
[switch]
listen = "SWITCH"
control = "CONTROL"
[racks]
count = 2
[[slice]]
name = "work"
types = ["hold"]
[[worker]]
name = "a"
count = 2
rack = 1
slice = "work"
service = "hold"
[[worker]]
name = "b"
count = 2
rack = 2
slice = "work"
service = "hold"
"#;

#[test]
fn leaves_and_their_spine_are_replaced_under_load() {
    let rack = LoadedRack::new(RACKS, 2);
    let above = rack.control.to_string();
    let mut spine = ReplacedPart::start(rack.path(), &["switch", "plan.toml", "--json", "--spine"]);
    let mut leaves = Vec::new();
    let mut workers = Vec::new();
    for (number, names) in [("1", ["a-1", "a-2"]), ("2", ["b-1", "b-2"])] {
        let (at, control) = (free_udp().to_string(), free_tcp());
        let role = ["switch", "plan.toml", "--json", "--leaf", number, "--above", &above, "--listen", &at];
        leaves.push(ReplacedPart::start(
            rack.path(),
            &[&role[..], &["--control", &control.to_string()]].concat(),
        ));
        workers.extend(names.map(|name| rack.worker(name, control)));
    }
    rack.wait(|status| rack.is_whole(status));
    rack.under_load("200", || {
        for leaf in &mut leaves {
            leaf.replace();
            rack.serves_again();
        }
        spine.replace();
        rack.serves_again();
    });
}

#[test]
fn a_worker_whose_service_does_not_return_is_ended_by_a_second_signal() {
    let load = "[load]\nrate = 1\nmix = \"spin=1\"\n[load.request.spin]\nbusy = \"10s\"\n";
    let rack = LoadedRack::new(&(PLAN.replace("hold", "spin") + load), 1);
    let control = rack.control.to_string();
    let _switch = ReplacedPart::start(rack.path(), &["switch", "plan.toml", "--json"]);
    let worker = ["worker", "spin", "--controller", &control, "--name", "w-1", "--drain-limit", "1min"];
    let mut worker = command(rack.path(), &worker);
    let worker = worker.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut worker = Running(worker);
    rack.wait(|status| status["workers"].as_array().is_some_and(|workers| workers.len() == 1));
    let args = ["load", "plan.toml", "--controller", &control];
    let load = command(rack.path(), &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _load = Running(load.expect("it starts"));
    rack.wait(|status| tasks(status) > 0);
    let pid = Pid::from_child(&worker.0);
    // Two equal signals that are pending at once count as one.
    kill_process(pid, Signal::TERM).expect("it lives");
    kill_process(pid, Signal::INT).expect("it lives");
    assert_eq!(worker.0.wait().expect("it ends").code(), Some(4));
}
