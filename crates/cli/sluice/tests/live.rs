//! A small sweep of live racks: real packets, compared with the simulator on the same traces.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};

use common::{command, hold_to_schema, json, sluice, stderr, terminate};

#[test]
fn a_sweep_puts_the_simulators_prediction_beside_what_real_packets_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = "up --policy rain:2,racksched:2,tracked --sweep 0.1,0.2 --dilate 500 --length 200ms --replications 2 \
                 --each-task --json --out swept";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let output = sluice(folder.path(), &args);
    // A machine that is busy with other tests may be too late to agree.
    assert!(matches!(output.status.code(), Some(0 | 3 | 5)), "{}", stderr(&output));
    let study = json(&output);
    assert_eq!(study["complete"], true);
    assert_eq!(study["settings"]["dilation"], 500);
    let series = study["panels"][0]["series"].as_array().expect("a list");
    let labels: Vec<_> = series.iter().map(|of| of["label"].as_str().expect("a text")).collect();
    let expected =
        ["rain:2 simulated", "rain:2 live", "racksched:2,tracked simulated", "racksched:2,tracked live"];
    assert_eq!(labels, expected);
    for of in series {
        let points = of["points"].as_array().expect("a list");
        assert_eq!(points.len(), 2);
        for point in points {
            assert_eq!(point["counts"]["sent"], point["counts"]["replied"], "{}", of["label"]);
        }
    }
    assert_eq!(study["comparisons"].as_array().expect("a list").len(), 2 * 2 * 3);
    let swept = folder.path().join("swept");
    for file in ["study.json", "study.csv", "report.html", "traces/load-0.2-2.csv", "tasks-rain-2-0.1-1.csv"]
    {
        assert!(swept.join(file).is_file(), "{file}");
    }
    let traced = fs::read_to_string(swept.join("traces/load-0.1-1.csv")).expect("it is there");
    let played = fs::read_to_string(swept.join("tasks-rain-2-0.1-1.csv")).expect("it is there");
    assert_eq!(traced.lines().count(), played.lines().count(), "a line for each task");
}

#[test]
fn a_sweep_of_workers_that_differ_gives_tasks_to_those_that_have_what_they_need() {
    let folder = tempfile::tempdir().expect("a folder");
    let testbed = "name = \"mine\"\nworkers = 4\n[labels]\nneeds = [\"model=gpu\"]\n\
                   [[labels.worker]]\ncount = 3\n[[labels.worker]]\nlabels = [\"gpu\"]\n";
    fs::write(folder.path().join("mine.toml"), testbed).expect("there is room");
    let flags = "up --policy rain:1,labels --sweep 0.3 --dilate 500 --length 200ms --replications 2 \
                 --workload plain=0.8@exp:10us+model=0.2@exp:10us --testbed mine.toml --json --out swept";
    let output = sluice(folder.path(), &flags.split_whitespace().collect::<Vec<_>>());
    assert!(matches!(output.status.code(), Some(0 | 3 | 5)), "{}", stderr(&output));
    for of in json(&output)["panels"][0]["series"].as_array().expect("a list") {
        let point = &of["points"][0];
        assert_eq!(point["counts"]["sent"], point["counts"]["replied"], "{}", of["label"]);
        assert_eq!(point["gauges"]["labels_met"], 1.0, "{}", of["label"]);
    }
}

#[test]
fn a_sweep_of_racks_below_a_spine_stands_beside_the_simulators() {
    let folder = tempfile::tempdir().expect("a folder");
    let testbed = "name = \"mine\"\nworkers = 5\n[racks]\nspines = 1\nworkers = [2, 3]\nhop = \"5us\"\n";
    fs::write(folder.path().join("mine.toml"), testbed).expect("there is room");
    let sweep = |policy: &str| {
        let flags = format!(
            "up --policy {policy} --sweep 0.3 --dilate 500 --length 200ms --replications 2 \
             --workload exp:20us --testbed mine.toml --json --out swept"
        );
        sluice(folder.path(), &flags.split_whitespace().collect::<Vec<_>>())
    };
    let output = sweep("dc-horus:idle-rack=random,dc-rain:2");
    assert!(matches!(output.status.code(), Some(0 | 3 | 5)), "{}", stderr(&output));
    let study = json(&output);
    let series = study["panels"][0]["series"].as_array().expect("a list");
    assert_eq!(series.len(), 4, "simulated and live");
    for of in series {
        let point = &of["points"][0];
        assert_eq!(point["counts"]["sent"], point["counts"]["replied"], "{}", of["label"]);
        // Each task passes the leaf three times (with its reply or a token) and the spine once.
        let passes =
            point["counts"]["passes"].as_u64() >= point["counts"]["sent"].as_u64().map(|sent| 3 * sent);
        assert!(passes, "{point}");
    }
    assert!(stderr(&sweep("dc-rs-h")).contains("dc-rs-h"), "racks below a live spine run Horus or Rain");
    fs::write(folder.path().join("mine.toml"), testbed.replace("spines = 1", "spines = 2"))
        .expect("there is room");
    assert!(stderr(&sweep("dc-horus")).contains("racks.spines = 1"), "one client is at one spine");
}

