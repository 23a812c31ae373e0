//! Workers that are told to stop, and switches that drain.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_net::WorkerOptions;
use sluice_net::client::PendingTask;
use sluice_wire::Nanos;

use crate::DEADLINE;
use crate::rack::{ECHO, Echo, NOBODY, Rack, insist, until};

/// Longer than a packet, so its reply is fetched.
const LONG: usize = 20_000;

#[test]
fn a_worker_that_drains_stays_until_its_clients_have_fetched_its_long_replies() {
    let rack = Rack::start();
    // Dilation also stretches the time that the worker stays for a client that asks for no more.
    let dilated = |options: &mut WorkerOptions| options.dilation = 60;
    let echo = Echo::default();
    let worker = rack.worker_with("first", echo.clone(), dilated);
    let client = rack.client_dilated("c", 8);
    let _second = rack.worker("second", Echo::default());
    rack.until_serving(2);
    let task = vec![7; LONG];
    let pending: Vec<PendingTask> =
        (0..50).map(|_| client.submit(ECHO, &task, DEADLINE).expect("it fits")).collect();
    until("work", || echo.runs.load(Ordering::Relaxed) > 5);
    assert!(worker.drain().drained);
    assert!(pending.into_iter().all(|pending| pending.wait().outcome.done() == Some(&task[..])));
    assert_eq!(client.report().expect("it lives").tasks.long_replies_lost, 0);
}

#[test]
fn a_worker_whose_task_takes_longer_than_the_limit_ends_without_it_and_another_runs_it() {
    let rack = Rack::start();
    // Under dilation a worker listens while its task is not over.
    let stretched = |options: &mut WorkerOptions| {
        options.dilation = 1_000_000;
        options.drain_limit = Nanos::from_millis(100);
    };
    let slow = Echo { takes: Duration::from_millis(1), ..Echo::default() };
    let worker = rack.worker_with("first", slow.clone(), stretched);
    let client = rack.client("c");
    let pending = client.submit(ECHO, b"task", DEADLINE).expect("it fits");
    until("work", || slow.runs.load(Ordering::Relaxed) == 1);
    let _second = rack.worker("second", Echo::default());
    rack.until_serving(2);
    let report = worker.drain();
    assert!(!report.drained && report.finished == 0, "{report}");
    assert_eq!(pending.wait().outcome.done(), Some(&b"task"[..]));
}

#[test]
fn a_switch_that_drains_takes_no_new_tasks_and_rests_once_those_that_wait_have_left() {
    let mut rack = Rack::start();
    let slow = Echo { takes: Duration::from_millis(2), ..Echo::default() };
    let _worker = rack.worker("w", slow.clone());
    let client = rack.client("c");
    let submit = |i: u32| client.submit(ECHO, &i.to_be_bytes(), DEADLINE).expect("it fits");
    let mut pending: Vec<PendingTask> = (0..100).map(submit).collect();
    until("work", || slow.runs.load(Ordering::Relaxed) > 5);
    let switch = rack.switch();
    assert!(!switch.rests(), "it does not drain yet");
    switch.drain();
    pending.extend((100..120).map(submit));
    until("an empty queue", || switch.rests());
    until("a refusal", || switch.counters().of(sluice_switchd::switch::Count::NotTaken) > 0);
    rack.restart();
    for (i, pending) in (0_u32..).zip(pending) {
        let outcome = insist(&client, &i.to_be_bytes(), pending, &[NOBODY]);
        assert!(outcome.done().is_some(), "{outcome}");
    }
}
