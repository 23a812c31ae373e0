//! A running rack is found by commands that look at it or change it, and can be watched.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Running, SMALL, command, hold_to_schema, json, sluice, sluice_succeeds, stderr, stdout};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

/// More looks than any rack here needs until it is ready.
const MOST_LOOKS: usize = 400;

/// Starts the small rack without its load, under this name, and waits until it is ready.
fn rack(folder: &Path, name: &str) -> Running {
    let plan = SMALL.split("[load]").next().expect("the rack's part").replace("small", name);
    rack_of(folder, name, &plan)
}

/// Starts the rack of a plan with this name, and waits until it is ready.
fn rack_of(folder: &Path, name: &str, plan: &str) -> Running {
    let file = format!("{name}.toml");
    std::fs::write(folder.join(&file), plan).expect("written");
    let up = command(folder, &["up", &file]).stderr(Stdio::piped()).spawn();
    let mut up = Running(up.expect("it starts"));
    let said = BufReader::new(up.0.stderr.take().expect("piped")).lines().map_while(Result::ok);
    // The rack continues to write to the pipe.
    let mut said = said.filter(|line| line.contains("workers are ready"));
    assert!(said.next().is_some(), "{name} was never ready");
    std::thread::spawn(move || said.for_each(drop));
    up
}

#[test]
fn status_move_map_and_load_find_the_one_rack_and_ask_which_if_there_are_several() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = rack(folder.path(), "first");
    let status = json(&sluice_succeeds(folder.path(), &["status", "--json"]));
    assert_eq!(status["workers"].as_array().map(Vec::len), Some(2), "{status}");
    let moved = sluice(folder.path(), &["move", "w-1", "work"]);
    assert_eq!(moved.status.code(), Some(0), "{}", stderr(&moved));
    let mapped = sluice(folder.path(), &["map", "9", "work"]);
    assert!(stderr(&mapped).contains("type"), "its workers do not serve 9: {}", stderr(&mapped));
    let load = ["load", "--mix", "hold=1", "--rate", "50", "--warm-up", "0s", "--length", "200ms", "--json"];
    let loaded = json(&sluice(folder.path(), &load));
    assert_eq!(loaded["tasks"]["sent"], loaded["tasks"]["replied"], "{loaded}");

    let second = rack(folder.path(), "second");
    let asked = sluice(folder.path(), &["status"]);
    assert_eq!(asked.status.code(), Some(2));
    let said = stderr(&asked);
    for part in ["2 racks run here", "`first` (process", "`second` (process", "--controller 127.0.0.1:"] {
        assert!(said.contains(part), "{said}");
    }
    second.ends_well();
    let alone = sluice_succeeds(folder.path(), &["status"]);
    assert!(stdout(&alone).contains("controller http://127.0.0.1:"), "{}", stderr(&alone));
    first.ends_well();
    let left = std::fs::read_dir(folder.path().join("runtime/sluice")).expect("it was made").count();
    assert_eq!(left, 0, "files of racks that are over");
}

/// Both workers have the label that `hold` needs. The plan allows workers with the label that `scan` needs,
/// but none has it.
const LABELLED: &str = r#"
name = "labelled"
policy = "rain:2,labels"
[[slice]]
name = "work"
types = ["hold", "scan"]
needs = ["hold=ssd", "scan=gpu"]
kinds = ["ssd", "ssd+tpu", "gpu"]
[[worker]]
name = "one"
slice = "work"
service = "hold"
labels = ["ssd"]
[[worker]]
name = "other"
slice = "work"
service = "hold"
labels = ["tpu", "ssd"]
"#;

