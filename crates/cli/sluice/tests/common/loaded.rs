//! A rack under a load, whose processes are replaced: each is asked to end as a service manager does, and the
//! same program starts anew. With SLUICE_BEFORE, the program of an earlier build, each replacement is by the
//! other build. The processes are on loopback, or in network namespaces around a switch in the kernel.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sluice_kernel::spaces::{RackSpaces, Space, mounts_of_its_own};
use sluice_ports::free_address;

use super::{Running, command, hearing_hup, hold_to_schema, json, sluice, terminate};

/// Names the program of an earlier build.
pub(crate) const BEFORE: &str = "SLUICE_BEFORE";
/// The ports of a switch and its controller that have a namespace for themselves.
const PORTS: [u16; 2] = [7000, 7400];

/// A running process of the rack, and how to start another.
pub(crate) struct ReplacedPart<'f> {
    folder: &'f Path,
    /// Its network namespace, if it is not this thread's.
    space: Option<&'f Space>,
    args: Vec<String>,
    process: Running,
    /// The line by which it says where it listens, if it says so.
    listening: Option<BufReader<ChildStdout>>,
}

impl<'f> ReplacedPart<'f> {
    pub(crate) fn start(folder: &'f Path, args: &[&str]) -> Self {
        Self::start_in(None, folder, args)
    }

    fn start_in(space: Option<&'f Space>, folder: &'f Path, args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let (process, listening) = spawn(space, folder, &args);
        Self { folder, space, args, process, listening }
    }

    /// Asks it to end, waits for that, and starts it anew at once.
    pub(crate) fn replace(&mut self) {
        self.end();
        self.start_again();
    }

    /// Asks it to end, and waits for that. SIGHUP, at which it reads its certificates anew, has not ended it
    /// before.
    pub(crate) fn end(&mut self) {
        kill_process(Pid::from_child(&self.process.0), Signal::HUP).expect("it lives");
        terminate(&self.process.0);
        let code = self.process.0.wait().expect("it ends").code();
        assert_eq!(code, Some(0), "{:?}", self.args);
    }

    /// Starts it anew, after its end.
    pub(crate) fn start_again(&mut self) {
        (self.process, self.listening) = spawn(self.space, self.folder, &self.args);
    }

    /// Kills it, as a machine without memory does, and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.process.0.kill().expect("it lives");
        self.process.0.wait().expect("it ends");
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
fn spawn(space: Option<&Space>, folder: &Path, args: &[String]) -> (Running, Option<BufReader<ChildStdout>>) {
    let says = args.iter().any(|arg| arg == "--json") && args[0] != "worker";
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let stdout = if says { Stdio::piped() } else { Stdio::null() };
    let mut started = program(folder, &args);
    started.stdout(stdout).stderr(Stdio::null());
    let child = match space {
        Some(space) => space.within(|| started.spawn()).expect("root may move"),
        None => started.spawn(),
    };
    let mut process = Running(child.expect("it starts"));
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
pub(crate) struct LoadedRack {
    folder: tempfile::TempDir,
    /// The namespaces around a switch in the kernel. The first host's is the client's, where this thread is.
    spaces: Option<RackSpaces>,
    pub(crate) control: SocketAddr,
    /// How many workers its controller knows, or leaves above them.
    workers: usize,
}

impl LoadedRack {
    pub(crate) fn new(plan: &str, workers: usize) -> Self {
        Self::at(plan, workers, None, (free_address(), free_address()))
    }

    /// The same around a switch in the kernel: client and workers have each a namespace, and this thread
    /// moves into the client's for good. Takes root.
    pub(crate) fn in_spaces(plan: &str, workers: usize) -> Self {
        mounts_of_its_own().expect("root may make them");
        let spaces = RackSpaces::new(1 + workers).expect("root may make them");
        let ip = spaces.switch_addresses()[0];
        spaces.hosts()[0].space.enter().expect("root may move");
        Self::at(plan, workers, Some(spaces), PORTS.map(|port| (ip, port).into()).into())
    }

    fn at(
        plan: &str,
        workers: usize,
        spaces: Option<RackSpaces>,
        (switch, control): (SocketAddr, SocketAddr),
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = plan.replace("SWITCH", &switch.to_string()).replace("CONTROL", &control.to_string());
        std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
        Self { folder, spaces, control, workers }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the switch in the kernel, or a process beside it.
    pub(crate) fn beside_links(&self, args: &[&str]) -> ReplacedPart<'_> {
        let spaces = self.spaces.as_ref().expect("a rack in namespaces");
        ReplacedPart::start_in(Some(spaces.switch()), self.path(), args)
    }

    /// The flags that attach a switch in the kernel to all links.
    pub(crate) fn links(&self) -> Vec<String> {
        let links = self.spaces.iter().flat_map(RackSpaces::links);
        links.flat_map(|link| ["--interface".to_owned(), link.to_owned()]).collect()
    }

    pub(crate) fn worker(&self, name: &str, controller: SocketAddr) -> ReplacedPart<'_> {
        self.worker_in(None, name, controller)
    }

    /// A worker, in the namespace of this host if there is one.
    fn worker_in(&self, host: Option<usize>, name: &str, controller: SocketAddr) -> ReplacedPart<'_> {
        let at = controller.to_string();
        let args = ["worker", "--plan", "plan.toml", "--name", name, "--controller", &at];
        let listen = self.listen(host.unwrap_or_default());
        let listen: Vec<&str> = listen.iter().map(String::as_str).collect();
        let space = self.spaces.as_ref().zip(host).map(|(spaces, host)| &spaces.hosts()[host].space);
        ReplacedPart::start_in(space, self.path(), &[&args[..], &listen].concat())
    }

