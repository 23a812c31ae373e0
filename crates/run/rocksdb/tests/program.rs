//! The RocksDB service as a program, and its answers to the program that starts it.

use std::process::Command;

use sluice_services::rocks::measure::Measurement;

#[test]
fn a_database_that_cannot_be_written_ends_with_two_and_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice-rocksdb"))
        .args(["worker", "--db", "/dev/null/db", "--quiet", "--json"])
        .output()
        .expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("cannot load data in /dev/null"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains(r#""kind":"bad_input""#), "{stdout}");
}

#[test]
fn what_is_loaded_or_measured_is_told_in_json_and_so_is_why_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice-rocksdb"));
        let output = command.args(args).current_dir(folder.path()).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    assert_eq!(run(&["load", "--keys", "500", "--quiet"]), (Some(0), String::new()));
    let (code, told) = run(&[
        &["measure", "--keys", "500", "--get", "--scan", "3,5", "--samples", "100"][..],
        &["--replications", "2", "--quiet"],
    ]
    .concat());
    let told: Vec<Measurement> =
        told.lines().map(|line| serde_json::from_str(line).expect("a measurement")).collect();
    let names = told.iter().map(|run| run.operation.iter().map(|of| &of.name[..]).collect::<Vec<_>>());
    assert_eq!((code, names.collect::<Vec<_>>()), (Some(0), vec![vec!["scan-3", "scan-5"]; 2]));
    assert!(told.iter().flat_map(|run| &run.operation).all(|of| of.samples == 100 && of.mean_ns > 0.0));
    let (code, told) = run(&["load", "--keys", "7", "--quiet"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("holds 500 keys of 128 bytes, not 7 keys"), "{told}");
    assert!(told.contains(r#""schema":"sluice.error.v1""#), "{told}");
}
