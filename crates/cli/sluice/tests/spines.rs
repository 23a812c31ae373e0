//! Racks below live spines, each in a process: a spine is killed and returns, a load from outside goes to
//! both spines, and leaves run on servers of their racks.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};

use common::{Running, command, hold_to_schema, json, sluice, sluice_succeeds, sluice_until, stderr, stdout};
use serde_json::Value;

/// The spines' names are in the order of the racks, one below each.
const PLAN: &str = r#"
name = "spines"
policy = "dc-horus:idle-rack=random"
seed = 1
out = "out"

[racks]
count = 2
spines = 2

[[slice]]
name = "hold"
types = ["hold"]

[[worker]]
name = "w"
count = 2
slice = "hold"
service = "hold"

[load]
rate = 200
mix = "hold=1"
warm_up = "200ms"
length = "5s"
deadline = "20s"
behind_max = "10s"

[load.request.hold]
busy = "1ms"

[[event]]
at = "800ms"
kill = "spine 2"
return_after = "3s"
"#;

/// The plan with seconds before the second spine dies, while it is away, and after its return, so that each
/// is heard of.
fn with_seconds_between() -> String {
    let dies = PLAN.replace("\"800ms\"", "\"4s\"").replace("\"3s\"", "\"4s\"");
    dies.replace("length = \"5s\"", "length = \"15s\"")
}

#[test]
fn a_spine_that_is_killed_loses_no_task() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("plan.toml"), with_seconds_between()).expect("written");
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    assert!(result["tasks"]["sent"].as_u64() > Some(400), "{}", result["tasks"]);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    let event = &result["events"][0];
    assert_eq!(event["what"], "kill -9 spine 2");
    assert!(event["felt"]["sent_again"].as_u64() > Some(0), "what it had was sent again: {event}");
    assert!(event["felt"]["lasted_s"].as_f64() > Some(0.0), "its tasks needed another try: {event}");
    assert_eq!(result["leaf_trips"].as_array().map(Vec::len), Some(0), "leaves are in their racks' switches");
    let logs = folder.path().join("out/logs");
    let spine = std::fs::read_to_string(logs.join("leaf-2.log")).expect("a leaf's log");
    for part in ["turns to the controller", "back at its own controller"] {
        assert!(spine.contains(part), "{spine}");
    }
}

/// The plan with four workers in both racks. One of them dies after the second leaf has returned.
fn and_a_worker_dies(plan: &str) -> String {
    let event = "[[event]]\nat = \"4s\"\nkill = \"worker w-1\"\nreturn_after = \"500ms\"\n";
    plan.replace("count = 2\nslice", "count = 4\nslice") + event
}

/// The texts of the run's events: the parts that were killed.
fn killed(result: &Value) -> Vec<&str> {
    let events = result["events"].as_array().expect("all that happened");
    events.iter().filter_map(|event| event["what"].as_str()).collect()
}

/// Tasks wait in the leaf that dies, and meanwhile in the other one: workers have one token each. Three of a
/// rack's four workers are busy on average while one rack does all, so the spine sends to the dead leaf, too.
#[test]
fn a_leaf_of_rain_and_a_worker_that_are_killed_below_a_live_spine_lose_no_task() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = PLAN.replace("dc-horus:idle-rack=random", "dc-rain:1,told=replies");
    let plan = and_a_worker_dies(&plan.replace("spines = 2", "spines = 1").replace("spine 2", "leaf 2"));
    let plan = plan.replace("count = 4", "count = 8").replace("busy = \"1ms\"", "busy = \"15ms\"");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(result["policy"], "dc-rain:1,told=replies");
    assert!(result["tasks"]["sent"].as_u64() > Some(400), "{}", result["tasks"]);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    assert!(result["events"][0]["felt"]["sent_again"].as_u64() > Some(0), "{}", result["events"]);
    assert_eq!(killed(&result), ["kill -9 leaf 2", "kill -9 worker w-1"]);
}

/// One controller above both spines in a process of its own: first it dies and returns, then it must handle
/// a dead spine.
#[test]
fn a_controller_above_the_spines_dies_and_comes_back_and_sends_a_dead_spines_racks_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let dies = "[[event]]\nat = \"300ms\"\nkill = \"controller\"\nreturn_after = \"400ms\"\n";
    let plan = with_seconds_between().replace("[racks]", "[switch]\ncontroller_apart = true\n[racks]") + dies;
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    let killed = killed(&result);
    assert!(killed.contains(&"kill -9 controller") && killed.contains(&"kill -9 spine 2"), "{killed:?}");
    let log = |name: &str| std::fs::read_to_string(folder.path().join("out/logs").join(name)).expect("a log");
    let (controller, leaf) = (log("controller.log"), log("leaf-2.log"));
    for part in ["spine 2 is lost: spine 1 stands in for it", "spine 2 is there"] {
        assert!(controller.contains(part), "{controller}");
    }
    assert!(!leaf.contains("turns to the controller"), "it has one controller: {leaf}");
}

