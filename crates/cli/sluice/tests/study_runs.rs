//! The commands that simulate, run for real: their JSON fits its schema, the bytes are the same on any
//! number of threads and after a stop, and known answers come out.

mod common;

use std::fs;
use std::path::Path;

use common::{command, json, sluice, stderr, stdout};
use serde_json::Value;

const SWEEP: [&str; 10] =
    ["sweep", "rain:1", "central", "--load", "0.3,0.6", "--tasks", "5k", "--replications", "3", "--json"];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn run(folder: &Path, args: &[&str]) -> Value {
    let output = sluice(folder, args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    json(&output)
}

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

#[test]
fn one_thread_and_two_give_the_same_bytes() {
    let folder = folder();
    // Separate folders: otherwise the second run would only show the first one's results.
    let outputs = ["1", "2"]
        .map(|threads| sluice(folder.path(), &with(&SWEEP, &["--threads", threads, "--out", threads])));
    assert!(outputs[0].status.success(), "{}", stderr(&outputs[0]));
    assert_eq!(stdout(&outputs[0]), stdout(&outputs[1]));
}

#[test]
fn policies_are_taken_as_words_and_by_a_flag_with_commas_or_again() {
    let folder = folder();
    let given = |out: &str, policies: &[&str]| {
        let args = ["sweep", "--load", "0.3", "--tasks", "2k", "--replications", "2", "--json", "--out", out];
        let output = sluice(folder.path(), &with(&args, policies));
        assert!(output.status.success(), "{policies:?}: {}", stderr(&output));
        stdout(&output)
    };
    let words = given("a", &["rain:1", "racksched:2,tracked", "central"]);
    assert_eq!(words, given("b", &["--policy", "rain:1,racksched:2,tracked,central"]));
    assert_eq!(words, given("c", &["--policy", "rain:1", "--policy", "racksched:2,tracked,central"]));
    assert_eq!(words, given("d", &["rain:1", "--policy", "racksched:2,tracked,central"]));
    let short = ["--load", "0.5", "--tasks", "2k", "--replications", "2", "--json"];
    run(folder.path(), &with(&["compare", "--policy", "rain:1,central"], &short));
    run(folder.path(), &with(&["sim", "rain:1"], &short));
    let throughput = ["throughput", "--policy", "central,jbsq:2", "--slo", "p99<200us", "--workers", "2"];
    let found = run(folder.path(), &with(&throughput, &["--tasks", "2k", "--replications", "2", "--json"]));
    assert_eq!(found["searches"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_was_found_is_kept_in_a_folder_of_its_own_and_shown_again() {
    let folder = folder();
    let sweep = |load| {
        let args = ["sweep", "rain:1", "central", "--load", load, "--tasks", "2k", "--replications", "2"];
        let output = sluice(folder.path(), &args);
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stderr(&output);
        let out = said.lines().find_map(|line| line.strip_prefix("results are in ")).expect("a folder");
        assert!(out.starts_with("out/sweep/rain-1_central-"), "{out}");
        let study = fs::read_to_string(folder.path().join(out).join("study.json")).expect("kept");
        (out.to_owned(), study, said)
    };
    let (out, study, said) = sweep("0.3");
    assert!(!said.contains("run before"), "{said}");
    let again = sweep("0.3");
    assert_eq!((&out, &study), (&again.0, &again.1));
    assert!(again.2.contains("run before") && again.2.contains("--fresh"), "{}", again.2);
    assert_ne!(out, sweep("0.4").0, "another question, another folder");
    // Results of another program in the folder are replaced.
    let journal = folder.path().join(&out).join("journal.jsonl");
    let text = fs::read_to_string(&journal).expect("a journal");
    fs::write(&journal, text.replacen("[\"commit\",\"", "[\"commit\",\"not-", 1)).expect("written");
    let anew = sweep("0.3");
    assert!(anew.0 == out && anew.1 == study && !anew.2.contains("run before"), "{}", anew.2);
}

#[test]
fn policies_and_what_they_take_of_a_switch_are_listed() {
    let folder = folder();
    let listed = run(folder.path(), &["policies", "--json"]);
    let policies = listed["policies"].as_array().expect("a list");
    let text = stdout(&sluice(folder.path(), &["policies"]));
    for policy in policies {
        let of = |key: &str| policy[key].as_str().expect("a text").to_owned();
        let row = text.lines().find(|line| line.split_whitespace().next() == policy["name"].as_str());
        assert!(
            row.is_some_and(|row| row.contains(&of("about")) && row.ends_with(&of("example"))),
            "{policy}"
        );
    }
    let live = policies.iter().filter(|policy| policy["live"] == true);
    let mut live: Vec<&str> = live.filter_map(|policy| policy["name"].as_str()).collect();
    assert!(live.contains(&"rain") && !live.contains(&"central"), "{live:?}");
    let taken = run(folder.path(), &["resources", "--json"]);
    let programs = taken["programs"].as_array().expect("a list").iter();
    let of_fabrics = ["horus-leaf", "rain-leaf", "horus-spine"];
    let names = programs.filter_map(|program| program["program"].as_str());
    // A server has memory and no stages. A datacenter's policies are listed last, as leaf and spine.
    live.retain(|name| *name != "server" && !name.starts_with("dc-"));
    assert_eq!(names.collect::<Vec<_>>(), [&live[..], &of_fabrics].concat());
    let rain = run(folder.path(), &["resources", "rain", "--json"]);
    assert_eq!(taken["programs"][0]["here"], rain["here"]);
}

#[test]
fn a_run_that_was_cut_off_goes_on_to_the_same_bytes() {
    let folder = folder();
    run(folder.path(), &with(&SWEEP, &["--out", "whole"]));
    run(folder.path(), &with(&SWEEP, &["--out", "part"]));
    let journal = folder.path().join("part/journal.jsonl");
    let text = fs::read_to_string(&journal).expect("a journal");
    let lines = text.lines().count();
    assert_eq!(lines, 1 + 2 * 2 * 3, "a head, and a line for each replication");
    // Half of the journal is lost, and its last line is incomplete.
    let kept: Vec<&str> = text.lines().take(lines / 2).chain(["{\"point\":{\"ca"]).collect();
    fs::write(&journal, kept.join("\n")).expect("written");
    run(folder.path(), &with(&SWEEP, &["--out", "part"]));
    for file in ["study.json", "study.csv", "points.csv", "report.html"] {
        let read = |run: &str| fs::read_to_string(folder.path().join(run).join(file)).expect("written");
        assert!(read("whole") == read("part"), "{file} differs");
    }
}

#[test]
fn a_signal_ends_a_run_with_what_was_done_and_valid_json() {
    let folder = folder();
    let args =
        ["sim", "--load", "0.5", "--tasks", "2000M", "--replications", "100", "--json", "--out", "run"];
    let child = command(folder.path(), &args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("sluice starts");
    // The journal's first line is written after the signal handlers are installed.
    let journal = folder.path().join("run/journal.jsonl");
    while !fs::metadata(&journal).is_ok_and(|file| file.len() > 0) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is ours");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert_eq!(json(&output)["complete"], false);
    assert!(stderr(&output).contains("goes on from there"), "{}", stderr(&output));
}

/// Writes a trace with a task of about 10 µs every 5 µs; service times vary.
fn write_trace(folder: &Path) {
    let lines: Vec<String> = (1..=6_000).map(|n| format!("{},get,{}", n * 5, 5 + n % 11)).collect();
    fs::write(folder.join("day.csv"), lines.join("\n")).expect("written");
}

#[test]
fn replications_of_one_trace_have_no_interval() {
    let folder = folder();
    write_trace(folder.path());
    let args =
        ["sim", "--workload", "trace:day.csv", "--tasks", "10k", "--replications", "3", "--warm-up", "100"];
    let found = run(folder.path(), &with(&args, &["--json"]));
    let point = &found["panels"][0]["series"][0]["points"][0];
    for number in [&point["overall"]["latency_ns"]["p99"], &point["throughput_per_s"]] {
        assert_eq!(number["method"], "none", "{number}");
        assert_eq!((&number["low"], &number["high"]), (&number["value"], &number["value"]));
    }
    assert!(stdout(&sluice(folder.path(), &args)).contains("one trace, no interval"));
    let compared =
        ["compare", "rain:1", "random", "--workload", "trace:day.csv", "--tasks", "10k", "--warm-up", "100"];
    assert!(stdout(&sluice(folder.path(), &compared)).contains("one trace, no interval"));
}

#[test]
fn a_study_says_how_many_tasks_its_trace_has_and_not_how_many_were_asked_for() {
    let folder = folder();
    write_trace(folder.path());
    let args = ["sim", "--workload", "trace:day.csv", "--tasks", "1M"];
    let found = run(folder.path(), &with(&args, &["--json"]));
    let settings = &found["settings"];
    assert_eq!((&settings["tasks"], &settings["tasks_most"]), (&Value::from(6_000), &Value::from(6_000)));
    let point = &found["panels"][0]["series"][0]["points"][0];
    assert_eq!(point["classes"][0]["tasks"], 5 * 6_000);
    let told = sluice(folder.path(), &args);
    assert!(stdout(&told).contains("5 x 6,000 tasks a point"), "{}", stdout(&told));
}

#[test]
fn a_scaled_trace_runs_at_the_load_that_is_asked_for() {
    let folder = folder();
    write_trace(folder.path());
    let args = [
        "sim",
        "--workload",
        "scaled-trace:day.csv",
        "--load",
        "0.5",
        "--tasks",
        "10k",
        "--warm-up",
        "100",
        "--json",
    ];
    let found = run(folder.path(), &args);
    let point = &found["panels"][0]["series"][0]["points"][0];
    let number = |of: &Value| of.as_f64().expect("a number");
    let off = number(&point["throughput_per_s"]["value"]) / number(&point["offered_per_s"]) - 1.0;
    assert!(off.abs() < 0.02, "{point}");
}

#[test]
fn a_run_that_is_too_short_says_so_and_how_long_would_do() {
    let folder = folder();
    let args = ["sim", "--policy", "central", "--testbed", "ideal", "--load", "0.95", "--tasks", "50k"];
    let output = sluice(folder.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("too few tasks for") && said.contains("times as many tasks"), "{said}");
    assert!(said.contains("or more"), "p99.9 has no upper end:\n{said}");
    let long = ["sim", "--policy", "central", "--testbed", "ideal", "--load", "0.5", "--tasks", "200k"];
    assert!(!stdout(&sluice(folder.path(), &long)).contains("too few tasks"));
}

#[test]
fn the_throughput_of_a_known_queue_is_found() {
    let folder = folder();
    let args = [
        "throughput",
        "central",
        "--slo",
        "mean<50us",
        "--testbed",
        "ideal",
        "--workers",
        "1",
        "--tasks",
        "200k",
        "--json",
    ];
    let found = run(folder.path(), &args);
    // M/M/1: the mean is 1 / (μ − λ).
    let rate = found["searches"][0]["rate_per_s"]["value"].as_f64().expect("a rate");
    assert!((rate / 80_000.0 - 1.0).abs() < 0.03, "{rate}");
}

#[test]
fn a_policy_does_not_differ_from_itself_and_does_from_a_worse_one() {
    let folder = folder();
    let real = |a, b| {
        let args = ["compare", a, b, "--load", "0.6", "--tasks", "20k", "--json"];
        let found = run(folder.path(), &args);
        let all = found["comparisons"].as_array().expect("comparisons").clone();
        let p99 =
            all.iter().find(|one| one["metric"]["measure"] == "latency_ns" && one["metric"]["part"] == "p99");
        p99.expect("a p99")["real"].clone()
    };
    assert_eq!(real("rain:2", "rain:2"), false);
    assert_eq!(real("central", "random"), true);
}

#[test]
fn the_list_names_every_plan() {
    let folder = folder();
    let plans = run(folder.path(), &["reproduce", "--list", "--json"]);
    let names: Vec<&str> =
        plans["plans"].as_array().expect("plans").iter().filter_map(|plan| plan["name"].as_str()).collect();
    for name in ["rain-1", "rain-6a", "rain-6b", "rain-6c", "rain-7", "rain-8", "pallas-bimodal"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let text = sluice(folder.path(), &["reproduce", "--list"]);
    assert!(stdout(&text).contains("rain-6b"));
}

#[test]
fn a_small_plan_gets_a_verdict_on_every_row_and_a_cause_that_can_be_run_again() {
    let folder = folder();
    fs::write(folder.path().join("small.toml"), SMALL_PLAN).expect("written");
    let first = run(folder.path(), &["reproduce", "small.toml", "--json"]);
    let row = |id: &str| {
        let rows = first["expectations"].as_array().expect("rows");
        rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id}")).clone()
    };
    assert_eq!(row("services-mean")["verdict"], "agrees");
    assert_eq!(row("an-order")["verdict"], "agrees");
    assert_eq!(row("not-known")["verdict"], "set_up_not_known");
    let differs = row("off");
    assert_eq!(differs["verdict"], "differs");
    assert!(differs["cause"]["shows"].as_str().is_some_and(|shows| shows.contains("agrees")), "{differs:#}");
    assert!(folder.path().join("out/small/report.html").exists());
    let again = run(folder.path(), &["reproduce", "small.toml", "--cause", "slow", "--json"]);
    let shows = &again["expectations"][0]["cause"]["shows"];
    assert_eq!(*shows, differs["cause"]["shows"]);
}

#[test]
fn a_difference_without_a_cause_fails_its_gate() {
    let folder = folder();
    let plan = SMALL_PLAN.split("[[cause]]").next().expect("a plan");
    fs::write(folder.path().join("small.toml"), plan).expect("written");
    let output = sluice(folder.path(), &["reproduce", "small.toml", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("off"), "{}", stderr(&output));
    assert_eq!(json(&output)["complete"], true);
}

#[test]
fn a_statement_that_its_interval_cannot_decide_is_undecided_and_has_an_exit_code_of_its_own() {
    let folder = folder();
    let noisy = r#"
        [[claim]]
        id = "noisy"
        says = "A central queue has a p99 of 250 us there"
        place = "nowhere"
        metric = "p99"
        at = "390k"
        policy = "central"
        value = "250us"
        "#;
    let plan = SMALL_PLAN.split("[[claim]]").next().expect("a plan").replace("40k,200k", "40k,390k");
    let plan = plan.replace("tasks = 50_000", "tasks = 5_000");
    fs::write(folder.path().join("noisy.toml"), plan + noisy).expect("written");
    let output = sluice(folder.path(), &["reproduce", "noisy.toml", "--json"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("undecided") && stderr(&output).contains("noisy"),
        "{}",
        stderr(&output)
    );
    let found = json(&output);
    assert_eq!(found["expectations"][0]["verdict"], "undecided");
    let read = |file: &str| fs::read_to_string(folder.path().join("out/small").join(file)).expect("written");
    assert!(read("study.csv").contains(",noisy,statement_undecided,"), "CSV");
    assert!(read("report.html").contains("± </span>undecided"), "the page");
    let told = stdout(&sluice(folder.path(), &["reproduce", "noisy.toml"]));
    assert!(told.contains("UNDECIDED: A central queue"), "{told}");
}

const SMALL_PLAN: &str = r#"
name = "small"
title = "A plan for tests"
source = "nowhere"
ours = true
testbed = "ideal"
workers = 4
seed = 1
tasks = 50_000
replications = 5
[tolerance]
value = 0.1
ratio = 0.1
change = 0.1
rate = 0.1
order = 0.25
[[policy]]
run = ["central", "random"]
[[case]]
id = "one"
title = "One"
workload = "exp:10us"
rates = "40k,200k"
[[claim]]
id = "services-mean"
says = "A lonely task takes its service"
place = "theory"
metric = "mean"
at = "40k"
policy = "central"
value = "10us"
[[claim]]
id = "an-order"
says = "A central queue is better than chance"
place = "theory"
metric = "p99"
at = "200k"
order = ["central", "random"]
[[claim]]
id = "off"
says = "A lonely task takes twice its service"
place = "nowhere"
metric = "mean"
at = "40k"
policy = "central"
value = "20us"
[[claim]]
id = "not-known"
says = "A lonely task takes a third of its service"
place = "nowhere"
metric = "mean"
at = "40k"
policy = "central"
value = "3us"
unknown_set_up = "it was a dream"
[[cause]]
id = "slow"
of = ["off"]
says = "They had slower tasks"
workload = "exp:20us"
"#;
