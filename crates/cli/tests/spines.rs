//! Racks below two live spines, each a process: one of them is killed and comes back.

mod common;

use common::{json, sluice, stderr};

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

#[test]
fn a_spine_that_is_killed_loses_no_task() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("plan.toml"), PLAN).expect("written");
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    assert!(result["tasks"]["sent"].as_u64() > Some(400), "{}", result["tasks"]);
    assert_eq!(result["tasks"]["sent"], result["tasks"]["replied"]);
    let event = &result["events"][0];
    assert_eq!(event["what"], "kill -9 spine 2");
    assert!(event["felt"]["sent_again"].as_u64() > Some(0), "what it had was sent again: {event}");
    let logs = folder.path().join("out/logs");
    let spine = std::fs::read_to_string(logs.join("leaf-2.log")).expect("a leaf's log");
    for part in ["turns to the controller", "back at its own controller"] {
        assert!(spine.contains(part), "{spine}");
    }
}
