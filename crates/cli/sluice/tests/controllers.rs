//! Several controllers of one rack, in processes of their own, of which one leads: they are killed, stopped
//! and ended under a load that loses nothing. The commands are those of `docs/manual/controllers.md`, on
//! free ports.

mod common;

use std::process::{Command, Output, Stdio};

use common::controlled::ControlledRack;
use common::{Running, command, sluice, sluice_succeeds, sluice_until, stderr, stdout, terminate};
use rustix::process::Signal;

#[test]
fn leaders_that_are_killed_stopped_and_ended_under_load_lose_nothing() {
    let mut rack = ControlledRack::start();
    let first = rack.leader();
    let (first_at, other_at) = (rack.controllers[first].0.clone(), rack.controllers[1 - first].0.clone());
    rack.follows(&other_at, &first_at);

    // The page's commands, while both run. Its short load holds only if this machine does not stand still.
    for line in rack.page.lines("sh") {
        let args = rack.page.args(line);
        let said = sluice_succeeds(rack.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(said.status.code(), Some(0), "{line}: {}", stderr(&said));
    }
    let parts = [
        format!("controller http://{other_at}: standby, http://{first_at} leads"),
        format!("controller http://{first_at}; switch"),
        format!("standbys http://{other_at}"),
    ];
    says(&rack, &parts);
    let alone = sluice(rack.path(), &["move", "w-1", "work", "--controller", &other_at]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(
        stderr(&alone).contains(&format!("this controller is a standby: http://{first_at} leads")),
        "{alone:?}"
    );

    // Killed under load.
    let load = rack.load();
    drop(rack.controllers.remove(first));
    assert_eq!(rack.controllers[rack.leader()].0, other_at);
    rack.page.lost_nothing(load);
    says(&rack, &[format!("controller http://{first_at}: dead: ")]);

    // A new one waits. Then the leader stands still under load, and goes on as a standby.
    let is_it = |line: &&str| line.contains("--standby") && rack.page.here(line).contains(&first_at);
    let again = rack.page.lines("sh stays").find(is_it).expect("the page starts it");
    rack.start_line(again);
    rack.waits(&first_at);
    let load = rack.load();
    rack.signal(0, Signal::STOP);
    assert_eq!(rack.controllers[rack.leader()].0, first_at);
    rack.signal(0, Signal::CONT);
    rack.waits(&other_at);
    rack.is_in_order(&first_at);
    rack.page.lost_nothing(load);

    // The leader is asked to end: the other one need not wait for its lease.
    let load = rack.load();
    let (_, mut leader) = rack.controllers.remove(1);
    terminate(&leader.0);
    assert_eq!(leader.0.wait().expect("it ends").code(), Some(0));
    assert_eq!(rack.controllers[rack.leader()].0, other_at);
    rack.page.lost_nothing(load);
    let moved = rack.asked(&["move", "w-1", "work"]);
    assert_eq!(moved.status.code(), Some(0), "{}", stderr(&moved));
    for other in rack.others.into_iter().rev() {
        other.ends_well();
    }
}

/// Asks all controllers until their status has all of this.
fn says(rack: &ControlledRack, parts: &[String]) {
    let has_all = |output: &Output| parts.iter().all(|part| stdout(output).contains(part));
    let said = sluice_until(rack.path(), &["status", "--controller", &rack.all()], has_all);
    assert!(has_all(&said), "{parts:?}: {}", stdout(&said));
}

#[test]
fn a_standby_without_a_switch_to_ask_says_so_and_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["controller", "--tables", "127.0.0.1:9", "--control", "127.0.0.1:0", "--standby"];
    let mut started: Command = command(folder.path(), &args);
    let mut standby = Running(started.stderr(Stdio::piped()).spawn().expect("it starts"));
    let log = std::io::BufReader::new(standby.0.stderr.take().expect("piped"));
    // In any order.
    let mut missing = vec!["leads when no other controller does", "the switch does not say who leads: "];
    for line in std::io::BufRead::lines(log).map_while(Result::ok) {
        missing.retain(|part| !line.contains(part));
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "it ended without {missing:?}");
    assert!(standby.runs());
    terminate(&standby.0);
    assert_eq!(standby.0.wait().expect("it ends").code(), Some(0));
}
