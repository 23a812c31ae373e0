//! Holds the messages and calls to those of earlier versions: nothing is removed, renumbered or given another
//! type. The files in `frozen` list what there was; none is written anew. A version that is no longer spoken
//! leaves with its file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sluice_rpc::SPEAKS;

/// Each call, each field and each value of an enumeration in a line of its own.
fn lines() -> BTreeSet<String> {
    let protos = ["sluice/v1/controller.proto", "sluice/v1/tables.proto"];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let set = protox::compile(protos, [folder]).expect("our own files");
    let mut lines = BTreeSet::new();
    for file in set.file {
        for service in &file.service {
            for call in &service.method {
                let (asked, answered) = (call.input_type(), call.output_type());
                let stream = call.server_streaming();
                lines.insert(format!("call {}/{} {asked} {answered} {stream}", service.name(), call.name()));
            }
        }
        for message in &file.message_type {
            for field in &message.field {
                let kind = format!("{:?} {:?} {}", field.label(), field.r#type(), field.type_name());
                let (name, number) = (field.name(), field.number());
                lines.insert(format!("field {} {number} {name} {}", message.name(), kind.trim_end()));
            }
        }
        for of in &file.enum_type {
            for value in &of.value {
                lines.insert(format!("value {} {} {}", of.name(), value.number(), value.name()));
            }
        }
    }
    lines
}

#[test]
fn nothing_of_a_version_that_is_spoken_is_gone_or_changed() {
    let now = lines();
    for version in SPEAKS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/frozen/version-{version}.txt"));
        if !path.exists() && std::env::var_os("BLESS").is_some() {
            let all: Vec<&str> = now.iter().map(String::as_str).collect();
            fs::write(&path, all.join("\n") + "\n").expect("written");
        }
        let frozen = fs::read_to_string(&path).unwrap_or_else(|why| {
            panic!("{}: {why}; BLESS=1 writes the file of a new version", path.display())
        });
        let gone: Vec<&str> = frozen.lines().filter(|line| !now.contains(*line)).collect();
        assert!(gone.is_empty(), "version {version} has what is not here any more: {gone:#?}");
    }
}
