//! Whole runs: what they print, write and leave behind.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{SMALL, command, hold_to_schema, json, nothing_is_left_of, sluice, stderr, stdout, terminate};
use serde_json::Value;
use sluice_support::plan::{Arrivals, Plan};

fn folder_with(plan: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    folder
}

#[test]
fn a_small_rack_answers_every_task_and_cleans_up() {
    let folder = folder_with(SMALL);
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(result["schema"], "sluice.result.v1");
    assert!(result["tasks"]["sent"].as_u64() > Some(200), "{}", result["tasks"]);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    assert_eq!(result["tasks"]["lost"], 0);
    let out = folder.path().join("out/small");
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("result.json")).expect("written"))
            .expect("JSON");
    assert_eq!(written, result);
    for file in [
        "result.csv",
        "timeline.csv",
        "report.html",
        "hold-latency-us.hgrm",
        "hold-slowdown.hgrm",
        "plan.toml",
    ] {
        assert!(out.join(file).is_file(), "{file}");
    }
    nothing_is_left_of(folder.path());
}

#[test]
fn a_rack_that_was_started_with_flags_keeps_the_plan_that_ran_and_runs_again_from_it() {
    let plan = SMALL.to_owned()
        + "[switch]\ncontroller_apart = true\n[[event]]\nat = \"300ms\"\nkill = \"worker w-2\"\n\
           [[event]]\nat = \"1s\"\nkill = \"controller\"\n";
    let folder = folder_with(&plan);
    let flags = ["--policy", "racksched:2", "--rate", "0.2k", "--length", "700ms", "--dilate", "2"];
    let flags = [&flags[..], &["--faults", "loss=0.001", "--out", "here", "--json"]].concat();
    let first = sluice(folder.path(), &[&["up", "plan.toml"], &flags[..]].concat());
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(stderr(&first).contains("1 of 2 events cannot happen"), "{}", stderr(&first));

    let kept = folder.path().join("here/plan.toml");
    let read = |path: &Path| Plan::load(Some(path)).unwrap_or_else(|why| panic!("{why}"));
    let mut wanted = read(&folder.path().join("plan.toml"));
    let load = wanted.load.as_mut().expect("a load");
    (load.arrivals, load.length) = (Arrivals::Poisson(200.0), Duration::from_millis(700));
    load.deadline = read(&kept).load.expect("a load").deadline;
    (wanted.policy, wanted.dilation) = ("racksched:2".into(), 2);
    (wanted.faults, wanted.out, wanted.state) =
        (Some("loss=0.001".into()), "here".into(), "here/state".into());
    wanted.events.truncate(1);
    assert_eq!(read(&kept), wanted);
    let text = std::fs::read_to_string(&kept).expect("it is there");
    let first_line = text.lines().next().expect("a line");
    assert!(first_line.contains("sluice up plan.toml --policy racksched:2 --rate 0.2k"), "{first_line}");

    let again = sluice(folder.path(), &["up", "here/plan.toml", "--json"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let (first, again) = (json(&first), json(&again));
    for key in ["name", "policy", "seed", "dilation", "faults", "arrivals", "mix", "length_s", "deadline_s"] {
        assert_eq!(first[key], again[key], "{key}");
    }
    assert_eq!(read(&kept), wanted, "it is kept again");
    nothing_is_left_of(folder.path());
}

#[test]
fn a_folder_of_a_rack_that_runs_is_left_alone() {
    let folder = folder_with(SMALL);
    let out = folder.path().join("here");
    std::fs::create_dir_all(out.join("logs")).expect("a folder");
    std::fs::write(out.join("logs/switch.log"), "of the other").expect("a log");
    let other = std::fs::File::open(&out).expect("it is there");
    other.lock().expect("nobody holds it");
    let refused = sluice(folder.path(), &["up", "plan.toml", "--out", "here", "--json"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("here is the folder of a rack that runs"), "{}", stderr(&refused));
    assert!(out.join("logs/switch.log").is_file() && !out.join("plan.toml").exists());
}

#[test]
fn faults_and_dilation_are_marked_in_the_result() {
    let plan = SMALL.replace("rate = 300", "rate = 100").replace("name = \"small\"", "dilation = 10");
    let folder = folder_with(&plan);
    let output = sluice(folder.path(), &["up", "plan.toml", "--faults", "loss=0.01,dup=0.01,reorder=0.02"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}\n{said}", stderr(&output));
    assert!(said.contains("DILATED: all times are 10 times"), "{said}");
    assert!(said.contains("FAULTS in every socket: loss=0.01,dup=0.01,reorder=0.02"), "{said}");
}

#[test]
fn killed_workers_and_a_killed_switch_lose_nothing_and_are_timed() {
    let plan = SMALL.replace("length = \"1s\"", "length = \"5s\"\ndeadline = \"60s\"")
        + "[[event]]\nat = \"1s\"\nkill = \"worker w-1\"\nreturn_after = \"300ms\"\n"
        + "[[event]]\nat = \"3s\"\nkill = \"switch\"\nreturn_after = \"200ms\"\n";
    let folder = folder_with(&plan);
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    let events = result["events"].as_array().expect("a list");
    assert_eq!(events.len(), 2);
    assert_eq!(events[1]["what"], "kill -9 switch");
    // On a machine that is late by seconds, the kill may come after the load, and then has no effect.
    if events[1]["at_s"].as_f64() < Some(4.0) {
        assert!(events[1]["felt"]["lasted_s"].as_f64() > Some(0.1), "{}", events[1]);
    }
    nothing_is_left_of(folder.path());
}

#[test]
fn under_draconis_and_a_server_kills_and_loss_together_lose_no_task() {
    let plan = SMALL.replace("length = \"1s\"", "length = \"3s\"\ndeadline = \"60s\"")
        + "[[event]]\nat = \"600ms\"\nkill = \"worker w-1\"\nreturn_after = \"300ms\"\n"
        + "[[event]]\nat = \"1500ms\"\nkill = \"switch\"\nreturn_after = \"200ms\"\n";
    for policy in ["draconis:poll=500us,jobs=5", "server:1"] {
        let folder = folder_with(&plan);
        let args = ["up", "plan.toml", "--policy", policy, "--faults", "loss=0.01,dup=0.01", "--json"];
        let output = sluice(folder.path(), &args);
        assert_eq!(output.status.code(), Some(0), "{policy}: {}", stderr(&output));
        let result = json(&output);
        assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"], "{policy}");
        assert_eq!(result["events"].as_array().map(Vec::len), Some(2), "{policy}");
        nothing_is_left_of(folder.path());
    }
}

#[test]
fn a_killed_controller_of_its_own_loses_nothing() {
    let plan = SMALL.replace("length = \"1s\"", "length = \"3s\"\ndeadline = \"60s\"")
        + "[switch]\ncontroller_apart = true\n[[event]]\nat = \"1s\"\nkill = \"controller\"\nreturn_after = \"500ms\"\n";
    let folder = folder_with(&plan);
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    nothing_is_left_of(folder.path());
}

#[test]
fn a_sender_that_fell_behind_fails_its_gate_with_one_valid_result() {
    let folder = folder_with(&SMALL.replace("behind_max = \"60s\"", "behind_max = \"1ns\""));
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(result["passed"], false);
    assert_eq!(result["sender"]["fell_behind"], true);
    assert!(stderr(&output).contains("ms behind at its 99th percentile"), "{}", stderr(&output));
}

#[test]
fn thresholds_of_plan_and_flags_decide_the_exit_code() {
    let bounds = "behind_max = \"60s\"\nthresholds = [\"hold.p99<1min\", \"failed<1%\"]";
    let folder = folder_with(&SMALL.replace("behind_max = \"60s\"", bounds));
    // The type by its number.
    let flags = ["--threshold", "4.p99<1ns", "--threshold", "refused<=1%", "--length", "300ms", "--json"];
    let output = sluice(folder.path(), &[&["up", "plan.toml"], &flags[..]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let result = json(&output);
    let gates = result["gates"].as_array().expect("a list").iter();
    let set: Vec<_> = gates.filter(|gate| gate["name"] == "threshold").collect();
    let texts: Vec<_> = set.iter().map(|gate| gate["threshold"]["text"].as_str().expect("text")).collect();
    assert_eq!(texts, ["failed<1%", "hold.p99<1ns", "refused<=1%"], "the flag goes before the plan");
    assert_eq!((&set[0]["passed"], &set[1]["passed"]), (&true.into(), &false.into()));
    assert!(set[1]["threshold"]["measured"].as_f64() > Some(1.0), "{}", set[1]);
    assert!(stderr(&output).contains("hold.p99 is "), "{}", stderr(&output));
    let kept = std::fs::read_to_string(folder.path().join("out/small/plan.toml")).expect("it is kept");
    assert!(kept.contains("thresholds = [\"failed<1%\", \"hold.p99<1ns\", \"refused<=1%\"]"), "{kept}");
}

#[test]
fn a_threshold_on_nothing_that_is_measured_ends_before_anything_runs() {
    let folder = folder_with(SMALL);
    for (threshold, says) in [
        ("hodl.p99<5ms", "unknown type of this load `hodl`; did you mean `hold`?"),
        ("get.p99<5ms", "unknown type of this load `get`"),
        ("hold.p99x<5ms", "unknown number `p99x`; did you mean `p99`?"),
        ("p99<5", "p99 is a time, and `5` is not a span"),
        ("goodput>5", "goodput needs `within`"),
    ] {
        for verb in [&["up", "plan.toml"][..], &["load", "plan.toml", "--patience", "1ms"]] {
            let output = sluice(folder.path(), &[verb, &["--threshold", threshold]].concat());
            assert_eq!(output.status.code(), Some(2), "{threshold}: {}", stderr(&output));
            assert!(stderr(&output).contains(says), "{threshold}: {}", stderr(&output));
            assert_eq!(stdout(&output), "");
        }
    }
    assert!(!folder.path().join("out").exists(), "nothing ran");
    let idle = SMALL.split("[load]").next().expect("it has one").to_owned();
    let folder = folder_with(&idle);
    let output = sluice(folder.path(), &["up", "plan.toml", "--threshold", "p99<5ms"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("has no [load]"), "{}", stderr(&output));
}

#[test]
fn a_load_in_stages_has_results_per_stage_and_runs_again_from_its_plan() {
    let folder = folder_with(SMALL);
    let flags = ["--stages", "200:300ms,200..600rps:300ms,0:100ms,300:200ms,0:300ms", "--json"];
    let output = sluice(folder.path(), &[&["up", "plan.toml"], &flags[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    let stages = result["stages"].as_array().expect("a list");
    let sent = |stage: &Value| stage["tasks"]["sent"].as_u64().expect("a number");
    assert_eq!(stages.len(), 5, "also the pause at the end");
    assert_eq!(stages.iter().map(sent).sum::<u64>(), sent(&result));
    assert_eq!((sent(&stages[2]), &stages[2]["latency_ns"]), (0, &Value::Null));
    assert!(sent(&stages[1]) > sent(&stages[0]), "{stages:?}");
    assert_eq!((&stages[1]["from_s"], &stages[1]["to_per_s"]), (&0.5.into(), &600.0.into()));
    let text =
        |file: &str| std::fs::read_to_string(folder.path().join("out/small").join(file)).expect("there");
    let table = text("stages.csv");
    assert_eq!(table.lines().count(), 6, "{table}");
    assert!(table.lines().all(|line| line.split(',').count() == 34), "{table}");

    let again = sluice(folder.path(), &["up", "out/small/plan.toml"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(
        stdout(&again).contains("stages 200:300ms,200..600:300ms,0:100ms,300:200ms,0:300ms"),
        "{}",
        stdout(&again)
    );
    assert!(stdout(&again).contains("200..600"), "{}", stdout(&again));
}

#[test]
fn stages_that_cannot_be_are_refused_before_anything_runs() {
    let folder = folder_with(SMALL);
    for (flags, says) in [
        (&["--stages", "10k"][..], "`10k` is no stage: write RATE:SPAN"),
        (&["--stages", "1k:1s", "--length", "1s"], "cannot be used with"),
        (&["--stages", "1k:1s", "--rate", "5"], "cannot be used with"),
        (&["--stages", "0:1s"], "no task ever comes"),
    ] {
        for verb in ["up", "load"] {
            let output = sluice(folder.path(), &[&[verb, "plan.toml"], flags].concat());
            assert_eq!(output.status.code(), Some(2), "{flags:?}: {}", stderr(&output));
            assert!(stderr(&output).contains(says), "{flags:?}: {}", stderr(&output));
        }
    }
    let staged = SMALL.replace("rate = 300", "stages = \"300:1s\"").replace("length = \"1s\"\n", "");
    for (plan, says) in [
        (SMALL.replace("rate = 300", "stages = \"300:1s\""), "stages have a length of their own"),
        (staged.clone() + "arrivals = \"constant\"", "come at random moments"),
        (staged.clone() + "rate = 5", "needs one of `rate`"),
        (staged.replace(":1s", ""), "`300` is no stage"),
    ] {
        let folder = folder_with(&plan);
        let output = sluice(folder.path(), &["up", "plan.toml"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{plan}: {}", stderr(&output));
    }
    let folder = folder_with(&staged);
    let output = sluice(folder.path(), &["up", "plan.toml", "--length", "1s"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("leave --length out"), "{}", stderr(&output));
    assert!(!folder.path().join("out").exists(), "nothing ran");
}

#[test]
fn a_signal_ends_a_run_early_with_what_was_measured() {
    let said = stopped_early("behind_max = \"60s\"");
    assert!(!said.contains("does not hold"), "{said}");
}

#[test]
fn a_run_that_was_stopped_ends_as_such_also_where_a_gate_is_missed() {
    let said = stopped_early("behind_max = \"1ns\"");
    assert!(said.contains("the result does not hold: the sender was"), "{said}");
}

/// Stops the small rack in the middle of its load; returns its final output.
fn stopped_early(behind_max: &str) -> String {
    let plan =
        SMALL.replace("length = \"1s\"", "length = \"60s\"").replace("behind_max = \"60s\"", behind_max);
    let folder = folder_with(&plan);
    let mut up = command(folder.path(), &["up", "plan.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sluice starts");
    let said = BufReader::new(up.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let mut said = said.skip_while(|line| !line.starts_with("load "));
    assert!(said.next().is_some(), "the load never ran");
    terminate(&up);
    let rest: Vec<String> = said.collect();
    let output = up.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(4), "{rest:?}");
    assert!(stdout(&output).contains("STOPPED EARLY"), "{}", stdout(&output));
    let text = std::fs::read_to_string(folder.path().join("out/small/result.json")).expect("written");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    hold_to_schema(&result);
    assert_eq!(result["aborted"], true);
    assert_eq!(result["tasks"]["lost"], 0);
    nothing_is_left_of(folder.path());
    rest.join("\n")
}

#[test]
fn a_rack_without_a_load_runs_until_it_is_stopped_and_can_be_asked_and_loaded() {
    let plan = SMALL.split("[load]").next().expect("the rack's part").to_owned();
    let folder = folder_with(&plan);
    let mut switch =
        command(folder.path(), &["switch", "plan.toml", "--json", "--quiet", "--control", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sluice starts");
    let mut line = String::new();
    BufReader::new(switch.stdout.take().expect("piped"))
        .read_line(&mut line)
        .expect("it says where it listens");
    let listening: Value = serde_json::from_str(&line).expect("JSON");
    hold_to_schema(&listening);
    let control = listening["control"].as_str().expect("an address").to_owned();
    let mut worker =
        command(folder.path(), &["worker", "hold", "--controller", &control, "--name", "solo", "--quiet"])
            .stderr(Stdio::null())
            .spawn()
            .expect("sluice starts");
    let args = [
        "load",
        "--controller",
        &control,
        "--rate",
        "100",
        "--mix",
        "hold=1",
        "--warm-up",
        "1s",
        "--length",
        "1s",
        "--json",
    ];
    let patience = Instant::now() + Duration::from_mins(2);
    let status = loop {
        let status = json(&sluice(folder.path(), &["status", "--controller", &control, "--json"]));
        if status["workers"][0]["phase"] == "open" {
            break status;
        }
        assert!(Instant::now() < patience, "{status}");
    };
    assert_eq!(status["workers"][0]["name"], "solo");
    let output = sluice(folder.path(), &args);
    let result = json(&output);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"], "{}", stderr(&output));
    assert_eq!(result["workers"], Value::Null);
    for child in [&mut worker, &mut switch] {
        terminate(child);
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn doctor_and_resources_and_fault_runs_speak_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let doctor = json(&sluice(folder.path(), &["doctor", "--json"]));
    assert!(doctor["checks"].as_array().is_some_and(|checks| checks.len() >= 7));
    let resources = json(&sluice(folder.path(), &["resources", "rain", "--json"]));
    assert_eq!(resources["paper"]["stages"], 11);
    assert_eq!(resources["in_p4"]["stages"], 12);
    let labels = json(&sluice(folder.path(), &["resources", "rain:2,labels", "--json"]));
    assert!(labels["in_p4"].is_null(), "{labels}");
    let runs = sluice(folder.path(), &["fault-runs", "--from", "3", "--count", "2", "--json"]);
    assert_eq!(json(&runs)["runs"], 2);
    let replay = sluice(folder.path(), &["replay-fault", "3"]);
    assert_eq!(replay.status.code(), Some(0), "{}", stderr(&replay));
    assert!(stdout(&replay).contains("-> worker 0"), "{}", stdout(&replay));
}

#[test]
fn fault_runs_go_on_where_the_last_ones_with_that_file_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = |policy: &[&str], count: &str| {
        let args =
            ["fault-runs", "--from", "5", "--count", count, "--resume", "places", "--json", "--policy"];
        sluice(folder.path(), &[&args, policy].concat())
    };
    let first_of = |policy: &[&str]| json(&runs(policy, "3"))["from"].as_u64();
    let rain = ["rain:2,labels"];
    assert_eq!([(); 3].map(|()| first_of(&rain)), [Some(5), Some(8), Some(11)]);
    assert_eq!(first_of(&["rain:1", "--cores"]), Some(5), "each kind of run has a place of its own");
    assert_eq!(first_of(&["rain:1"]), Some(5));
    let places = || std::fs::read_to_string(folder.path().join("places")).expect("it was kept");
    assert_eq!(places(), "8 rain:1\n8 rain:1 --cores\n14 rain:2,labels\n");

    let breaks = ["draconis:poll=20us,as-published"];
    let seeds = [(); 2].map(|()| {
        let output = runs(&breaks, "100");
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        json(&output)["from"].as_u64()
    });
    assert_eq!(seeds, [Some(5); 2], "a seed that broke a promise is met again");

    std::fs::write(folder.path().join("places"), "8 rain:1\nrain:2 7\n").expect("written");
    let output = runs(&rain, "3");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("places: line 2: `rain:2 7` is no seed and policy"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_fault_run_is_told_as_a_story_of_all_or_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = |only: &[&str]| {
        let output = sluice(folder.path(), &[&["replay-fault", "3"], only].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("keeps every promise: ") && !stderr(&output).contains('{'));
        stdout(&output)
    };
    let all = told(&[]);
    for part in [
        "FAULT: ",
        "SUBMIT task 0.0, try 1: type ",
        "TOKEN 1: ready for one more task",
        " runs task ",
        "LOST",
        " worker 0    -> controller  registers: slice",
        " client 0    -> controller  registers; ",
    ] {
        assert!(all.contains(part), "no `{part}`");
    }
    // Values in Rust's debug format: names followed by braces or brackets, and options.
    for sign in ["{", "}", "Some(", "None", "Nanos(", "Endpoint"] {
        let line = all.lines().find(|line| line.contains(sign));
        assert_eq!(line, None, "`{sign}`");
    }
    let times = all.lines().map(|line| line.find(" us  "));
    assert!(times.into_iter().all(|at| at == Some(10)), "times are aligned");
    let worker = told(&["--only", "worker:1"]);
    assert!(worker.lines().count() < all.lines().count() / 2);
    assert!(worker.lines().all(|line| line.contains("worker 1") || line.contains("us  rack")), "{worker}");
    let task = told(&["--only", "task:0.0"]);
    let about = task.lines().filter(|line| !line.contains("us  rack"));
    assert!(about.clone().count() > 3 && about.clone().all(|line| line.contains("task 0.0")), "{task}");
}

#[test]
fn a_state_folder_that_fails_is_what_doctor_complains_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = sluice(folder.path(), &["doctor", "--state", "/dev/null/state", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(json(&output)["checks"].to_string().contains("\"health\":\"fail\""));
}
