//! The RocksDB service as a program.

use std::process::Command;

#[test]
fn a_database_that_cannot_be_written_ends_with_two_and_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_rocksdb-service"))
        .args(["--db", "/dev/null/db", "--quiet", "--json"])
        .output()
        .expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("cannot load the database at /dev/null"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains(r#""kind":"bad_input""#), "{stdout}");
}