/// Runs the settings in this file again, into `again`, and checks that the new file differs only in the
/// folder.
fn runs_again(folder: &Path, command: &str, (out, file): (&str, &str)) {
    let words = format!("{command} {out}/{file} --out again --json");
    let output = sluice(folder, &words.split_whitespace().collect::<Vec<_>>());
    assert!(matches!(output.status.code(), Some(0 | 3 | 5)), "{}", stderr(&output));
    let read = |out: &str, file: &str| fs::read_to_string(folder.join(out).join(file)).expect("it is there");
    assert_eq!(
        read("again", file),
        read(out, file)
            .replace(&format!("{out}/"), "again/")
            .replace(&format!("out = \"{out}\""), "out = \"again\"")
    );
    assert_eq!(read("again", "testbed.toml"), read(out, "testbed.toml"));
    for trace in fs::read_dir(folder.join(out).join("traces")).expect("a folder") {
        let trace = format!("traces/{}", trace.expect("readable").file_name().to_string_lossy());
        assert_eq!(read("again", &trace), read(out, &trace), "{trace}");
    }
}

#[test]
fn what_a_sweep_keeps_runs_it_again_on_the_same_tasks_and_the_same_testbed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("mine.toml"), "name = \"mine\"\nworkers = 4\n").expect("there is room");
    let flags = "up --policy rain:1,early --sweep 0.1..0.2/0.1 --dilate 500 --length 100ms --replications 2 \
                 --seed 7 --workload get=0.9@const:8us+scan=0.1@const:107us --testbed mine.toml --out swept";
    let output = sluice(folder.path(), &flags.split_whitespace().collect::<Vec<_>>());
    assert!(matches!(output.status.code(), Some(0 | 3 | 5)), "{}", stderr(&output));
    // The stored testbed counts, not what has become of its original file.
    fs::remove_file(folder.path().join("mine.toml")).expect("it was there");
    runs_again(folder.path(), "up --sweep", ("swept", "sweep.toml"));
    let wrong = fs::read_to_string(folder.path().join("swept/sweep.toml")).expect("it is there");
    fs::write(folder.path().join("wrong.toml"), wrong.replace("seed", "sede")).expect("there is room");
    let refused = sluice(folder.path(), &["up", "--sweep", "wrong.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("wrong.toml line 9: unknown key `sede`"), "{}", stderr(&refused));
}

#[test]
fn todays_ways_stand_beside_a_rack_and_the_central_queue() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags =
        "versus --workers 4 --tasks 1000 --dilate 200 --ports 64 --today nginx,reuseport --json --out versus";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let output = sluice(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = json(&output);
    let rows = found["rows"].as_array().expect("a list");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    // nginx may be missing on this machine; then a line says what to install.
    let missing = found["missing"].as_array().expect("a list").len();
    let nginx = if missing == 0 { &["nginx"][..] } else { &[] };
    assert_eq!(names, [&["central", "rain:2,patient,early"], nginx, &["reuseport"]].concat());
    assert!(rows.iter().all(|row| row["unanswered"] == 0), "{rows:?}");
    let kept = fs::read_to_string(folder.path().join("versus/versus.json")).expect("it is there");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&kept).expect("JSON"), found);
    runs_again(folder.path(), "versus", ("versus", "versus.toml"));

    let strict = sluice(folder.path(), &["versus", "versus/versus.toml", "--better", "1000000"]);
    assert_eq!(strict.status.code(), Some(3), "{}", stderr(&strict));
    assert!(stderr(&strict).contains("times better than today's"), "{}", stderr(&strict));
}

/// A plan in which two of four workers are slow from the third interval to the fourth.
const SLOWED: &str = r#"
name = "slowed"
title = "Two of four workers three times as slow"
source = "a test"
testbed = "rain"
seed = 1
tasks = 1000
replications = 2
workers = 4

[tolerance]
value = 0.1
ratio = 0.1
change = 0.1
rate = 0.1
order = 0.25

[[policy]]
run = ["rain:1,advise", "rain:2,advise", "rain:adaptive"]

[[case]]
id = "half"
title = "Constant service of 50 us, half the load"
workload = "const:50us"
rates = "40k"
lasts = "40ms"
testbed = { slow = { workers = [0, 1], factor = 3.0, from = "20ms", length = "10ms" } }

[[case]]
id = "calm"
title = "The same with nobody slow"
workload = "const:50us"
rates = "40k"
"#;