/// All packets of a leaf pass its rack's forwarding switch, since no other part knows the leaf's address.
#[test]
fn a_leaf_on_a_server_of_its_rack_is_reached_through_the_racks_switch_and_its_way_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = PLAN.replace("spines = 2", "leaf = \"server\"").replace("spine 2", "leaf 2");
    let plan = and_a_worker_dies(&plan);
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    assert_eq!(killed(&result), ["kill -9 leaf 2", "kill -9 worker w-1"]);
    let trips = result["leaf_trips"].as_array().expect("both racks'");
    assert_eq!(trips.iter().map(|trip| trip["rack"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    let packets: u64 = trips.iter().filter_map(|trip| trip["packets"].as_u64()).sum();
    assert!(Some(packets) > result["tasks"]["replied"].as_u64(), "each task and its reply: {trips:?}");
    // Two processes cannot send and receive a packet twice in less time.
    assert!(trips.iter().all(|trip| trip["trip_ns"]["p50"].as_f64() > Some(1_000.0)), "{trips:?}");
}

/// One type's workers are below the first spine, the other's below the second.
const APART: &str = r#"
name = "apart"
policy = "dc-horus"
out = "out"

[racks]
count = 2
spines = 2

[[slice]]
name = "first"
types = ["hold"]

[[slice]]
name = "second"
types = ["spin"]

[[worker]]
name = "h"
rack = 1
slice = "first"
service = "hold"

[[worker]]
name = "s"
rack = 2
slice = "second"
service = "spin"
"#;

/// Starts the racks of that plan, and waits until they are ready.
fn apart(folder: &Path) -> Running {
    std::fs::write(folder.join("plan.toml"), APART).expect("written");
    let up = command(folder, &["up", "plan.toml"]).stderr(Stdio::piped()).spawn();
    let mut up = Running(up.expect("it starts"));
    let said = BufReader::new(up.0.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let mut said = said.filter(|line| line.contains("workers are ready"));
    assert!(said.next().is_some(), "never ready");
    std::thread::spawn(move || said.for_each(drop));
    up
}

#[test]
fn a_load_from_outside_goes_to_all_spines_and_to_those_that_serve_a_type() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = apart(folder.path());
    let load = ["load", "--mix", "hold=0.5,spin=0.5", "--rate", "50", "--warm-up", "0s", "--length", "1s"];
    let output = sluice(folder.path(), &[&load[..], &["--json"]].concat());
    let result = json(&output);
    let types = result["types"].as_array().expect("both");
    for of in types {
        assert!(of["tasks"]["sent"].as_u64() > Some(0), "{result}");
        assert_eq!(of["tasks"]["sent"], of["tasks"]["replied"], "{}", stderr(&output));
    }
    up.ends_well();
}

#[test]
fn a_change_of_one_of_several_spines_is_refused_with_all_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = apart(folder.path());
    let all = json(&sluice_succeeds(folder.path(), &["status", "--json"]));
    for change in [&["map", "hold", "second"][..], &["map", "hold"], &["move", "h", "second"]] {
        let refused = sluice(folder.path(), change);
        assert_eq!(refused.status.code(), Some(2), "{change:?}");
        for spine in all["spines"].as_array().expect("both") {
            let named = spine["controller"].as_str().expect("an address");
            assert!(stderr(&refused).contains(named), "{named}: {}", stderr(&refused));
        }
    }
    let one = all["spines"][0]["controller"].as_str().expect("an address");
    let refused = sluice(folder.path(), &["map", "hold", "second", "--controller", one]);
    assert!(stderr(&refused).contains("stand in their plan"), "{}", stderr(&refused));
    up.ends_well();
}

#[test]
fn status_shows_each_spine_and_says_of_one_that_is_dead_that_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = apart(folder.path());
    let live = |spine: &Value| spine["why_dead"].is_null();
    let all_live =
        |output: &Output| json(output)["spines"].as_array().is_some_and(|all| all.iter().all(live));
    let all = json(&sluice_until(folder.path(), &["status", "--json"], all_live));
    let leaf = |spine: usize| &all["spines"][spine]["status"]["workers"][0]["name"];
    assert_eq!([leaf(0), leaf(1)], ["rack-1/first", "rack-2/second"], "{all}");
    all["spines"].as_array().expect("both").iter().for_each(|spine| hold_to_schema(&spine["status"]));
    let whole = |output: &Output| stdout(output).contains("2 spines, 0 of them dead");
    let text = stdout(&sluice_until(folder.path(), &["status"], whole));
    for part in ["2 spines, 0 of them dead", "spine 1: controller", "rack-1/first", "spine 2: controller"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Nobody listens on port 1.
    let first = all["spines"][0]["controller"].as_str().expect("an address");
    let asked = format!("{first},127.0.0.1:1");
    let output = sluice_succeeds(folder.path(), &["status", "--controller", &asked, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let one = json(&output);
    assert!(one["spines"][0]["why_dead"].is_null() && one["spines"][1]["status"].is_null(), "{one}");
    let why = one["spines"][1]["why_dead"].as_str().expect("it is dead");
    assert!(why.contains("no controller answers at http://127.0.0.1:1"), "{why}");
    let text = stdout(&sluice_succeeds(folder.path(), &["status", "--controller", &asked]));
    assert!(text.contains("2 spines, 1 of them dead") && text.contains("spine 2: dead: no"), "{text}");
    up.ends_well();
}