    /// The flag with the address of a host that has a namespace.
    fn listen(&self, host: usize) -> Vec<String> {
        let spaces = self.spaces.iter();
        let ips = spaces.map(|spaces| SocketAddr::new(spaces.hosts()[host].addresses()[0], 0));
        ips.flat_map(|at| ["--listen".to_owned(), at.to_string()]).collect()
    }

    pub(crate) fn workers(&self) -> Vec<ReplacedPart<'_>> {
        let all = ["w-1", "w-2", "w-3"].into_iter().zip(1..);
        let host = |host: usize| self.spaces.is_some().then_some(host);
        let workers = all.map(|(name, at)| self.worker_in(host(at), name, self.control)).collect();
        self.wait(|status| self.is_whole(status));
        workers
    }

    /// Whether the switch is up and all workers serve.
    pub(crate) fn is_whole(&self, status: &Value) -> bool {
        let workers = status["workers"]
            .as_array()
            .map_or(0, |workers| workers.iter().filter(|worker| worker["phase"] == "open").count());
        workers == self.workers && status["switch"]["link"] == "up"
    }

    /// Waits until the rack's status is so.
    pub(crate) fn wait(&self, is_so: impl Fn(&Value) -> bool) -> Value {
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
    pub(crate) fn under_load(&self, rate: &str, replaces: impl FnOnce()) {
        self.under_load_of(&["--rate", rate], replaces);
    }

    /// The same with a load that these flags describe.
    pub(crate) fn under_load_of(&self, flags: &[&str], replaces: impl FnOnce()) {
        let control = self.control.to_string();
        let args = ["load", "--controller", &control, "--mix", "hold=1", "--warm-up", "0s"];
        let more = ["--length", "10min", "--deadline", "60s", "--patience", "5min", "--json"];
        let listen = self.listen(0);
        let listen: Vec<&str> = listen.iter().map(String::as_str).collect();
        let mut load = command(self.path(), &[&args[..], &more, flags, &listen].concat());
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
    pub(crate) fn serves_again(&self) {
        let before = tasks(&self.wait(|status| self.is_whole(status)));
        self.wait(|status| self.is_whole(status) && tasks(status) > before);
    }
}

/// How many tasks the switch dispatched in its life.
pub(crate) fn tasks(status: &Value) -> u64 {
    status["switch"]["counters"]["dispatched"].as_u64().unwrap_or(0)
}
