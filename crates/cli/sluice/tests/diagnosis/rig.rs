//! Racks of single processes, and what `sluice status` finds wrong with them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sluice_ports::free_address;

use crate::common::{Running, command, json, sluice_succeeds, stdout};

/// Two workers that hold, without a load.
pub(crate) const PLAN: &str = r#"
name = "rack"
[[slice]]
name = "work"
types = ["hold"]
limit = 64
[[worker]]
name = "w"
count = 2
slice = "work"
service = "hold"
"#;

/// The plan with times of packets and queues that are ten times as long, for a machine that has too much to
/// do. Leases stay as they are.
pub(crate) fn patient() -> String {
    PLAN.replace("name = \"rack\"", "name = \"rack\"\ndilation = 10")
}

/// More looks than anything here needs to come true.
const MOST_LOOKS: usize = 1_200;
const BETWEEN: Duration = Duration::from_millis(100);

/// A rack in a folder of its own.
pub(crate) struct Rack {
    folder: tempfile::TempDir,
    /// Flags of `status`, if another controller than the only one is to be asked.
    pub(crate) asks: Vec<String>,
}

impl Rack {
    /// A folder with this plan.
    pub(crate) fn of(plan: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("rack.toml"), plan).expect("written");
        Self { folder, asks: Vec::new() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the whole rack, and waits until its workers are ready.
    pub(crate) fn up(&self) -> Running {
        let up = command(self.folder(), &["up", "rack.toml"]).stderr(Stdio::piped()).spawn();
        let mut up = Running(up.expect("it starts"));
        let said = BufReader::new(up.0.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let mut said = said.filter(|line| line.contains("workers are ready"));
        assert!(said.next().is_some(), "it was never ready");
        std::thread::spawn(move || said.for_each(drop));
        up
    }

    /// Starts a switch or a controller on ports that it may have again, and returns the address of its calls.
    pub(crate) fn listens(&self, args: &[&str]) -> (Running, String) {
        let [listen, control] = [(); 2].map(|()| free_address().to_string());
        let listen: &[&str] = if args[0] == "switch" { &["--listen", &listen] } else { &[] };
        let args = [args, &["--json", "--control", &control], listen].concat();
        Self::started(command(self.folder(), &args))
    }

    pub(crate) fn started(mut command: Command) -> (Running, String) {
        let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut running = Running(started.expect("it starts"));
        let mut line = String::new();
        let mut said = BufReader::new(running.0.stdout.take().expect("piped"));
        said.read_line(&mut line).expect("a line");
        let line: Value = serde_json::from_str(&line).expect("JSON");
        let control = line["control"].as_str().or_else(|| line["controls"][0].as_str());
        let control = control.unwrap_or_else(|| panic!("{line}")).to_owned();
        (running, control)
    }

    /// Starts a process that says nothing.
    pub(crate) fn quiet(&self, args: &[&str]) -> Running {
        let started = command(self.folder(), args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Running(started.expect("it starts"))
    }

    /// Asks until it is answered.
    fn asked(&self, flags: &[&str]) -> std::process::Output {
        let asks = self.asks.iter().map(String::as_str);
        let args: Vec<&str> = ["status"].into_iter().chain(asks).chain(flags.iter().copied()).collect();
        sluice_succeeds(self.folder(), &args)
    }

    pub(crate) fn status(&self) -> Value {
        json(&self.asked(&["--json"]))
    }

    /// What people read.
    pub(crate) fn text(&self) -> String {
        stdout(&self.asked(&[]))
    }

    /// Looks until it is so.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..MOST_LOOKS {
            last = self.status();
            if is_so(&last) {
                return last;
            }
            sleep(BETWEEN);
        }
        panic!("never {what}: {last:#}")
    }

    /// Looks until a finding of this code is told, and returns it. `each` runs before each look.
    pub(crate) fn finds_while(&self, code: &str, mut each: impl FnMut()) -> Value {
        let told = self.until(code, |status| {
            each();
            of_code(status, code).is_some()
        });
        of_code(&told, code).expect("just seen").clone()
    }

    pub(crate) fn finds(&self, code: &str) -> Value {
        self.finds_while(code, || {})
    }

    /// Looks until nothing is wrong.
    pub(crate) fn is_in_order(&self) {
        self.until("in order", |status| {
            codes(status).is_empty() && self.text().contains("nothing wrong found")
        });
    }

    /// Looks for so long, in which nothing may be wrong.
    pub(crate) fn stays_in_order(&self, span: Duration) {
        let end = Instant::now() + span;
        while Instant::now() < end {
            let status = self.status();
            assert_eq!(codes(&status), [""; 0], "{:?} before the end: {status:#}", end - Instant::now());
            sleep(BETWEEN);
        }
    }

    /// Looks until so many workers take tasks.
    pub(crate) fn has_workers(&self, count: usize) {
        self.until("all its workers", |status| status["workers"].as_array().map(Vec::len) == Some(count));
    }
}

pub(crate) fn of_code<'a>(status: &'a Value, code: &str) -> Option<&'a Value> {
    status["findings"].as_array()?.iter().find(|finding| finding["code"] == code)
}

pub(crate) fn codes(status: &Value) -> Vec<&str> {
    let found = status["findings"].as_array().expect("a list").iter();
    found.filter_map(|finding| finding["code"].as_str()).collect()
}

pub(crate) fn signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).expect("it lives");
}
