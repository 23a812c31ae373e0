//! Tables over P4Runtime, beside a controller that nobody here wrote.
//!
//! Needs p4c-bm2-ss, simple_switch_grpc and python-finsy, a Python that has `finsy`, on the path or in the
//! folders of `P4_TOOLS`; without them these tests print so and do nothing.

mod plane;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plane::{P4, targets};
use prost::Message as _;
use sluice_bmv2::{RuntimeApi, tool};
use sluice_conformance::{Vector, play};

#[test]
fn another_client_reads_the_entries_that_were_written() {
    let Some(python) = python() else { return };
    for vector in a_vector_of_each_program() {
        let Some(mut plane) = P4::new(vector.shape, RuntimeApi::P4Runtime) else { return };
        plane.switch.clear().unwrap_or_else(|why| panic!("{why}"));
        play(&vector, &mut plane).unwrap_or_else(|why| panic!("{why}"));
        let said =
            run(&python, "read_tables.py", told(&plane).as_bytes()).unwrap_or_else(|said| panic!("{said}"));
        let entries = plane.switch.entries().count();
        println!("{}: {}", vector.name, said.trim_end());
        assert!(said.trim_end().ends_with("PERMISSION_DENIED"), "{said}");
        assert!(entries > 5 && said.starts_with(&format!("{entries} entries of ")), "{entries}: {said}");
    }
}

#[test]
fn messages_have_the_published_names_and_numbers() {
    let Some(python) = python() else { return };
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let files = ["p4/v1/p4runtime.proto", "p4/config/v1/p4info.proto"];
    let descriptors = protox::compile(files, [proto]).expect("it is built of them");
    let said =
        run(&python, "published.py", &descriptors.encode_to_vec()).unwrap_or_else(|said| panic!("{said}"));
    assert!(said.ends_with("fields are the published ones\n"), "{said}");
}

/// A vector of each program.
fn a_vector_of_each_program() -> Vec<Vector> {
    let all = sluice_conformance::all(&targets().join("vectors")).unwrap_or_else(|why| panic!("{why}"));
    let mut vectors: Vec<Vector> = Vec::new();
    for vector in all {
        if vectors.iter().all(|known| known.shape.program != vector.shape.program) {
            vectors.push(vector);
        }
    }
    vectors
}

/// What the driver says that it wrote, as JSON.
fn told(plane: &P4) -> String {
    let (at, device) = plane.switch.p4runtime().expect("its tables go over P4Runtime");
    let numbers = |values: &[Vec<u8>]| {
        let number = |bytes: &Vec<u8>| bytes.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        format!("{:?}", values.iter().map(number).collect::<Vec<_>>())
    };
    let entries = plane.switch.entries().map(|(entry, action)| {
        let (key, data) = (numbers(&entry.key), numbers(&action.data));
        format!(
            r#"{{"table": "{}", "key": {key}, "action": "{}", "data": {data}}}"#,
            entry.table, action.name
        )
    });
    let entries: Vec<String> = entries.collect();
    let (entries, epoch) = (entries.join(", "), plane.shape.epoch);
    format!(r#"{{"at": "{at}", "device": {device}, "epoch": {epoch}, "entries": [{entries}]}}"#)
}

/// The Python that has `finsy`; says so if there is none.
fn python() -> Option<PathBuf> {
    tool("python-finsy").inspect_err(|why| eprintln!("skipped: {why}")).ok()
}

/// What a script of this folder prints; an error if it fails.
fn run(python: &Path, script: &str, input: &[u8]) -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    child.stdin.take().expect("piped").write_all(input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(said) } else { Err(said + &String::from_utf8_lossy(&output.stderr)) }
}
