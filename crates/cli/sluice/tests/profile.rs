//! `sluice profile` turns a real database into a workload, or says in one line why it cannot.

mod common;

use std::path::Path;

use common::{json, sluice, stderr, stdout};
use sluice_workload::{Profile, Service};

const SMALL: [&str; 8] = ["profile", "rocksdb", "--keys", "2000", "--samples", "200", "--clock", "cpu"];

fn profile(folder: &Path, more: &[&str]) -> std::process::Output {
    sluice(folder, &[&SMALL, more].concat())
}

#[test]
fn a_measured_profile_is_a_workload() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = ["--get", "1,10", "--scan", "100", "--out", "rocks.toml", "--json", "--quiet"];
    let file = folder.path().join("rocks.toml");
    // A sample that was interrupted lies outside the points: then the test measures again.
    let mut told = serde_json::Value::Null;
    let mut offs = Vec::new();
    for _ in 0..20 {
        std::fs::remove_file(&file).ok();
        let output = profile(folder.path(), &more);
        assert!(output.status.success(), "{}", stderr(&output));
        told = json(&output);
        let written = Profile::read(&file).expect("it was just written");
        offs.clear();
        for (operation, name) in written.operation.iter().zip(["get-1", "get-10", "scan-100"]) {
            assert_eq!((operation.name.as_str(), operation.samples), (name, 200));
            let service =
                Service::parse(&format!("profile:{}:{name}", file.display())).expect("it is a workload");
            offs.push(service.mean_ns() / operation.mean_ns - 1.0);
        }
        if offs.iter().all(|off| off.abs() < 0.05) {
            break;
        }
    }
    assert!(
        offs.iter().all(|off| off.abs() < 0.05),
        "the points' means are so far off the samples': {offs:?}"
    );
    assert_eq!(told["operation"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        2,
        "the database and the profile"
    );
}

#[test]
fn numbers_of_keys_can_vary() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = profile(folder.path(), &["--get", "10", "--scan", "20", "--exponential"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("profile:out/profile-rocksdb.toml:get-10-exp"), "{}", stdout(&output));
    assert!(stderr(&output).contains("measured 480 operations"), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_measured_or_written_is_refused_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), "").expect("written");
    for (args, why) in [
        (vec!["profile", "rocksbd"], "unknown service `rocksbd`; did you mean `rocksdb`?"),
        (vec!["profile", "rocksdb", "--get", "0"], "--get 0 is not from 1 to"),
        (vec!["profile", "rocksdb", "--get", "10,10"], "--get names 10 twice"),
        (vec!["profile", "rocksdb", "--scan", "x"], "invalid value 'x' for '--scan [<KEYS>]'"),
        (vec!["profile", "rocksdb", "--samples", "0"], "0 is not in 100..=10000000"),
        (vec!["profile", "rocksdb", "--out", "."], "profile . is a folder; name a file with --out"),
        (vec!["profile", "rocksdb", "--out", "file/a.toml"], "profile file/a.toml (--out) cannot be written"),
    ] {
        let output = sluice(folder.path(), &args);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert_eq!(told.trim_end().lines().count(), 1, "{args:?}: {told}");
        assert!(told.contains(why), "{args:?}: {told}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing was left behind");
}
