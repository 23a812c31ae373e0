//! What the tests share: compilers, the library as it is installed, and a rack in other processes.
#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod calls;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use tempfile::TempDir;

/// The folder of this crate.
pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    here().ancestors().nth(3).expect("it is in crates/bindings").to_owned()
}

/// The C compiler; without one, what needs it is not tested, and the test says so.
pub(crate) fn c_compiler() -> Option<&'static str> {
    compiler("cc", "gcc")
}

/// The C++ compiler, as [`c_compiler`].
pub(crate) fn cxx_compiler() -> Option<&'static str> {
    compiler("c++", "g++")
}

fn compiler(name: &'static str, package: &str) -> Option<&'static str> {
    let starts = Command::new(name).arg("--version").stdout(Stdio::null()).status();
    if starts.is_ok_and(|status| status.success()) {
        return Some(name);
    }
    eprintln!("not tested, for want of {name}: scripts/setup installs {package}");
    None
}

/// The library, installed once for all tests as `install` does it, and programs that were built with it.
pub(crate) struct Installed {
    prefix: PathBuf,
    compiler: &'static str,
}

/// What the sanitizers are told: a fault ends the program.
pub(crate) const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Programs by their names, each built by the first test that asks for it.
static PROGRAMS: Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());

impl Installed {
    /// For programs of this language, `c` or `cpp`; `None` without a compiler.
    pub(crate) fn of(language: &str) -> Option<Self> {
        static PREFIX: OnceLock<PathBuf> = OnceLock::new();
        let compiler = if language == "c" { c_compiler() } else { cxx_compiler() }?;
        let install = || {
            let prefix = folder_of_tests().join("usr");
            ran(Command::new(here().join("install")).arg(&prefix).arg(built()));
            prefix
        };
        Some(Self { prefix: PREFIX.get_or_init(install).clone(), compiler })
    }

    pub(crate) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// What pkg-config says of it.
    pub(crate) fn pkg_config(&self, flags: &[&str]) -> Vec<String> {
        let mut ask = Command::new("pkg-config");
        ask.env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig")).args(flags).arg("sluice");
        let said = String::from_utf8(ran(&mut ask).stdout).expect("flags are text");
        said.split_whitespace().map(str::to_owned).collect()
    }

    /// The program `name`, of a source of this crate and always of the same flags.
    pub(crate) fn build(&self, source: &str, name: &str, flags: &[&str]) -> PathBuf {
        let program = Arc::clone(PROGRAMS.lock().expect("no panic").entry(name.to_owned()).or_default());
        let compile = || {
            let program = folder_of_tests().join(name);
            let is_c = Path::new(source).extension().is_some_and(|end| end == "c");
            let mut build = Command::new(self.compiler);
            build.arg(if is_c { "-std=c99" } else { "-std=c++17" });
            build.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1"]);
            build.arg(here().join(source)).arg("-o").arg(&program);
            build.args(self.pkg_config(&["--cflags", "--libs"]));
            ran(build.arg("-pthread").args(flags));
            program
        };
        program.get_or_init(compile).clone()
    }

    /// A program that was built, ready to start.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.prefix.join("lib")).stdin(Stdio::null());
        command
    }
}

/// Where the tests of a process install and build: cargo's folder for that, so that nothing stays elsewhere.
fn folder_of_tests() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sluice-c");
    std::fs::create_dir_all(&folder).expect("made");
    folder
}

/// What a client of the examples says for which its 5 s, or its rack's queue, were too short.
const TOO_BUSY: [&str; 3] = ["not registered with", "deadline passed", "queue was full"];

/// Runs a client of the examples to its end, which must be a good one: again if this machine was too busy.
pub(crate) fn ran_in_time(client: &mut Command) -> Output {
    let was_too_busy = |output: &Output| {
        let said = String::from_utf8_lossy(&output.stderr);
        !output.status.success() && TOO_BUSY.iter().any(|words| said.contains(words))
    };
    let mut output = output_of(client);
    for _ in 0..10 {
        if !was_too_busy(&output) {
            break;
        }
        output = output_of(client);
    }
    ended_well(client, output)
}

/// Runs a program to its end, which must be a good one.
pub(crate) fn ran(command: &mut Command) -> Output {
    let output = output_of(command);
    ended_well(command, output)
}

fn output_of(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"))
}

fn ended_well(command: &Command, output: Output) -> Output {
    let said =
        || String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, said());
    output
}

/// The folder in which cargo has built this library.
pub(crate) fn built() -> PathBuf {
    let test = std::env::current_exe().expect("Linux knows it");
    test.parent().expect("it is in a folder").to_owned()
}

/// The command `sluice`: $SLUICE, or of this build.
pub(crate) fn sluice() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let find = || std::env::var_os("SLUICE").map_or_else(|| program("sluice-cli", "sluice"), PathBuf::from);
    PROGRAM.get_or_init(find).clone()
}

/// A program of another package of this repository, which is built if it is not there.
pub(crate) fn program(package: &str, name: &str) -> PathBuf {
    let path = built().with_file_name(name);
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-q", "--locked", "--profile", "test", "-p", package, "--bin", name]);
        ran(build.current_dir(here()));
    }
    path
}

/// A process that is killed with the test, and the folder in which it runs.
pub(crate) struct Running(pub(crate) Child, TempDir);

impl Running {
    /// Starts a program in a folder of its own: a switch keeps its state below.
    pub(crate) fn start(command: &mut Command) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let child = command.current_dir(folder.path()).stdin(Stdio::null()).spawn();
        Self(child.unwrap_or_else(|why| panic!("{command:?}: {why}")), folder)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A switch of this plan alone, and the address of its controller.
pub(crate) fn lone_switch(plan: &Path) -> (Running, String) {
    let mut switch = Command::new(sluice());
    switch.arg("switch").arg(plan).args(["--json", "--quiet"]);
    switch.args(["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]);
    let mut switch = Running::start(switch.stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(switch.0.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it is");
    let said: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
    (switch, said["control"].as_str().expect("an address").to_owned())
}

/// `sluice up` with this plan, and the address of its controller. `folder` is where it runs.
pub(crate) fn rack_of(plan: &str, folder: &Path) -> (Child, String) {
    std::fs::write(folder.join("plan.toml"), plan).expect("written");
    let mut up = Command::new(sluice());
    up.args(["up", "plan.toml"]).current_dir(folder).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut up = up.env("XDG_RUNTIME_DIR", folder.join("runtime")).spawn().expect("it starts");
    let mut said = BufReader::new(up.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let mut all = Vec::new();
    let at = said.find_map(|line| {
        all.push(line);
        Some(all.last()?.split_once("controller is at ")?.1.to_owned())
    });
    let at = at.unwrap_or_else(|| panic!("it says where it is: {all:?}"));
    // It must not meet a closed pipe.
    std::thread::spawn(move || said.for_each(drop));
    (up, at)
}

/// Asks a process to end, and checks that it does so well.
pub(crate) fn ends_well(mut child: Child) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it lives");
    assert!(child.wait().expect("it ends").success());
}