#[test]
fn status_says_who_has_which_labels_and_what_nobody_serves() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = rack_of(folder.path(), "labelled", LABELLED);
    let status = json(&sluice_succeeds(folder.path(), &["status", "--json"]));
    let labels = |name: &str| {
        let workers = status["workers"].as_array().expect("workers");
        workers.iter().find(|worker| worker["name"] == name).expect("it is there")["labels"].clone()
    };
    assert_eq!([labels("one"), labels("other")], [json!(["ssd"]), json!(["ssd", "tpu"])]);
    let class = |needs: &str, of_type: u8, workers: u8, refused: bool| {
        let types = [of_type];
        json!({ "needs": [needs], "types": types, "workers": workers, "refused": refused })
    };
    let classes = json!([class("gpu", 2, 0, true), class("ssd", 4, 2, false)]);
    assert_eq!((&status["slices"][0]["classes"], &status["slices"][0]["wished"]), (&classes, &json!(false)));
    let text = stdout(&sluice_succeeds(folder.path(), &["status"]));
    let line = |parts: &[&str]| text.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(line(&["work", "gpu", "scan (2)", "0: its tasks are refused"]), "{text}");
    assert!(line(&["one", "open", "ssd"]) && line(&["other", "open", "ssd+tpu"]), "{text}");
    rack.ends_well();
}

#[test]
fn status_of_a_rack_without_labels_says_nothing_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = rack(folder.path(), "plain");
    let status = json(&sluice_succeeds(folder.path(), &["status", "--json"]));
    assert_eq!(status["slices"][0]["classes"], json!([]));
    let text = stdout(&sluice_succeeds(folder.path(), &["status"]));
    assert!(!text.contains("labels") && !text.contains("needs"), "{text}");
    rack.ends_well();
}

#[test]
fn a_rack_that_was_killed_is_not_found_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(rack(folder.path(), "killed"));
    let running = rack(folder.path(), "running");
    let status = sluice_succeeds(folder.path(), &["status", "--json"]);
    assert_eq!(json(&status)["workers"].as_array().map(Vec::len), Some(2), "{}", stderr(&status));
    running.ends_well();
}

#[test]
fn a_watch_prints_a_look_a_line_until_it_is_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = rack(folder.path(), "watched");
    // Looks until it succeeds: a worker that has just registered has not sent all its tokens yet.
    let watch = |flags: &[&str], until: &dyn Fn(&str, usize) -> bool| {
        let args = [&["status", "--watch", "--every", "50ms"], flags].concat();
        let watch = command(folder.path(), &args).stdout(Stdio::piped()).spawn();
        let mut watch = Running(watch.expect("it starts"));
        let lines = BufReader::new(watch.0.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let mut looks = Vec::new();
        for line in lines {
            looks.push(line);
            if until(&looks[looks.len() - 1], looks.len()) || looks.len() == MOST_LOOKS {
                break;
            }
        }
        (watch, looks)
    };
    let (people, lines) =
        watch(&[], &|line, looks| looks > 1 && line.contains("work open, 2 workers, 2 tokens parked"));
    assert!(
        lines.len() < MOST_LOOKS && lines.iter().all(|line| line.contains(" s  switch up, epoch ")),
        "{lines:?}"
    );
    let (machines, lines) = watch(&["--json"], &|_, looks| looks == 3);
    for line in &lines {
        hold_to_schema(&serde_json::from_str::<Value>(line).expect("JSON"));
    }
    assert_eq!(lines.len(), 3);
    people.ends_well();
    machines.ends_well();
    rack.ends_well();
}

