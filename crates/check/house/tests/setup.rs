//! `scripts/setup` checks whether a tool works, not only whether one of its name exists.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `scripts/setup --check` reports as missing, with these flags and this variable.
fn missing(flags: &[&str], variable: (&str, String)) -> Vec<String> {
    let mut setup = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/setup"));
    setup.arg("--check").args(flags).env_remove("ROCKSDB_COMPILE").env(variable.0, variable.1);
    let output = setup.output().expect("there is bash");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let packages = said.lines().find_map(|line| line.strip_prefix("setup: missing: "));
    assert_eq!(output.status.success(), packages.is_none(), "{said}");
    packages.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// A temporary folder of the test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn a_library_with_a_name_like_libclangs_is_no_libclang() {
    let folder = folder("no-libclang");
    for name in ["libclang-cpp.so.14", "libclang.so.1"] {
        fs::write(folder.join(name), b"\x7fELF\x02").expect("written");
        let said = missing(&[], ("LIBCLANG_PATH", folder.display().to_string()));
        assert_eq!(said, ["libclang-dev"], "beside {name}");
    }
}

#[test]
fn a_program_that_does_not_start_is_missing() {
    let folder = folder("broken-programs");
    for name in ["cc", "c++", "git", "pkg-config", "patch", "valgrind", "tshark", "clang-14"] {
        let program = folder.join(name);
        fs::write(&program, "#!/bin/sh\nexit 1\n").expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it may run");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let said = missing(&["--test"], ("PATH", format!("{}:{path}", folder.display())));
    for package in [
        "gcc",
        "g++",
        "git",
        "pkg-config",
        "patch",
        "valgrind",
        "libclang-dev",
        "librocksdb-dev",
        "tshark",
        "clang-14",
        "libbpf-dev",
    ] {
        assert!(said.iter().any(|found| found == package), "{package} is not among {said:?}");
    }
}
