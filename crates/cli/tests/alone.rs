//! `sluice` without what only RocksDB needs: it starts, simulates, and says what is missing where a database is wanted.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use common::{SMALL, stderr, stdout};

/// The program alone in a folder, as after `cp`.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::copy(env!("CARGO_BIN_EXE_sluice"), folder.path().join("sluice")).expect("it is copied");
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
}

/// All commands that want a database.
const WANT_ROCKSDB: [&[&str]; 4] =
    [&["worker", "rocksdb"], &["profile", "rocksdb"], &["up", "plan.toml"], &["reproduce", "rain-2"]];

fn plan_with_rocksdb(folder: &Path) {
    let plan = SMALL.replace("\"hold\"\n[load]", "\"rocksdb\"\n[load]");
    fs::write(folder.join("plan.toml"), plan).expect("written");
}

#[test]
fn it_needs_no_librocksdb_to_start() {
    // The loader of libraries lists them instead of starting the program.
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
    let program = copy.folder().join("sluice-rocksdb");
    // As the loader of libraries ends: its own line on stderr is not taken away.
    fs::write(&program, "#!/bin/sh\nexit 127\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it may run");
    for args in &WANT_ROCKSDB[1..] {
        copy.refuses(args, &["sluice-rocksdb cannot start", "ldd"]);
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).expect("it may not run");
    for args in WANT_ROCKSDB {
        copy.refuses(args, &["sluice-rocksdb cannot be run: Permission denied"]);
    }
}
