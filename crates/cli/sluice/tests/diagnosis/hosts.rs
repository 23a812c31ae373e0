//! Workers and clients that stop, or are slow.

use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::rig::{PLAN, Rack, patient, signal};

#[test]
fn a_worker_that_stands_still_is_told_until_it_goes_on() {
    let rack = Rack::of(PLAN);
    let up = rack.up();
    let stopped = up.worker_process("w-2");
    signal(stopped, Signal::STOP);
    let told = rack.finds("worker-stopped");
    assert_eq!((&told["severity"], &told["subject"]["name"]), (&"wrong".into(), &"w-2".into()), "{told}");
    rack.until("removed", |status| status["workers"].as_array().map(Vec::len) == Some(1));
    let text = rack.text();
    assert!(text.contains("wrong: worker w-2 has stopped") && text.contains("- do: "), "{text}");
    signal(stopped, Signal::CONT);
    rack.is_in_order();
    up.ends_well();
}

#[test]
fn a_worker_that_is_killed_is_told_until_another_takes_its_name_and_a_client_beside_it() {
    let rack = Rack::of(PLAN.split("[[worker]]").next().expect("the slice"));
    let (_switch, control) = rack.listens(&["switch", "rack.toml"]);
    let worker = || rack.quiet(&["worker", "hold", "--name", "mine", "--controller", &control]);
    let other = rack.quiet(&["worker", "hold", "--name", "other", "--controller", &control]);
    let first = worker();
    let client = rack.quiet(&["load", "--mix", "hold=1", "--rate", "50", "--length", "600s"]);
    rack.until("loaded", |status| {
        status["workers"].as_array().map(Vec::len) == Some(2) && status["clients"][0].is_object()
    });
    // Dropping kills.
    drop((first, client));
    assert_eq!(rack.finds("worker-stopped")["subject"]["name"], "mine");
    assert_eq!(rack.finds("client-stopped")["severity"], "warning");
    let second = worker();
    rack.until("back", |status| crate::rig::codes(status) == ["client-stopped"]);
    second.ends_well();
    other.ends_well();
}

/// Tasks hold for 3 ms; one of three workers is stopped for most of the time.
#[test]
fn a_worker_that_is_slower_than_its_peers_is_told_with_figures() {
    let rack = Rack::of(&PLAN.replace("count = 2", "count = 3"));
    let up = rack.up();
    let _load = rack.quiet(&["load", "--mix", "hold=1", "--rate", "150", "--length", "600s"]);
    let slow = up.worker_process("w-2");
    let told = rack.finds_while("worker-slow", || {
        signal(slow, Signal::STOP);
        std::thread::sleep(Duration::from_millis(600));
        signal(slow, Signal::CONT);
        std::thread::sleep(Duration::from_millis(200));
    });
    assert_eq!(told["subject"]["name"], "w-2", "{told}");
    // A peer that has had few tasks so far is not counted yet.
    assert!(told["what"].as_str().is_some_and(|what| what.contains(" is worse than its ")), "{told}");
    assert!(told["why"].as_str().is_some_and(|why| why.contains(" against ")), "{told}");
}

#[test]
fn a_worker_that_its_operator_stops_is_no_trouble() {
    let rack = Rack::of(patient().split("[[worker]]").next().expect("the slice"));
    let (_switch, control) = rack.listens(&["switch", "rack.toml"]);
    let worker =
        |name| rack.quiet(&["worker", "hold", "--dilate", "10", "--name", name, "--controller", &control]);
    let workers = [worker("a"), worker("b")];
    rack.has_workers(2);
    let [stays, leaves] = workers;
    leaves.ends_well();
    rack.has_workers(1);
    rack.stays_in_order(Duration::from_secs(8));
    // Nor is one that is asked to end while it stands still, and then goes on.
    let pid = Pid::from_child(&stays.0);
    signal(pid, Signal::STOP);
    signal(pid, Signal::TERM);
    rack.finds("worker-stopped");
    signal(pid, Signal::CONT);
    stays.has_ended_well();
}
