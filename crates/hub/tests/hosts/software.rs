//! A server in the switch's place, and Draconis, whose switch keeps no bytes: with real sockets, under faults
//! and restarts.

use std::time::Duration;

use sluice_net::client::Pending;
use sluice_net::faults::Rates;
use sluice_net::{Client, TaskType};
use sluice_switch::registry::Choice;

use super::rack::{ECHO, Echo, Rack};

const DEADLINE: Duration = Duration::from_secs(30);

fn rack(policy: &str, faults: &str) -> Rack {
    let faults: Rates = faults.parse().expect("well written");
    Rack::under_faults(faults, Choice::parse(policy).expect("it is known"))
}

/// Bytes that only this task has, more than fit a queue entry.
fn task(number: u32) -> Vec<u8> {
    number.to_be_bytes().repeat(3 + number as usize % 40)
}

fn submit(client: &Client, tasks: std::ops::Range<u32>) -> Vec<(u32, Pending)> {
    let of = |number: u32| client.submit(TaskType(ECHO.0), &task(number), DEADLINE).expect("it fits");
    tasks.map(|number| (number, of(number))).collect()
}

fn all_come_back(pending: Vec<(u32, Pending)>) {
    for (number, pending) in pending {
        let ended = pending.wait();
        assert_eq!(ended.outcome.done(), Some(&task(number)[..]), "{number}: {}", ended.outcome);
    }
}

/// Faults on every socket; a worker is killed, then the switch and its controller.
fn survives(policy: &str) {
    let mut rack = rack(policy, "loss=0.02,dup=0.02,reorder=0.05,delay=1ms");
    let echo = Echo::default();
    let victim = rack.worker("victim", echo.clone());
    let _workers = ["a", "b"].map(|name| rack.worker(name, echo.clone()));
    let client = rack.client("c");
    let first = submit(&client, 0..300);
    victim.kill();
    let second = submit(&client, 300..600);
    rack.restart();
    let third = submit(&client, 600..900);
    [first, second, third].into_iter().for_each(all_come_back);
    let report = client.close().expect("no error");
    assert_eq!((report.tasks.replied, report.outstanding), (900, 0));
}

#[test]
fn a_server_loses_nothing_under_faults_when_a_worker_and_it_are_killed() {
    survives("server:1");
}

#[test]
fn draconis_loses_nothing_under_faults_when_a_worker_and_the_switch_are_killed() {
    survives("draconis:poll=500us");
}

#[test]
fn a_worker_of_draconis_fetches_long_tasks_from_their_client_and_one_of_a_server_does_not() {
    for (policy, fetches) in [("draconis:poll=500us", true), ("server:1", false)] {
        let rack = rack(policy, "loss=0");
        let _worker = rack.worker("w", Echo::default());
        let client = rack.client("c");
        for number in 0..20 {
            all_come_back(submit(&client, number..number + 1));
        }
        let needs = client.report().expect("it lives").tasks.needs;
        assert_eq!(needs >= 20, fetches, "{policy}: {needs}");
        assert_eq!(rack.counted("payloads_waiting"), 0, "{policy}");
    }
}

#[test]
fn a_server_takes_and_sends_one_datagram_a_system_call() {
    let rack = rack("server:1", "loss=0");
    let _worker = rack.worker("w", Echo::default());
    let client = rack.client("c");
    all_come_back(submit(&client, 0..200));
    assert!(rack.counted("batches") >= rack.counted("received"), "batches hold one datagram at most");
}
