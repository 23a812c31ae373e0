//! Logs of real processes: each line is an event with a name that the manual knows, as text or as JSON, and
//! whoever cannot be told ends nothing.

mod common;

use std::collections::BTreeSet;
use std::fs::{File, read_dir, read_to_string};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use common::{Running, SMALL, command, hold_to_schema, sluice, stderr};
use serde_json::Value;
use sluice_log::LogEvent;

/// The objects of a log, each of which fits the schema and has a name that is known.
fn events(text: &str) -> Vec<Value> {
    let read = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line:?}"));
        assert_eq!(value["schema"], "sluice.log.v1");
        hold_to_schema(&value);
        let known = |event: &LogEvent| value["event"] == event.name();
        assert!(LogEvent::ALL.iter().any(known), "{line}");
        value
    };
    text.lines().map(read).collect()
}

/// The events of these processes, as pairs of both names.
fn named(events: &[Value]) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    events.iter().map(|event| (text(&event["process"]), text(&event["event"]))).collect()
}

/// A switch on any ports, whose stderr goes to `stderr`, once it listens.
fn switch(folder: &Path, flags: &[&str], log: Option<&str>, stderr: impl Into<Stdio>) -> Running {
    let anywhere = "127.0.0.1:0";
    let own = ["switch", "--json", "--listen", anywhere, "--control", anywhere];
    let mut command = command(folder, &[&own[..], flags].concat());
    log.map(|log| command.env("RUST_LOG", log));
    let mut switch = Running(command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("it starts"));
    let mut line = String::new();
    BufReader::new(switch.0.stdout.take().expect("piped")).read_line(&mut line).expect("it listens");
    assert!(line.contains("sluice.listening.v1"), "{line}");
    switch
}

#[test]
fn a_racks_processes_write_json_that_fits_its_schema_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.toml"), SMALL).expect("written");
    let ran = sluice(folder.path(), &["up", "small.toml", "--out", "out", "--log", "json"]);
    assert!(ran.status.success(), "{}", stderr(&ran));
    let of_up = events(&stderr(&ran));
    assert!(of_up.iter().all(|event| event["process"] == "up"), "{of_up:?}");
    assert!(of_up.iter().any(|event| event["event"] == "said"), "{of_up:?}");
    let mut all = Vec::new();
    for file in read_dir(folder.path().join("out/logs")).expect("logs").flatten() {
        all.extend(events(&read_to_string(file.path()).expect("a log")));
    }
    let named = named(&all);
    for (process, event) in [
        ("switch", "worker-joined"),
        ("switch", "client-joined"),
        ("switch", "slice-opened"),
        ("worker w-1", "worker-registered"),
        ("worker w-2", "said"),
    ] {
        assert!(named.contains(&(process.to_owned(), event.to_owned())), "{event} of {process}: {named:?}");
    }
    let joined = all.iter().find(|event| event["event"] == "worker-joined").expect("some");
    assert_eq!((joined["level"].as_str(), joined["fields"]["slice"].as_str()), (Some("INFO"), Some("work")));
    assert!(joined["fields"]["host"].as_str().is_some_and(|host| host.starts_with("w-")), "{joined}");
}

#[test]
fn a_command_that_fails_says_so_as_an_event() {
    let folder = tempfile::tempdir().expect("a folder");
    let failed = sluice(folder.path(), &["switch", "absent.toml", "--log", "json"]);
    assert_eq!(failed.status.code(), Some(2));
    let said = events(&stderr(&failed));
    assert_eq!(
        (said.len(), said[0]["event"].as_str(), said[0]["level"].as_str()),
        (1, Some("failed"), Some("ERROR"))
    );
    assert!(said[0]["message"].as_str().is_some_and(|why| why.contains("absent.toml")), "{said:?}");
}

#[test]
fn a_malformed_rust_log_is_one_line_and_a_good_one_chooses() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("said");
    for (asked, named) in
        [("sluice=loud\n", &["filter-malformed", "switch-up"][..]), ("warn", &[]), ("info", &["switch-up"])]
    {
        let switch = switch(folder.path(), &[], Some(asked), File::create(&path).expect("a file"));
        // The controller logs beside the line that says where the switch listens.
        let has = |name: &&str| read_to_string(&path).is_ok_and(|said| said.contains(*name));
        let patience = std::time::Instant::now() + std::time::Duration::from_mins(1);
        while !named.iter().all(has) && std::time::Instant::now() < patience {
            std::thread::yield_now();
        }
        switch.ends_well();
        let said = read_to_string(&path).expect("text");
        let lines = said.lines().filter(|line| line.contains("Z  INFO ") || line.contains("Z  WARN "));
        let names: Vec<&str> = lines.filter_map(|line| line.split_whitespace().nth(2)).collect();
        let all = ["filter-malformed", "switch-up"].into_iter().filter(|name| names.contains(name));
        assert_eq!(all.collect::<Vec<_>>(), named, "{asked:?}: {said}");
        assert!(names.iter().filter(|name| **name == "filter-malformed").count() < 2, "{said}");
    }
}

#[test]
fn a_switch_whose_log_cannot_be_written_serves_and_ends_well() {
    let folder = tempfile::tempdir().expect("a folder");
    for form in ["text", "json"] {
        let full = File::options().write(true).open("/dev/full").expect("a full disk");
        switch(folder.path(), &["--log", form], None, full).ends_well();
        let mut unread = switch(folder.path(), &["--log", form], None, Stdio::piped());
        drop(unread.0.stderr.take());
        unread.ends_well();
    }
}
