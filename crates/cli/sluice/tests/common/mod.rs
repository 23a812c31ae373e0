//! Runs `sluice`, and checks its output against the schemas.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod controlled;
pub(crate) mod loaded;
pub(crate) mod namespaced;
pub(crate) mod page_rack;
pub(crate) mod relay;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A small rack without a database: two workers that hold, and 300 tasks a second.
pub(crate) const SMALL: &str = r#"
name = "small"
[[slice]]
name = "work"
types = ["hold"]
[[worker]]
name = "w"
count = 2
slice = "work"
service = "hold"
[load]
rate = 300
mix = "hold=1"
warm_up = "200ms"
length = "1s"
behind_max = "60s"
"#;

/// `sluice` with these arguments in `folder`, ready to start.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    build_rocksdb();
    let mut command = hearing_hup(env!("CARGO_BIN_EXE_sluice"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    // Hides the racks of other tests.
    command.env("XDG_RUNTIME_DIR", folder.join("runtime"));
    command
}

/// A program that SIGHUP ends, even if the tests run under `nohup`, whose children ignore it.
pub(crate) fn hearing_hup(program: &str) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP").arg(program);
    command
}

/// An example of `sluice-net`, where cargo puts it: beside the command.
pub(crate) fn example(name: &str) -> PathBuf {
    example_of("sluice-net", name)
}

/// An example of another of our packages.
pub(crate) fn example_of(package: &str, name: &str) -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_sluice"));
    let path = command.with_file_name("examples").join(name);
    if !path.exists() {
        let build = ["build", "-q", "--locked", "-p", package, "--example", name];
        assert!(Command::new(env!("CARGO")).args(build).status().expect("cargo runs").success());
    }
    path
}

/// A process that is killed with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn runs(&mut self) -> bool {
        self.0.try_wait().expect("it is ours").is_none()
    }

    /// The process of the worker with this name, if this is a running rack.
    pub(crate) fn worker_process(&self, name: &str) -> Pid {
        let parent = self.0.id();
        // Any of the rack's threads may have started it.
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).expect("it lives").flatten();
        let children =
            threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
        let children: String = children.collect::<Vec<_>>().join(" ");
        let is_it = |child: &&str| {
            let line = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            line.contains(&format!("--name\0{name}\0"))
        };
        let child = children.split_whitespace().find(is_it).unwrap_or_else(|| panic!("nobody is {name}"));
        child.parse().ok().and_then(Pid::from_raw).expect("a process")
    }

    /// Asks the process to end, and checks that it ends without an error.
    pub(crate) fn ends_well(self) {
        terminate(&self.0);
        self.has_ended_well();
    }

    /// Checks that a process which was asked to end before does so without an error. A worker that is asked
    /// twice ends at once, and says with its exit code if it held tasks.
    pub(crate) fn has_ended_well(mut self) {
        assert_eq!(self.0.wait().expect("it ends").code(), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Asks a child to end, as a service manager does.
pub(crate) fn terminate(child: &Child) {
    kill_process(Pid::from_child(child), Signal::TERM).expect("it lives");
}

/// Starts a switch of `plan.toml` alone; returns the address of its controller.
pub(crate) fn lone_switch(folder: &Path) -> (Running, String) {
    let anywhere = "127.0.0.1:0";
    let flags = ["switch", "plan.toml", "--json", "--quiet", "--listen", anywhere, "--control", anywhere];
    let mut switch = command(folder, &flags).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(switch.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it is");
    let said: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
    (Running(switch), said["control"].as_str().expect("an address").to_owned())
}

/// Runs `sluice` to its end.
pub(crate) fn sluice(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().expect("sluice starts")
}

/// Runs `sluice` until its output is so, or for two minutes. A controller that a busy machine keeps from
/// answering for a second counts as dead.
pub(crate) fn sluice_until(folder: &Path, args: &[&str], is_so: impl Fn(&Output) -> bool) -> Output {
    let patience = Instant::now() + Duration::from_mins(2);
    loop {
        let output = sluice(folder, args);
        if is_so(&output) || Instant::now() > patience {
            return output;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The same until it ends without an error.
pub(crate) fn sluice_succeeds(folder: &Path, args: &[&str]) -> Output {
    sluice_until(folder, args, |output| output.status.success())
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that no process of this folder's rack is left: their command lines contain the plan's path.
pub(crate) fn nothing_is_left_of(folder: &Path) {
    let mark = folder.to_string_lossy().into_owned();
    let runs = |pid: &str| {
        let folder_of = std::fs::read_link(format!("/proc/{pid}/cwd"));
        folder_of.is_ok_and(|folder_of| folder_of.to_string_lossy().starts_with(&mark))
    };
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let left: Vec<String> = std::fs::read_dir("/proc")
            .expect("procfs")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()) && runs(name))
            .collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < patience, "left behind: {left:?}");
        std::thread::yield_now();
    }
}

/// Checks that stdout is one JSON object that fits the schema that it names.
pub(crate) fn json(output: &Output) -> Value {
    let text = stdout(output);
    let value: Value =
        serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}\n{}", stderr(output)));
    hold_to_schema(&value);
    value
}

/// Checks that the value fits the schema that it names.
pub(crate) fn hold_to_schema(value: &Value) {
    let name = value["schema"].as_str().unwrap_or_else(|| panic!("no schema: {value}"));
    let file = name.strip_prefix("sluice.").expect("ours");
    let path = format!("{}/../../../schemas/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
    let schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{value:#}");
}

/// Builds the program for RocksDB beside `sluice`. If all crates are tested, it exists already.
fn build_rocksdb() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        if Path::new(env!("CARGO_BIN_EXE_sluice")).with_file_name("sluice-rocksdb").exists() {
            return;
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "--profile", "test", "-p", "sluice-rocksdb"]);
        let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo starts");
        assert!(built.status.success(), "{}", stderr(&built));
    });
}
