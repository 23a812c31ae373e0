//! A software scheduler in place of the switch, and Draconis, whose switch stores no bytes: with real
//! sockets, under faults and restarts.

use std::time::Duration;

use sluice_net::client::PendingTask;
use sluice_net::{Client, TaskType};
use sluice_netem::Rates;
use sluice_switch::registry::Choice;

use crate::DEADLINE;
use crate::rack::{ECHO, Echo, NOBODY, Rack, insist, until};

fn rack(policy: &str, faults: &str) -> Rack {
    let faults: Rates = faults.parse().expect("well written");
    Rack::under_faults(faults, Choice::parse(policy).expect("it is known"))
}

/// Different bytes for each task, more than fit into a queue entry.
fn task(number: u32) -> Vec<u8> {
    number.to_be_bytes().repeat(3 + number as usize % 40)
}

/// A task's bytes, and its pending outcome.
type Waiting = (Vec<u8>, PendingTask);

fn submit(client: &Client, tasks: std::ops::Range<u32>, task: fn(u32) -> Vec<u8>) -> Vec<Waiting> {
    let of = |bytes: &[u8]| client.submit(TaskType(ECHO.0), bytes, DEADLINE).expect("it fits");
    tasks.map(task).map(|bytes| (bytes.clone(), of(&bytes))).collect()
}

fn all_come_back(pending: Vec<Waiting>) {
    for (bytes, pending) in pending {
        let ended = pending.wait();
        assert_eq!(ended.outcome.done(), Some(&bytes[..]), "{bytes:?}: {}", ended.outcome);
    }
}

/// The same where a task may find no worker registered.
fn all_come_back_in_the_end(client: &Client, pending: Vec<Waiting>) {
    for (bytes, pending) in pending {
        let outcome = insist(client, &bytes, pending, &[NOBODY]);
        assert_eq!(outcome.done(), Some(&bytes[..]), "{bytes:?}: {outcome}");
    }
}

/// As many bytes as fit into a queue entry, so that several tasks go in one submission.
fn small_task(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Faults on every socket; then a worker is killed, and then the switch and its controller.
fn survives(policy: &str, task: fn(u32) -> Vec<u8>) {
    let mut rack = rack(policy, "loss=0.02,dup=0.02,reorder=0.05,delay=1ms");
    let echo = Echo::default();
    let victim = rack.worker("victim", echo.clone());
    let _workers = ["a", "b"].map(|name| rack.worker(name, echo.clone()));
    let client = rack.client("c");
    let first = submit(&client, 0..300, task);
    victim.kill();
    let second = submit(&client, 300..600, task);
    rack.restart();
    let third = submit(&client, 600..900, task);
    for tasks in [first, second, third] {
        all_come_back_in_the_end(&client, tasks);
    }
    let report = client.close().expect("no error");
    assert_eq!((report.tasks.replied, report.outstanding), (900, 0));
}

#[test]
fn a_server_loses_nothing_under_faults_when_a_worker_and_it_are_killed() {
    survives("server:1", task);
}

#[test]
fn draconis_loses_nothing_under_faults_when_a_worker_and_the_switch_are_killed() {
    survives("draconis:poll=500us", task);
}

#[test]
fn jobs_of_draconis_lose_nothing_under_faults_when_a_worker_and_the_switch_are_killed() {
    survives("draconis:poll=500us,jobs=5", small_task);
}

/// The workers are so slow that a task waits for longer than its client's first timeout: most tasks are
/// sent twice, and repeats fill the queue.
#[test]
fn no_task_is_refused_for_the_room_that_repeats_of_others_take() {
    for policy in ["draconis:poll=500us,jobs=5", "server:1"] {
        let faults = "loss=0.02,dup=0.02,reorder=0.05,delay=1ms".parse().expect("well written");
        let rack = Rack::of_room(faults, Choice::parse(policy).expect("it is known"), 400);
        let echo = Echo { takes: Duration::from_millis(1), ..Echo::default() };
        let _workers = ["a", "b", "c"].map(|name| rack.worker(name, echo.clone()));
        rack.until_served();
        let client = rack.client("c");
        all_come_back(submit(&client, 0..900, small_task));
        let tasks = client.close().expect("no error").tasks;
        assert!(tasks.timeouts > 0, "{policy}: none has waited for long: {tasks:?}");
    }
}

#[test]
fn a_worker_of_draconis_fetches_long_tasks_from_their_client_and_one_of_a_server_does_not() {
    for (policy, fetches) in [("draconis:poll=500us", true), ("server:1", false)] {
        let rack = rack(policy, "loss=0");
        let _worker = rack.worker("w", Echo::default());
        let client = rack.client("c");
        for number in 0..20 {
            all_come_back(submit(&client, number..number + 1, task));
        }
        let needs = client.report().expect("it lives").tasks.needs;
        assert_eq!(needs >= 20, fetches, "{policy}: {needs}");
        // The switch publishes its counters behind the packets that they count.
        until("no payload that waits", || rack.counted("payloads_waiting") == 0);
    }
}

#[test]
fn a_server_takes_and_sends_one_datagram_a_system_call() {
    let rack = rack("server:1", "loss=0");
    let _worker = rack.worker("w", Echo::default());
    rack.until_served();
    let client = rack.client("c");
    all_come_back(submit(&client, 0..200, task));
    until("a batch for each datagram", || rack.counted("batches") >= rack.counted("received"));
}
