//! A small sweep of live racks: real packets, and the simulator on the same traces.

mod common;

use std::fs;

use common::{json, sluice, stderr};

#[test]
fn a_sweep_puts_the_simulators_prediction_beside_what_real_packets_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = "up --policy rain:2,racksched:2,tracked --sweep 0.1,0.2 --dilate 500 --length 200ms --replications 2 \
                 --each-task --json --out swept";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let output = sluice(folder.path(), &args);
    // A machine that is busy with other tests may well be too late to agree.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
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