#[test]
fn where_workers_are_slow_a_fixed_depth_is_followed_too_and_p99s_are_held_against_the_simulators() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("slowed.toml"), SLOWED).expect("there is room");
    let flags = "reproduce slowed.toml --live --dilate 100 --runs 1 --seeds 20 --case half \
                 --policy rain:1,advise,rain:adaptive --json --out out";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let output = sluice(folder.path(), &args);
    // A machine that is busy with other tests may be too late to lie inside the band, or to decide.
    assert!(matches!(output.status.code(), Some(0 | 3 | 5)), "{}", stderr(&output));
    let answer = json(&output);
    let followed = answer["followed"].as_array().expect("a list");
    let ran: Vec<_> = followed.iter().map(|one| (&one["case"], &one["policy"])).collect();
    assert_eq!(ran, [(&"half".into(), &"rain:1,advise".into()), (&"half".into(), &"rain:adaptive".into())]);
    for one in followed {
        let windows = one["responses"]["windows"].as_array().expect("a list");
        let names: Vec<_> = windows.iter().map(|window| window["name"].as_str().expect("a text")).collect();
        assert_eq!(names, ["before", "during", "after"]);
        for window in windows {
            // A slow service takes 150 us, any other 50 us.
            let least = if window["name"] == "during" { 150_000.0 } else { 50_000.0 };
            assert!(window["simulated_ns"].as_f64().expect("a number") >= least, "{window}");
            let live = window["live_ns"].as_array().expect("a list");
            assert!(live.len() == 1 && live[0].as_f64().expect("a number") >= least, "{window}");
        }
    }
    let page = fs::read_to_string(folder.path().join("out/live/followed.html")).expect("it is there");
    assert!(page.contains("some workers are slow") && page.contains("rain:adaptive"));
}

/// Runs `sluice` with these arguments, and asks it to end once it prints a line with `mark`; returns its
/// output, which must come long before the run would have ended.
fn stopped_at(folder: &Path, args: &[&str], mark: &str) -> Output {
    let running = command(folder, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut running = running.expect("it starts");
    let mut lines = BufReader::new(running.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let seen = lines.find(|line| line.contains(mark));
    terminate(&running);
    let rest: Vec<String> = lines.collect();
    assert!(seen.is_some(), "it never said {mark}: {rest:?}");
    Output { stderr: rest.join("\n").into_bytes(), ..running.wait_with_output().expect("it ends") }
}

#[test]
fn a_live_study_that_is_stopped_ends_and_keeps_the_runs_that_were_done() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("slowed.toml"), SLOWED).expect("there is room");
    // Without the stop it would take hours: 1,000 runs of six seconds.
    let flags = "reproduce slowed.toml --live --dilate 100 --runs 1000 --seeds 20 --case half \
                 --policy rain:adaptive --out out";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let output = stopped_at(folder.path(), &args, "live run 1:");
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("stopped by a signal; what was done is in out"), "{}", stderr(&output));
    let kept = fs::read_to_string(folder.path().join("out/live/followed.json")).expect("it is there");
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    hold_to_schema(&kept);
    assert_eq!(kept["complete"], false);
    let runs = kept["followed"][0]["live"].as_array().expect("a list").len();
    assert!((1..1_000).contains(&runs), "{runs}");
}

#[test]
fn a_live_study_that_is_stopped_while_the_simulator_runs_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    // Without the stop it would take hours: 10,000 runs of at least a hundred thousand tasks.
    let long = SLOWED.replace("lasts = \"40ms\"", "lasts = \"5s\"");
    fs::write(folder.path().join("slowed.toml"), long).expect("there is room");
    let flags = "reproduce slowed.toml --live --dilate 100 --seeds 10000 --case half --out out --policy rain:adaptive";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let output = stopped_at(folder.path(), &args, "seeds simulated");
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("stopped by a signal"), "{}", stderr(&output));
}

#[test]
fn a_sweep_that_is_stopped_ends_and_keeps_the_points_that_were_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    // Without the stop it would take hours: nine loads with 500 runs of at least a second each.
    let flags = "up --policy rain:2 --sweep 0.05,0.1..0.8/0.1 --dilate 500 --length 200ms --replications 2 --out swept";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let output = stopped_at(folder.path(), &args, "1 of 9:");
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let kept = fs::read_to_string(folder.path().join("swept/study.json")).expect("it is there");
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    assert_eq!(kept["complete"], false);
    let live = kept["panels"][0]["series"][1]["points"].as_array().expect("a list");
    assert!((1..9).contains(&live.len()), "{}", live.len());
}

#[test]
fn a_case_or_policy_that_the_plan_does_not_have_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("slowed.toml"), SLOWED).expect("there is room");
    for (flags, says) in [
        ("--case hlaf", "did you mean `half`"),
        ("--policy rain:9,advise", "unknown policy with an agent `rain:9,advise`"),
        ("--case calm --policy pallas", "unknown policy with an agent `pallas`"),
    ] {
        let args: Vec<&str> =
            ["reproduce", "slowed.toml", "--live"].into_iter().chain(flags.split_whitespace()).collect();
        let output = sluice(folder.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