/// `script` gives the command a terminal of its own, on which the test types.
#[test]
fn the_live_view_says_where_the_rack_is_and_q_ends_the_run_with_its_result() {
    let folder = tempfile::tempdir().expect("a folder");
    // No task is refused, however long this machine keeps the workers from running.
    let plan = SMALL.replace("types = [\"hold\"]", "types = [\"hold\"]\nlimit = 8192");
    let plan = plan.replace("length = \"1s\"", "length = \"600s\"");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    let up = format!("stty rows 24 cols 80; {} up plan.toml", env!("CARGO_BIN_EXE_sluice"));
    let script = Command::new("script")
        .args(["-qec", &up, "/dev/null"])
        .current_dir(folder.path())
        .env("TERM", "xterm")
        .env("XDG_RUNTIME_DIR", folder.path().join("runtime"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut script = Running(script.expect("util-linux is there"));
    let mut screen = script.0.stdout.take().expect("piped");
    let mut keys = script.0.stdin.take().expect("piped");
    let (mut seen, mut more) = (String::new(), [0; 4096]);
    // The picture skips blanks with cursor movements, so only single words can be searched for.
    while !["Ctrl-C", "measuring", "127.0.0.1:", "┤"].iter().all(|part| seen.contains(part)) {
        let count = screen.read(&mut more).expect("it draws");
        assert!(count > 0, "it ended: {seen}");
        seen += &String::from_utf8_lossy(&more[..count]);
    }
    keys.write_all(b"q").expect("it reads");
    let mut rest = String::new();
    // Reading from a closed terminal fails.
    screen.read_to_string(&mut rest).ok();
    assert_eq!(script.0.wait().expect("it ends").code(), Some(4), "{rest}");
    assert!(rest.contains("STOPPED EARLY"), "{rest}");
}

/// Tasks hold for 3 ms; one of three workers is stopped for most of the time.
#[test]
fn a_worker_that_is_stopped_now_and_then_is_named_by_status() {
    let plan = r#"
name = "uneven"
[[slice]]
name = "work"
types = ["hold"]
[[worker]]
name = "w"
count = 3
slice = "work"
service = "hold"
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let rack = rack_of(folder.path(), "uneven", plan);
    let load = ["load", "--mix", "hold=1", "--rate", "150", "--length", "600s", "--quiet"];
    let load = command(folder.path(), &load).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let load = Running(load.expect("it starts"));
    let stopped = rack.worker_process("w-2");
    let signal = |signal| kill_process(stopped, signal).expect("it lives");
    let status = || json(&sluice_succeeds(folder.path(), &["status", "--json"]));
    let looks = (0..MOST_LOOKS).find_map(|_| {
        signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(600));
        signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(200));
        let status = status();
        let of =
            |name: &str| status["workers"].as_array()?.iter().find(|worker| worker["name"] == name).cloned();
        of("w-2").filter(|worker| worker["differs"].is_string()).zip(of("w-1"))
    });
    let (stopped, other) = looks.expect("it is named");
    assert!(stopped["differs"].as_str().is_some_and(|says| says.contains("against")), "{stopped}");
    assert!(other["recent"]["tasks"].as_u64() > Some(0) && other["recent"]["service_ns"].is_u64(), "{other}");
    drop(load);
    rack.ends_well();
}

/// A worker of 5 ms a task gets four times what it can serve, and each task is worth beginning for 10 ms.
#[test]
fn status_counts_tasks_that_were_refused_late_in_the_switch_and_at_workers() {
    let plan = r#"
name = "late"
policy = "rain:2"
[[slice]]
name = "work"
types = ["hold"]
[[worker]]
name = "w"
slice = "work"
service = "hold"
[load]
rate = 800
mix = "hold=1"
length = "600s"
[load.request.hold]
busy = "5ms"
"#;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("load.toml"), plan).expect("written");
    let rack = rack_of(folder.path(), "late", plan.split("[load]").next().expect("the rack"));
    let load = ["load", "load.toml", "--budget", "10ms", "--quiet"];
    let load = command(folder.path(), &load).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let load = Running(load.expect("it starts"));
    let found = (0..MOST_LOOKS).find_map(|_| {
        std::thread::sleep(Duration::from_millis(200));
        let status = json(&sluice_succeeds(folder.path(), &["status", "--json"]));
        let counts = ["late_in_switch", "late_at_worker"].map(|key| status["slices"][0][key].as_u64());
        counts.iter().all(|count| *count > Some(0)).then_some(status)
    });
    let status = found.expect("tasks are late in both places");
    assert_eq!(status["slices"][0]["refused_busy"].as_u64(), Some(0), "{status}");
    let told = stdout(&sluice_succeeds(folder.path(), &["status"]));
    assert!(told.contains("late in the switch") && told.contains("late at workers"), "{told}");
    drop(load);
    rack.ends_well();
}
