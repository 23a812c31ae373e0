//! The RocksDB service as a program, and its answers to the program that starts it.

use std::process::Command;

use clap::Parser;
use sluice_net::program::WorkerArgs;
use sluice_services::rocks::RocksArgs;
use sluice_services::rocks::measure::{MeasureArgs, Measurement};
use sluice_services::rocks::request::RocksRequest;

/// What flags say.
#[derive(Debug, Parser)]
struct Flags<A: clap::Args> {
    #[command(flatten)]
    of: A,
}

fn flags<A: clap::Args>(flags: &[&str]) -> A {
    Flags::try_parse_from([&["flags"], flags].concat()).expect("legal").of
}

fn data(keys: u64) -> RocksArgs {
    RocksArgs { keys, ..RocksArgs::default() }
}

fn asked(request: &RocksRequest) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice-rocksdb"));
    command.arg(serde_json::to_string(request).expect("all is text"));
    command
}

#[test]
fn a_database_that_cannot_be_written_ends_with_two_and_one_line() {
    let data = RocksArgs { db: "/dev/null/db".into(), ..RocksArgs::default() };
    let worker = Box::new(flags::<WorkerArgs>(&["--quiet", "--json"]));
    let output = asked(&RocksRequest::Work { data, worker }).output().expect("it runs");
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
    let run = |request: &RocksRequest| {
        let output = asked(request).current_dir(folder.path()).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{request:?}");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    assert_eq!(run(&RocksRequest::Load { data: data(500), quiet: true }), (Some(0), String::new()));
    let what: MeasureArgs = flags(&["--keys", "500", "--get", "--scan", "3,5", "--samples", "100"]);
    let (code, told) = run(&RocksRequest::Measure { what, replications: 2, quiet: true });
    let told: Vec<Measurement> =
        told.lines().map(|line| serde_json::from_str(line).expect("a measurement")).collect();
    let names = told.iter().map(|run| run.operation.iter().map(|of| &of.name[..]).collect::<Vec<_>>());
    assert_eq!((code, names.collect::<Vec<_>>()), (Some(0), vec![vec!["scan-3", "scan-5"]; 2]));
    assert!(told.iter().flat_map(|run| &run.operation).all(|of| of.samples == 100 && of.mean_ns > 0.0));
    let (code, told) = run(&RocksRequest::Load { data: data(7), quiet: true });
    assert_eq!(code, Some(2));
    assert!(told.contains("holds 500 keys of 128 bytes, not 7 keys"), "{told}");
    assert!(told.contains(r#""schema":"sluice.error.v1""#), "{told}");
}

#[test]
fn what_is_no_request_is_refused_with_who_makes_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice-rocksdb")).arg("load").output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("`sluice` starts this program"), "{stderr}");
}
