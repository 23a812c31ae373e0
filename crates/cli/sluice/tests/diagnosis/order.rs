//! Racks in order: nothing is wrong while they start, rest, or work hard.

use std::time::Duration;

use crate::rig::{PLAN, Rack, codes, patient};

#[test]
fn a_rack_that_starts_and_rests_and_works_hard_is_in_order() {
    // No task is refused, however long this machine keeps the workers from running.
    let rack = Rack::of(&patient().replace("limit = 64", "limit = 8192"));
    let up = rack.up();
    rack.stays_in_order(Duration::from_secs(8));
    assert!(rack.text().contains("\nnothing wrong found\n"), "{}", rack.text());
    let load = ["load", "--mix", "hold=1", "--rate", "300", "--warm-up", "0s", "--length", "10s", "--quiet"];
    let load = rack.quiet(&load);
    rack.stays_in_order(Duration::from_secs(8));
    drop(load);
    up.ends_well();
}

#[test]
fn a_switch_that_has_no_worker_yet_is_not_blamed_until_half_a_minute_has_passed() {
    let rack = Rack::of(PLAN.split("[[worker]]").next().expect("the slice"));
    let (_switch, _) = rack.listens(&["switch", "rack.toml"]);
    // It listens before it has said where, so that the first call may find nobody.
    rack.until("up", |status| status["switch"]["link"] == "up");
    rack.stays_in_order(Duration::from_secs(8));
    let told = rack.finds("slice-closed");
    assert_eq!(told["subject"]["name"], "work", "{told}");
    assert!(told["why"].as_str().is_some_and(|why| why.starts_with("for 30 s at least")), "{told}");
}

#[test]
fn lines_and_objects_of_a_watch_tell_findings_too() {
    let rack = Rack::of(PLAN);
    let up = rack.up();
    rack.is_in_order();
    let watched = |flags: &[&str]| {
        let args = [&["status", "--watch", "--every", "100ms"], flags].concat();
        let watch = crate::common::command(rack.folder(), &args).stdout(std::process::Stdio::piped()).spawn();
        let mut watch = crate::common::Running(watch.expect("it starts"));
        let said = std::io::BufReader::new(watch.0.stdout.take().expect("piped"));
        std::io::BufRead::lines(said).map_while(Result::ok).next().expect("a line")
    };
    let line = watched(&[]);
    assert!(line.ends_with("; nothing wrong found"), "{line}");
    let object = serde_json::from_str(&watched(&["--json"])).expect("JSON");
    assert_eq!(codes(&object), [""; 0]);
    up.ends_well();
}
