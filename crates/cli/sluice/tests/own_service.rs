//! A user's own service and client as real processes: under `sluice up`, and with a lone `sluice switch`.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Running, command, example, json, lone_switch, sluice, sluice_succeeds, stderr, stdout};

/// The part of a plan that they need.
const TYPES_AND_SLICES: &str = "[types]\nreverse = 9\n[[slice]]\nname = \"words\"\ntypes = [\"reverse\"]\n";

fn folder_with(plan: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    folder
}

/// The service; it registers some time after.
fn service(controller: &str) -> Running {
    let mut service = Command::new(example("reverse_service"));
    let service = service.args(["--controller", controller, "--quiet"]).spawn().expect("it starts");
    Running(service)
}

fn client(controller: &str) -> Output {
    Command::new(example("reverse_client")).args([controller, "stressed"]).output().expect("it starts")
}

/// A client that comes before the service is refused after a while, and comes again.
fn reverses(controller: &str) {
    let patience = Instant::now() + Duration::from_mins(2);
    loop {
        let output = client(controller);
        if output.status.success() {
            return assert_eq!(stdout(&output), "desserts\n");
        }
        let said = stderr(&output);
        assert!(said.contains("refused: ") && Instant::now() < patience, "{said}");
    }
}

fn load(folder: &Path, controller: &str, mix: &str) -> Output {
    let load = ["load", "--controller", controller, "--mix", mix, "--rate", "100", "--warm-up", "100ms"];
    sluice(folder, &[&load[..], &["--length", "500ms", "--json"]].concat())
}

#[test]
fn they_work_beside_a_lone_switch_with_a_plan_of_types_and_slices_only() {
    let folder = folder_with(TYPES_AND_SLICES);
    let (_switch, controller) = lone_switch(folder.path());
    let _service = service(&controller);
    reverses(&controller);
    for mix in ["9=1", "009=1"] {
        let result = json(&load(folder.path(), &controller, mix));
        assert_eq!(result["types"][0]["name"], "9");
        assert!(result["tasks"]["sent"].as_u64() > Some(20), "{result}");
        assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    }
}

#[test]
fn the_plan_that_the_readme_names_runs_with_its_service_and_its_load() {
    let path = "target/debug/examples/reverse_service";
    let plan = include_str!("../../../run/net/examples/reverse.toml").replace("\"5s\"", "\"500ms\"");
    assert!(plan.contains(path), "{plan}");
    let folder = folder_with(&plan.replace(path, &example("reverse_service").display().to_string()));
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    let result = json(&output);
    assert_eq!(result["types"][0]["name"], "reverse", "{}", stderr(&output));
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"], "{result}");
}

#[test]
fn they_work_under_up_which_starts_the_service_or_waits_for_one() {
    let service_of_the_plan = format!(
        "[[worker]]\nname = \"w\"\nslice = \"words\"\nexec = \"{}\"\n",
        example("reverse_service").display()
    );
    for workers in [service_of_the_plan.as_str(), ""] {
        let folder = folder_with(&[TYPES_AND_SLICES, workers].concat());
        let up = command(folder.path(), &["up", "plan.toml"]).stderr(Stdio::piped()).spawn();
        let mut up = Running(up.expect("it starts"));
        let mut said = BufReader::new(up.0.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let at = said.find_map(|line| Some(line.split_once("controller is at ")?.1.to_owned()));
        let controller = at.expect("it says where it is");
        let _own = workers.is_empty().then(|| service(&controller));
        reverses(&controller);
        up.ends_well();
    }
}

#[test]
fn a_type_that_no_slice_takes_is_refused_once_in_a_sentence() {
    let folder = folder_with(&TYPES_AND_SLICES.replace("= 9", "= 8"));
    let (_switch, controller) = lone_switch(folder.path());
    let mut other = command(folder.path(), &["worker", "hold", "--controller", &controller]);
    let refused = other.output().expect("it starts");
    assert!(
        stderr(&refused).contains("no slice takes only types that this worker serves"),
        "{}",
        stderr(&refused)
    );

    let output = client(&controller);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.starts_with("refused: no slice takes type 9: "), "{said}");
    assert!(!said.contains('"') && said.lines().count() == 1, "{said}");

    let output = load(folder.path(), &controller, "8=0.5,9=0.5");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = json(&output)["error"]["message"].to_string();
    assert!(
        said.contains("no slice of this rack takes type `9`") && said.contains("sluice map 9 SLICE"),
        "{said}"
    );
}

/// Beside the slice of the service there is one without workers.
#[test]
fn the_plans_own_names_of_types_are_known_to_whoever_asks_the_rack() {
    let spare = "[[slice]]\nname = \"spare\"\n";
    let folder = folder_with(&[TYPES_AND_SLICES, spare].concat());
    let (_switch, controller) = lone_switch(folder.path());
    let _service = service(&controller);
    reverses(&controller);
    let asks = |args: &[&str]| sluice(folder.path(), &[args, &["--controller", &controller]].concat());
    let looks =
        |args: &[&str]| sluice_succeeds(folder.path(), &[args, &["--controller", &controller]].concat());

    let result = json(&load(folder.path(), &controller, "reverse=1"));
    assert_eq!(result["types"][0]["name"], "reverse");
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    let unknown = json(&load(folder.path(), &controller, "revers=1"));
    let said = unknown["error"]["message"].as_str().expect("it is refused");
    assert!(said.contains("did you mean `reverse`?"), "{said}");

    let text = stdout(&looks(&["status"]));
    assert!(text.contains("reverse (9)"), "{text}");
    let status = json(&looks(&["status", "--json"]));
    assert!(status["types"].as_array().is_some_and(|all| all.iter().any(|of| of["name"] == "reverse")));

    let mapped = asks(&["map", "reverse", "words"]);
    assert_eq!(stdout(&mapped), "tasks of type reverse go to slice words\n", "{}", stderr(&mapped));
    assert_eq!(stderr(&mapped), "");
    let to_spare = asks(&["map", "reverse", "spare"]);
    assert_eq!(to_spare.status.code(), Some(0), "{}", stderr(&to_spare));
    assert!(stderr(&to_spare).contains("slice spare has no workers"), "{}", stderr(&to_spare));

    let unserved = asks(&["map", "get", "words"]);
    assert_eq!(unserved.status.code(), Some(2));
    assert!(
        stderr(&unserved).contains("takes types get (1)") && stderr(&unserved).contains("serves reverse (9)"),
        "{}",
        stderr(&unserved)
    );
}
