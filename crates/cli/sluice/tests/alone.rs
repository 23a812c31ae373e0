//! `sluice` without RocksDB: it starts and simulates, and says what is missing if a command needs a
//! database.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use common::{SMALL, stderr, stdout};

/// The program alone in a folder, as after `cp`.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        install(Path::new(env!("CARGO_BIN_EXE_sluice")), &folder.path().join("sluice"));
        Self(folder)
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(self.folder().join("sluice"));
        command.args(args).current_dir(self.folder()).output().expect("it starts")
    }

    /// Exit code 2, and one line with all of `parts` in it.
    fn refuses(&self, args: &[&str], parts: &[&str]) {
        let output = self.run(args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{args:?}: not one line:\n{said}");
        for part in parts {
            assert!(said.contains(part), "{args:?}: no `{part}` in: {said}");
        }
    }

    /// Puts a script into the folder that replaces the program for RocksDB.
    fn add_program(&self, script: &str) -> PathBuf {
        let program = self.folder().join("sluice-rocksdb");
        let text = self.folder().join("text");
        fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("written");
        install(&text, &program);
        program
    }
}

/// Copies a program in a process of its own: if another test's child still had it open for writing, it
/// could not be started.
fn install(from: &Path, to: &Path) {
    let done = Command::new("install").args(["-m", "755"]).args([from, to]).status();
    assert!(done.expect("coreutils are there").success());
}

/// All commands that need a database.
const WANT_ROCKSDB: [&[&str]; 4] =
    [&["worker", "rocksdb"], &["profile", "rocksdb"], &["up", "plan.toml"], &["reproduce", "rain-2"]];

fn plan_with_rocksdb(folder: &Path) {
    let plan = SMALL.replace("\"hold\"\n[load]", "\"rocksdb\"\n[load]");
    fs::write(folder.join("plan.toml"), plan).expect("written");
}

#[test]
fn it_needs_no_librocksdb_to_start() {
    // With this variable, the loader lists the libraries instead of starting the program.
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let listed = command.env("LD_TRACE_LOADED_OBJECTS", "1").output().expect("the loader runs");
    let listed = stdout(&listed);
    assert!(listed.contains("libc.so"), "{listed}");
    assert!(!listed.contains("librocksdb"), "{listed}");
}

#[test]
fn copied_alone_it_simulates_and_says_what_rocksdb_takes() {
    let copy = Copy::new();
    plan_with_rocksdb(copy.folder());
    let simulated = copy.run(&["sim", "--policy", "rain:2", "--load", "0.5", "--tasks", "2000"]);
    assert!(simulated.status.success(), "{}", stderr(&simulated));
    for args in WANT_ROCKSDB {
        copy.refuses(
            args,
            &["sluice-rocksdb", "not beside this one", "cargo build --release -p sluice-rocksdb"],
        );
    }
    let doctor = stdout(&copy.run(&["doctor"]));
    let line = doctor.lines().find(|line| line.contains("RocksDB")).expect("a line for it");
    assert!(line.contains("warn") && line.contains("cargo build"), "{line}");
}

#[test]
fn where_the_program_for_rocksdb_misses_a_library_it_says_so() {
    let copy = Copy::new();
    plan_with_rocksdb(copy.folder());
    // The script fails as the library loader would; the loader's own line on stderr is kept.
    let program = copy.add_program("exit 127");
    for args in &WANT_ROCKSDB[1..] {
        copy.refuses(args, &["sluice-rocksdb cannot start", "ldd"]);
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).expect("it may not run");
    for args in WANT_ROCKSDB {
        copy.refuses(args, &["sluice-rocksdb cannot be run: Permission denied"]);
    }
}

#[test]
fn whoever_stops_a_measurement_stops_the_program_that_measures() {
    let copy = Copy::new();
    copy.add_program("echo $$ > started.draft; mv started.draft started; exec sleep 600");
    let mut command = Command::new(copy.folder().join("sluice"));
    command.args(["profile", "rocksdb"]).current_dir(copy.folder()).stderr(Stdio::piped());
    let sluice = command.spawn().expect("it starts");
    let started = copy.folder().join("started");
    // Waits for up to two minutes; a missing file fails below.
    for _ in (0..24_000).take_while(|_| !started.exists()) {
        thread::sleep(Duration::from_millis(5));
    }
    let measures = fs::read_to_string(started).expect("it was just written");
    let kill = |how: &str, process: &str| {
        let script = format!("kill {how} {process}");
        Command::new("sh")
            .args(["-c", &script])
            .stderr(Stdio::null())
            .status()
            .expect("there is a shell")
            .success()
    };
    assert!(kill("-TERM", &sluice.id().to_string()));
    let output = sluice.wait_with_output().expect("it ends");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("stopped before"), "{said}");
    assert!(!kill("-0", measures.trim()), "process {} still runs", measures.trim());
}
