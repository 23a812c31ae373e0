//! `sluice write`: sending RDMA writes through HF²T's pacer, over the loopback and over a link.

mod common;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Stdio;

use common::{Running, command, hold_to_schema, json, sluice, stderr, terminate};
use serde_json::Value;
use sluice_kernel::spaces::RackSpaces;

/// 3,000 WRITEs of two flows, with a mean distance of a millisecond. Gaps above the 97.5th percentile of
/// the first 500 are extended to 20 ms.
const PACED: [&str; 15] = [
    "--flows",
    "2",
    "--rate",
    "2000",
    "--length",
    "1500ms",
    "--threshold",
    "20ms",
    "--training",
    "500",
    "--percentile",
    "97.5",
    "--alpha",
    "none",
    "--json",
];

#[test]
fn over_the_loopback_all_writes_are_taken_and_some_are_held() {
    let folder = tempfile::tempdir().expect("a folder");
    for wait in ["spin", "sleep"] {
        let args = [&["write", "--wait", wait], &PACED[..]].concat();
        // A taker that gets no turn for long loses what its socket has no room for: then once more.
        let mut tries = (0..5).map(|_| json(&sluice(folder.path(), &args)));
        let is_whole = |written: &Value| written["taken"]["placed"] == written["sent"];
        let written = tries.find(is_whole).expect("each of five tries lost some");
        assert_eq!((&written["failed"], &written["on_link"]), (&0.into(), &Value::Null));
        assert!(holds_some(&written["pacer"]), "{written:#}");
    }
    let unpaced = json(&sluice(folder.path(), &[&["write", "--unpaced"], &PACED[..]].concat()));
    assert_eq!(unpaced["pacer"], Value::Null);
}

#[test]
fn on_a_link_every_held_gap_is_as_long_as_the_threshold() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: network namespaces take root");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let spaces = RackSpaces::new(1).expect("root may make them");
    let [host] = spaces.hosts() else { panic!("one was asked for") };
    let at = format!("{}:4791", spaces.switch_addresses()[0]);
    let mut listening = command(folder.path(), &["write", "--listen", &at, "--json"]);
    let listening = listening.stdout(Stdio::piped());
    let listening = spaces.switch().within(|| listening.spawn()).expect("root may").expect("it starts");
    let mut listening = Running(listening);
    let mut said = BufReader::new(listening.0.stdout.take().expect("piped"));
    let mut first = String::new();
    said.read_line(&mut first).expect("readable");
    hold_to_schema(&serde_json::from_str(&first).expect("a line of JSON"));
    let sent =
        host.space.within(|| sluice(folder.path(), &[&["write", &at, "--on-link"], &PACED[..]].concat()));
    let written = json(&sent.expect("root may"));
    let (pacer, link) = (&written["pacer"], &written["on_link"]);
    assert_eq!((&link["seen"], &link["held_short"]), (&written["sent"], &0.into()), "{written:#}");
    // Gaps are unknown until the kernel has started to stamp frames.
    let number = |told: &Value, what: &str| told[what].as_u64().expect("a number");
    assert_eq!(number(link, "held") + number(link, "held_unknown"), number(pacer, "holds"), "{written:#}");
    let unknown = number(pacer, "gaps") - number(link, "gaps");
    assert!((unknown > 0) == (number(link, "unstamped") > 0), "{written:#}");
    assert!(unknown <= 2 * number(link, "unstamped"), "{written:#}");
    assert!(holds_some(pacer), "{written:#}");
    terminate(&listening.0);
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("readable");
    let taken: Value = serde_json::from_str(&rest).expect("a line of JSON");
    hold_to_schema(&taken);
    assert_eq!(taken["placed"], written["sent"]);
    assert!(listening.0.wait().expect("it ends").success());
}

/// Whether some frames were held. A machine that stalls in more than one of forty gaps learns its stalls as
/// gaps, and holds nothing.
fn holds_some(pacer: &Value) -> bool {
    let stalls = pacer["tail_us"].as_f64() > Some(6_000.0);
    pacer["holds"].as_u64() > Some(0) || stalls
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, part) in [
        (&["--rate", "0"][..], "not above 0"),
        (&["--rate", "1M", "--length", "10s"], "10000000 WRITEs"),
        (&["--length", "100ms"], "the pacer learns from 10000"),
        (&["--percentile", "90"], "from 97.5 to 99"),
        (&["--percentile", "most"], "write 97.5 to 99"),
        (&["--training", "500"], "so that 10 lie above percentile 99"),
        (&["--alpha", "80/20"], "a second one not below it"),
        (&["--alpha", "20"], "write 20/80, or none"),
        (&["--threshold", "50ns"], "no longer than a packet"),
        (&["--bytes", "5000"], "1..=4096"),
        (&["--flows", "0"], "1..=64"),
        (&["--wait", "kernel"], "root fq"),
        (&["--listen", "0.0.0.0:4791"], "others need an address"),
    ] {
        refuses(folder.path(), args, part);
    }
}

/// Exit code 2 and one line with `part` in it.
fn refuses(folder: &Path, args: &[&str], part: &str) {
    let output = sluice(folder, &[&["write"], args].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(said.contains(part) && said.trim_end().lines().count() == 1, "{args:?}: {said}");
}
