//! Two results held against each other.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use sluice_outcome::study::StudyOutcome;

use super::common::{json as json_of, sluice, stderr, stdout};
use super::fixture;

fn put(folder: &Path, name: &str, value: &Value) {
    fs::create_dir_all(folder.join(name)).expect("a folder");
    let file = if value["schema"] == "sluice.result.v1" { "result.json" } else { "study.json" };
    fs::write(folder.join(name).join(file), value.to_string()).expect("written");
}

fn diff_of(a: &Value, b: &Value, flags: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    put(folder.path(), "a", a);
    put(folder.path(), "b", b);
    sluice(folder.path(), &[&["diff", "a", "b"], flags].concat())
}

fn value(study: &StudyOutcome) -> Value {
    serde_json::to_value(study).expect("JSON")
}

#[test]
fn a_result_does_not_differ_from_itself() {
    let study = value(&fixture::two_classes());
    let output = diff_of(&study, &study, &["--json", "--exit-code"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = json_of(&output);
    assert_eq!((&found["differing"], &found["noise"]), (&json!(0), &json!(0)));
    assert_eq!(found["same"].as_u64(), found["numbers"].as_array().map(|all| all.len() as u64));
    assert_eq!(found["settings"], json!([]));
    let text = stdout(&diff_of(&study, &study, &[]));
    assert!(text.contains("of the same settings and version"), "{text}");
    assert!(text.contains("0 of ") && text.contains("numbers differ"), "{text}");
}

#[test]
fn what_chance_explains_is_noise_and_the_rest_differs() {
    let study = fixture::one_class();
    let mut other = study.clone();
    other.settings.seed = 2;
    let point = &mut other.panels[0].series[0].points[0];
    let p50 = &mut point.overall.latency_ns.p50;
    let width = p50.high - p50.low;
    for end in [&mut p50.value, &mut p50.low, &mut p50.high] {
        *end += width / 20.0;
    }
    let p99 = &mut point.overall.latency_ns.p99;
    for end in [&mut p99.value, &mut p99.low, &mut p99.high] {
        *end *= 3.0;
    }
    let (a, b) = (value(&study), value(&other));
    let output = diff_of(&a, &b, &["--json", "--exit-code"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("numbers differ by more than noise"), "{}", stderr(&output));
    let found = json_of(&output);
    let verdicts: Vec<(&str, &str)> = found["numbers"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|number| number["verdict"] != "same")
        .filter_map(|number| Some((number["number"].as_str()?, number["verdict"].as_str()?)))
        .collect();
    assert_eq!(verdicts, [("latency_ns_p50", "noise"), ("latency_ns_p99", "differs")]);
    assert_eq!(found["settings"], json!([{ "name": "seed", "a": "1", "b": "2" }]));
    let output = diff_of(&a, &b, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("set up differently: seed 1 and 2"), "{text}");
    assert!(text.contains("DIFFERS") && text.contains("noise"), "{text}");
}

#[test]
fn points_of_one_result_alone_are_named_and_two_without_a_common_point_are_refused() {
    let study = fixture::one_class();
    let mut other = study.clone();
    other.panels[0].series.remove(0);
    let output = diff_of(&value(&study), &value(&other), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("only in A: "), "{}", stdout(&output));
    // A point that is gone may be the one that became worse.
    for (a, b, says) in
        [(&study, &other, "only in A: exp: rain:1"), (&other, &study, "only in B: exp: rain:1")]
    {
        let output = diff_of(&value(a), &value(b), &["--exit-code"]);
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    other.panels[0].series.clear();
    let output = diff_of(&value(&study), &value(&other), &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("have no point in common"), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
}

/// A load's result with one type, as far as a diff reads it.
fn load(refused: u64, p99: f64, intervals: bool) -> Value {
    let near = |value: f64| json!([value * 0.95, value * 1.05]);
    let share = refused as f64 / 1000.0;
    let refusals = json!([share * 0.5, share * 2.0 + 0.001]);
    let known = json!({ "replied_per_s": near(100.0), "latency_ns_p99": near(p99), "refused": refusals });
    json!({
        "schema": "sluice.result.v1", "name": "by hand", "policy": "rain:2", "seed": 1,
        "types": [{
            "name": "get", "replied_per_s": 100.0,
            "tasks": { "sent": 1000, "failed": 0, "refused": refused, "unknown": 0 },
            "latency_ns": { "mean": 1e6, "p50": 1e6, "p99": p99, "p999": 5e6 },
            "intervals": if intervals { known } else { json!({}) },
        }],
    })
}

#[test]
fn loads_are_held_against_each_other_by_the_intervals_of_their_parts() {
    let numbers = |a: &Value, b: &Value| {
        let found = json_of(&diff_of(a, b, &["--json"]));
        let all = found["numbers"].as_array().expect("a list").clone();
        let unequal = all.into_iter().filter(|number| number["verdict"] != "same");
        let told = |number: Value| format!("{} {}", number["number"], number["verdict"]).replace('"', "");
        unequal.map(told).collect::<Vec<String>>()
    };
    assert_eq!(
        numbers(&load(0, 2e6, true), &load(100, 2.05e6, true)),
        ["refused differs", "latency_ns_p99 noise"]
    );
    let staged = |p99: f64| {
        let mut of = load(0, 2e6, true);
        of["stages"] = json!([load(0, 2e6, true)["types"][0], load(0, p99, true)["types"][0]]);
        of
    };
    let found = json_of(&diff_of(&staged(2e6), &staged(9e6), &["--json"]));
    let differs = |number: &&Value| number["verdict"] == "differs";
    let all = found["numbers"].as_array().expect("a list");
    let differing: Vec<&Value> = all.iter().filter(differs).map(|number| &number["class"]).collect();
    assert_eq!(differing, ["stage 2"]);
    let output = diff_of(&staged(2e6), &load(0, 2e6, true), &["--exit-code"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("only in A: stage 1, stage 2"), "{}", stderr(&output));
    let mut stopped = load(0, 2e6, true);
    stopped["aborted"] = json!(true);
    stopped["events"] = json!([{ "what": "kill -9 switch" }]);
    let found = json_of(&diff_of(&load(0, 2e6, true), &stopped, &["--json"]));
    let settings = json!([
        { "name": "aborted", "a": "none", "b": "true" },
        { "name": "kills", "a": "none", "b": "kill -9 switch" },
    ]);
    assert_eq!(found["settings"], settings);
    let old = numbers(&load(0, 2e6, false), &load(0, 2.05e6, true));
    assert!(old.contains(&"latency_ns_p99 not_known".to_owned()), "{old:?}");
    let output = diff_of(&load(0, 2e6, true), &value(&fixture::one_class()), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("are of different kinds"), "{}", stderr(&output));
    let output = diff_of(&json!({ "schema": "sluice.error.v1" }), &load(0, 2e6, true), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is neither a study.json nor a result.json"), "{}", stderr(&output));
}
