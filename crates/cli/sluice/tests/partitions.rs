//! Two controllers of one rack whose network to the switch is cut, or whose switch stands still, under a load
//! that loses nothing.

mod common;

use std::io::Read;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use common::controlled::{ControlledRack, PATIENCE, role};
use common::relay::Cut;
use common::{Running, command, sluice, stderr, terminate};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sluice_ports::free_address;

#[test]
fn a_leader_that_is_cut_off_from_the_switch_is_followed_and_is_a_standby_after_the_cut() {
    let rack = ControlledRack::with_relays();
    let mut leader = rack.leader();
    rack.waits(&rack.controllers[1 - leader].0);
    let generations = generations(&rack, leader);
    // What leads again has led before, so each controller is cut off in each way.
    for cut in [Cut::Silent, Cut::Silent, Cut::Closed, Cut::Closed, Cut::Deaf, Cut::Deaf] {
        let (at, next_at) = (&rack.controllers[leader].0, &rack.controllers[1 - leader].0);
        let load = rack.load();
        rack.relays[leader].cut(cut);
        rack.waits(at);
        assert_eq!(rack.leader(), 1 - leader, "{cut:?}: {}", rack.page.logs());
        let alone = sluice(rack.path(), &["move", "w-1", "work", "--controller", at]);
        assert_eq!(alone.status.code(), Some(2), "{cut:?}: {alone:?}");
        assert!(stderr(&alone).contains("this controller is a standby"), "{cut:?}: {alone:?}");

        rack.relays[leader].cut(Cut::None);
        // It hears of the new leader, and the new leader stays.
        rack.follows(at, next_at);
        rack.page.lost_nothing(load);
        assert_eq!(rack.leader(), 1 - leader, "{cut:?}: {}", rack.page.logs());
        leader = 1 - leader;
    }
    assert_eq!(self::generations(&rack, leader), generations, "a worker lost its registration");
}

#[test]
fn a_standby_that_is_cut_off_does_not_lead_and_a_leader_that_both_lost_comes_back() {
    let rack = ControlledRack::with_relays();
    let leader = rack.leader();
    let (at, other_at) = (&rack.controllers[leader].0, &rack.controllers[1 - leader].0);
    rack.waits(other_at);
    let load = rack.load();
    rack.relays[1 - leader].cut(Cut::Silent);
    thread::sleep(Duration::from_secs(2));
    assert_eq!(rack.leader(), leader, "{}", rack.page.logs());
    rack.waits(other_at);
    // Nobody leads. The switch serves the hosts that it knows.
    rack.relays[leader].cut(Cut::Silent);
    rack.waits(at);
    rack.page.lost_nothing(load);
    for relay in &rack.relays {
        relay.cut(Cut::None);
    }
    let leader = rack.leader();
    rack.follows(&rack.controllers[1 - leader].0, &rack.controllers[leader].0);
}

#[test]
fn a_switch_that_stands_still_and_goes_on_has_one_leader_and_loses_nothing() {
    let rack = ControlledRack::start();
    let leader = rack.leader();
    rack.waits(&rack.controllers[1 - leader].0);
    let generations = generations(&rack, leader);
    let switch = Pid::from_child(&rack.others[0].0);
    for _ in 0..2 {
        let load = rack.load();
        kill_process(switch, Signal::STOP).expect("it lives");
        rack.controllers.iter().for_each(|(at, _)| rack.waits(at));
        kill_process(switch, Signal::CONT).expect("it lives");
        let leader = rack.leader();
        rack.follows(&rack.controllers[1 - leader].0, &rack.controllers[leader].0);
        rack.page.lost_nothing(load);
        assert_eq!(rack.leader(), leader, "{}", rack.page.logs());
        assert_eq!(self::generations(&rack, leader), generations, "a worker lost its registration");
    }
}

#[test]
fn a_status_ends_and_names_the_switch_that_stands_still() {
    let rack = ControlledRack::start();
    let leader = rack.leader();
    rack.waits(&rack.controllers[1 - leader].0);
    // Another rack, whose controller does not wait for the lead.
    let (tables, control) = (free_address().to_string(), free_address().to_string());
    let start = |args: &[&str]| {
        let started = command(rack.path(), args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Running(started.expect("it starts"))
    };
    let listen = ["--listen", "127.0.0.1:0", "--control", &tables, "--state", "alone"];
    let alone = start(&[&["switch", "rack.toml", "--controller-apart"], &listen[..]].concat());
    let _controller = start(&["controller", "rack.toml", "--tables", &tables, "--control", &control]);
    rack.wait(&control, |status| status["switch"]["link"] == "up");

    let switches = [&rack.others[0], &alone].map(|switch| Pid::from_child(&switch.0));
    for switch in switches {
        kill_process(switch, Signal::STOP).expect("it lives");
    }
    let all = rack.all();
    let [first, second] = [0, 1].map(|controller| rack.controllers[controller].0.as_str());
    for (asked, parts) in [
        (
            all.as_str(),
            &["no controller leads now", "wrong: the controller cannot use its switch", "(switch-lost)"][..],
        ),
        (first, &["standby, the switch does not say who leads: ", "(switch-lost)"]),
        (second, &["standby, the switch does not say who leads: ", "(switch-lost)"]),
        (&control, &["down", "wrong: the controller cannot use its switch", "(switch-lost)"]),
    ] {
        says(&rack, &["status", "--controller", asked], Some(0), parts);
    }
    let part = "is a standby, and does not know who leads (the switch does not say: ";
    says(&rack, &["move", "w-1", "work", "--controller", first], Some(2), &[part]);
    let part = "the controller cannot reach the switch";
    says(&rack, &["move", "w-1", "work", "--controller", &control], Some(2), &[part]);
    // Controllers end although the switch does not hear that they give the lead up.
    rack.controllers.iter().for_each(|(_, controller)| terminate(&controller.0));
    for (_, controller) in rack.controllers {
        controller.has_ended_well();
    }
    for switch in switches {
        kill_process(switch, Signal::CONT).expect("it lives");
    }
}

/// Repeats a command until it says all of this. Each time it has to end.
fn says(rack: &ControlledRack, args: &[&str], code: Option<i32>, parts: &[&str]) {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut asked = command(rack.path(), args);
        let mut asked =
            Running(asked.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
        let stuck = Instant::now() + PATIENCE;
        while asked.runs() {
            assert!(Instant::now() < stuck, "it hangs: {args:?}");
            thread::sleep(Duration::from_millis(10));
        }
        let (mut said, mut why) = (String::new(), String::new());
        asked.0.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
        asked.0.stderr.take().expect("piped").read_to_string(&mut why).expect("text");
        let ended = asked.0.wait().expect("it ended").code();
        if ended == code && parts.iter().all(|part| said.contains(part) || why.contains(part)) {
            return;
        }
        assert!(Instant::now() < end, "{args:?} says {said}{why}");
    }
}

/// The workers' generations by index, as this controller knows them.
fn generations(rack: &ControlledRack, controller: usize) -> Vec<(u64, u64)> {
    let status = rack.wait(&rack.controllers[controller].0, |_| true);
    assert_eq!(role(&status), "leads", "{status}");
    let of = |worker: &Value| {
        (worker["worker"].as_u64().expect("a number"), worker["generation"].as_u64().expect("a number"))
    };
    let mut all: Vec<_> = status["workers"].as_array().expect("a list").iter().map(of).collect();
    all.sort_unstable();
    all
}
