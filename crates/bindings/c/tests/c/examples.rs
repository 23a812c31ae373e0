//! The examples, built by their Makefile against an installed library, in live racks: a plan starts their
//! services.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::common::calls::{bytes_of, connected, submit};
use super::common::{Installed, ends_well, here, program, rack_of, ran, ran_in_time, sluice};
use sluice::{SluiceKind, SluiceSpec, SluiceStatus};
use sluice_services::rocks::codec::{encode_get, encode_scan, encode_scan_for_rows};
use tempfile::TempDir;

/// Else its limit would be what the workers do in 20 ms, which is little on a busy machine.
const WORDS: &str =
    "[types]\nreverse = 9\n[[slice]]\nname = \"words\"\ntypes = [\"reverse\"]\nlimit = 4096\n";

/// Builds an example with make.
fn made(installed: &Installed, name: &str, folder: &Path) -> PathBuf {
    let mut make = Command::new("make");
    make.arg("-sC")
        .arg(here().join("examples"))
        .arg(name)
        .args(["CFLAGS", "CXXFLAGS"].map(|flags| format!("{flags}=-O2 -Wall -Wextra -Werror")));
    let found = installed.prefix().join("lib/pkgconfig");
    make.arg(format!("PKG_CONFIG_PATH={}", found.display())).arg(format!("OUT={}", folder.display()));
    // What cargo runs under make would be told of other jobs.
    ran(make.env_remove("MAKEFLAGS"));
    folder.join(name)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn a_plan_starts_a_service_in_c_and_clients_in_c_and_cxx_call_it() {
    let (Some(installed), Some(_)) = (Installed::of("c"), Installed::of("cpp")) else { return };
    let folder = folder();
    let service = made(&installed, "reverse_service", folder.path());
    let worker =
        format!("[[worker]]\nname = \"w\"\ncount = 2\nslice = \"words\"\nexec = \"{}\"\n", service.display());
    let (up, controller) = rack_of(&[WORDS, &worker].concat(), folder.path());
    let client = made(&installed, "reverse_client", folder.path());
    assert_eq!(ran_in_time(Command::new(client).args([&controller, "stressed"])).stdout, b"desserts\n");
    let many = made(&installed, "queue_client", folder.path());
    assert_eq!(ran_in_time(Command::new(many).args([&controller, "2000"])).stdout, b"2000 of 2000\n");
    ends_well(up);
}

#[test]
fn a_load_measures_a_service_in_c_as_any_other() {
    let Some(installed) = Installed::of("c") else { return };
    let folder = folder();
    let service = made(&installed, "reverse_service", folder.path());
    let plan = format!(
        "{WORDS}[[worker]]\nname = \"w\"\nslice = \"words\"\nexec = \"{}\"\n\
         [load]\nrate = 200\nmix = \"reverse=1\"\nlength = \"500ms\"\nbehind_max = \"5s\"\n",
        service.display()
    );
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    let mut up = Command::new(sluice());
    up.args(["up", "plan.toml", "--json"]).current_dir(folder.path());
    let output = up.env("XDG_RUNTIME_DIR", folder.path().join("runtime")).output().expect("it starts");
    // On a busy machine a load may miss its gates.
    assert!(matches!(output.status.code(), Some(0 | 3 | 5)), "{output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"], "{result}");
}

/// Requests of the RocksDB service, good and bad.
fn requests() -> Vec<(u16, Vec<u8>)> {
    let get = |numbers: &[u64]| {
        let mut request = Vec::new();
        encode_get(numbers.iter().copied(), &mut request);
        (1, request)
    };
    let scan = |encode: fn(u64, u32, &mut Vec<u8>), from, rows| {
        let mut request = Vec::new();
        encode(from, rows, &mut request);
        (2, request)
    };
    vec![
        get(&[7]),
        get(&(0..10).collect::<Vec<_>>()),
        get(&[1, 999_999, 3]),
        get(&[999_999]),
        get(&(0..60).collect::<Vec<_>>()),
        (1, Vec::new()),
        (1, b"a key that is too short".to_vec()),
        scan(encode_scan, 5, 100),
        scan(encode_scan, 1_990, 100),
        scan(encode_scan_for_rows, 0, 20),
        scan(encode_scan_for_rows, 100, 1_000),
        scan(encode_scan, 0, 100_001),
        (2, b"abc".to_vec()),
        (2, 10_u32.to_be_bytes().to_vec()),
    ]
}

/// How the tasks end in a rack with this worker.
fn answers(worker: &str, folder: &Path) -> Vec<(u32, Vec<u8>)> {
    let plan = format!(
        "[[slice]]\nname = \"reads\"\ntypes = [\"get\", \"scan\"]\n\
         [[worker]]\nname = \"w\"\nslice = \"reads\"\n{worker}\n[rocksdb]\npath = \"db\"\nkeys = 2000\n"
    );
    let (up, controller) = rack_of(&plan, folder);
    let client = connected(&controller);
    let answer = |(of, request): (u16, Vec<u8>)| {
        let spec = SluiceSpec { r#type: of, deadline_ns: 60_000_000_000, ..SluiceSpec::default() };
        let (status, outcome) = submit(client, &spec, &request);
        assert_eq!(status, SluiceStatus::Ok);
        (outcome.kind, bytes_of(&outcome).to_vec())
    };
    let answers = requests().into_iter().map(answer).collect();
    sluice::sluice_client_free(client);
    ends_well(up);
    answers
}

#[test]
fn rocksdb_in_cxx_answers_byte_for_byte_as_the_services_of_this_project() {
    let Some(installed) = Installed::of("cpp") else { return };
    if !Path::new("/usr/include/rocksdb/db.h").exists() {
        eprintln!("not tested, for want of RocksDB's headers: scripts/setup installs librocksdb-dev");
        return;
    }
    let folder = folder();
    let service = made(&installed, "rocksdb_service", folder.path());
    program("sluice-rocksdb", "sluice-rocksdb");
    let ours = answers("service = \"rocksdb\"", folder.path());
    let theirs = answers(&format!("exec = \"{}\"\nargs = [\"db\"]", service.display()), folder.path());
    for (at, ((kind, bytes), (theirs_kind, theirs_bytes))) in ours.iter().zip(&theirs).enumerate() {
        let text = String::from_utf8_lossy(theirs_bytes);
        assert!(kind == theirs_kind && bytes == theirs_bytes, "request {at}: {theirs_kind} {text}");
    }
    assert!(ours.iter().filter(|(kind, _)| *kind == SluiceKind::Reply as u32).count() >= 10);
}
