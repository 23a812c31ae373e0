//! Workers and clients with a switch and its controller, over loopback.

mod above;
mod agent;
mod cores;
mod draining;
mod examples;
mod fabric;
mod host_group;
mod labels;
mod rack;
mod servers;
mod software;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sluice_net::client::{Completed, CompletionQueue, Outcome, PendingTask, RefusedWhy, SubmitError};
use sluice_net::first::{FirstPacket, LINK_MTU};
use sluice_net::service::{Service, ServiceError, Task};
use sluice_net::{Client, ClientOptions, NetError, TaskType, WorkerOptions, service_fn};
use sluice_netem::Rates;
use sluice_wire::Nanos;

use rack::{ECHO, Echo, NOBODY, OTHER, Rack, insist, until};

/// A task's deadline, so long that no test waits for it. Under faults, each attempt of a task takes twice as
/// long as the one before.
const DEADLINE: Duration = Duration::from_mins(5);
/// Clients retry until their tasks' deadline, as in a real rack.
const RETRY_FOR: Nanos = Nanos::from_millis(DEADLINE.as_millis() as u64);

#[test]
fn tasks_of_every_size_come_back_as_the_service_answered() {
    let rack = Rack::start();
    let _worker = rack.worker("w", Echo::default());
    // Dilated, it waits longer for a worker that does not run for a while.
    let client = rack.client_dilated("c", 20);
    let most = client.payload_max();
    for bytes in [0, 1, 8, 9, 100, 1_000, 1_380, 1_381, 1_384, 1_385, 2_049, 10_000, most] {
        let task: Vec<u8> = (0..bytes).map(|i| (i / 7) as u8).collect();
        let ended = client.submit(ECHO, &task, DEADLINE).expect("it fits").wait();
        assert_eq!(ended.outcome.done(), Some(&task[..]), "{}", ended.outcome);
    }
    let report = client.report().expect("it lives");
    assert_eq!((report.tasks.long_replies, report.tasks.long_replies_lost), (4, 0));
    let too_long = client.submit(ECHO, &vec![0; most + 1], DEADLINE).expect_err("one too many");
    assert_eq!(too_long, SubmitError::TooLong { bytes: most + 1, most });
}

#[test]
fn a_reply_as_long_as_the_links_of_a_rack_pass_reaches_a_client_that_was_told_nothing() {
    let rack = Rack::start();
    let link = |options: &mut WorkerOptions| {
        options.datagram_max = FirstPacket::fitting(LINK_MTU, None).datagram_max;
    };
    let _worker = rack.worker_with("w", Echo::default(), link);
    let client = rack.client("c");
    let task: Vec<u8> = (0..3_000).map(|i| (i / 7) as u8).collect();
    let ended = client.submit(ECHO, &task, DEADLINE).expect("it fits").wait();
    assert_eq!(ended.outcome.done(), Some(&task[..]), "{}", ended.outcome);
}

#[test]
fn a_service_that_fails_or_panics_fails_its_task_only() {
    let rack = Rack::start();
    let worker = rack.worker("w", Echo::default());
    let client = rack.client("c");
    let run = |bytes: &[u8]| client.submit(ECHO, bytes, DEADLINE).expect("it fits").wait().outcome;
    assert_eq!(run(b"error").to_string(), "the service failed: as asked");
    assert_eq!(run(b"panic").to_string(), "the service failed: the service panicked: as asked");
    assert_eq!(run(b"fine").done(), Some(&b"fine"[..]));
    let report = worker.drain();
    assert_eq!((report.finished, report.failed, report.panicked, report.drained), (3, 1, 1, true));
}

#[test]
fn a_task_can_be_awaited_and_can_call_back() {
    let rack = Rack::start();
    let _worker = rack.worker("w", Echo::default());
    let client = rack.client("c");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("tokio starts");
    let ended = runtime.block_on(async {
        let pending = client.submit_async(ECHO, b"async", DEADLINE).await.expect("it fits");
        pending.await
    });
    assert_eq!(ended.outcome.done(), Some(&b"async"[..]));

    let (tell, told) = mpsc::channel();
    client
        .submit_with(ECHO, b"call", DEADLINE, move |ended| tell.send(ended).expect("listening"))
        .expect("it fits");
    assert_eq!(told.recv().expect("one call").outcome.done(), Some(&b"call"[..]));
    told.recv().expect_err("no second call");
}

#[test]
fn many_tasks_end_at_one_queue_each_with_its_tag() {
    let faults = "loss=0.02,dup=0.02,reorder=0.05,delay=1ms".parse().expect("well written");
    let rack = Rack::with(faults, &[ECHO], 1_000);
    let _worker = rack.worker("w", Echo::default());
    rack.until_served();
    let clients = [rack.client("a"), rack.client("b")];
    let queue = CompletionQueue::new();
    let bytes = |tag: u64| tag.to_be_bytes().repeat(1 + tag as usize % 300);
    for tag in 0..500 {
        clients[tag as usize % 2].submit_to(&queue, tag, ECHO, &bytes(tag), DEADLINE).expect("it fits");
    }
    let (mut ended, mut seen) = (Vec::new(), vec![0; 500]);
    while seen.contains(&0) {
        queue.wait(&mut ended, 64, None);
        for Completed { tag, ended } in ended.drain(..) {
            seen[tag as usize] += 1;
            assert_eq!(ended.outcome.done(), Some(&bytes(tag)[..]), "{tag}: {}", ended.outcome);
        }
    }
    let [a, b] = clients;
    assert_eq!((a.close().is_ok(), b.close().is_ok()), (true, true));
    assert_eq!((seen, queue.take(&mut ended, 1)), (vec![1; 500], 0));
}

#[test]
fn a_client_that_is_dropped_ends_what_is_outstanding_at_its_queue() {
    let rack = Rack::start();
    let client = rack.client("c");
    let (queue, mut ended) = (CompletionQueue::new(), Vec::new());
    (0..50).for_each(|tag| client.submit_to(&queue, tag, ECHO, b"nobody serves", DEADLINE).expect("it fits"));
    drop(client);
    while ended.len() < 50 {
        queue.wait(&mut ended, 50, None);
    }
    assert!(ended.iter().all(|Completed { ended, .. }| ended.outcome.done().is_none()));
}

#[test]
fn nothing_is_lost_and_nothing_runs_twice_under_faults_on_every_socket() {
    let faults = "loss=0.02,dup=0.02,reorder=0.05,delay=1ms".parse().expect("well written");
    let rack = Rack::with(faults, &[ECHO], 1_000);
    let echo = Echo::default();
    let _workers = [rack.worker("a", echo.clone()), rack.worker("b", echo.clone())];
    rack.until_served();
    let client = rack.client("c");
    // Repeats may wait too, up to three for each task. With more tasks at once, a machine that stands still
    // for a while would refuse some, and a refused task that also has an unanswered attempt ends as
    // unknown.
    for round in 0..12 {
        let submit =
            |i: u32| (i, client.submit(ECHO, &i.to_be_bytes().repeat(5), DEADLINE).expect("it fits"));
        let pending: Vec<(u32, PendingTask)> = (round * 250..(round + 1) * 250).map(submit).collect();
        for (i, pending) in pending {
            let ended = pending.wait();
            assert_eq!(ended.outcome.done(), Some(&i.to_be_bytes().repeat(5)[..]), "{i}: {}", ended.outcome);
        }
    }
    let report = client.close().expect("no error");
    assert_eq!((report.tasks.replied, report.outstanding), (3_000, 0));
    assert!(report.socket.faults_in.lost > 0 && report.socket.faults_out.doubled > 0);
}

/// Bytes that are different for each task.
fn long_task(number: u32) -> Vec<u8> {
    let bytes = 1_500 + (number * 7_919) % 30_000;
    (0..bytes).map(|at| (at.wrapping_mul(31) ^ number.wrapping_mul(at | 1)) as u8).collect()
}

#[test]
fn long_tasks_and_replies_come_whole_under_faults_on_every_socket() {
    let faults = "loss=0.02,dup=0.02,reorder=0.05,delay=1ms".parse().expect("well written");
    let rack = Rack::with(faults, &[ECHO], 1_000);
    let _workers = [rack.worker("a", Echo::default()), rack.worker("b", Echo::default())];
    let client = rack.client("c");
    for round in 0..10 {
        let submit = |i: u32| (i, client.submit(ECHO, &long_task(i), DEADLINE).expect("it fits"));
        let pending: Vec<(u32, PendingTask)> = (round * 20..round * 20 + 20).map(submit).collect();
        for (i, pending) in pending {
            let ended = pending.wait();
            assert!(ended.outcome.done() == Some(&long_task(i)[..]), "{i}: {}", ended.outcome);
        }
    }
}

#[test]
fn replies_of_a_worker_that_dies_half_way_are_given_by_another() {
    let faults = "loss=0.05".parse().expect("well written");
    let rack = Rack::with(faults, &[ECHO], 1_000);
    let dies = rack.worker("dies", Echo::default());
    let client = rack.client("c");
    let submit = |i: u32| (i, client.submit(ECHO, &long_task(i), DEADLINE).expect("it fits"));
    let pending: Vec<(u32, PendingTask)> = (0..40).map(submit).collect();
    until("a reply that is fetched", || client.report().is_ok_and(|report| report.tasks.long_replies > 3));
    dies.kill();
    let _lives = rack.worker("lives", Echo::default());
    for (i, pending) in pending {
        let outcome = insist(&client, &long_task(i), pending, &[NOBODY]);
        assert!(outcome.done() == Some(&long_task(i)[..]), "{i}: {outcome}");
    }
}

#[test]
fn one_worker_runs_each_task_once_however_often_it_is_repeated() {
    let faults = "loss=0.05,dup=0.1".parse().expect("well written");
    let rack = Rack::with(faults, &[ECHO], 1_000);
    let echo = Echo::default();
    let worker = rack.worker("w", echo.clone());
    rack.until_served();
    let client = rack.client("c");
    let submit = |i: u32| client.submit(ECHO, &i.to_be_bytes(), DEADLINE).expect("it fits");
    let pending: Vec<PendingTask> = (0..300).map(submit).collect();
    for (i, pending) in (0..300_u32).zip(pending) {
        let ended = pending.wait();
        assert_eq!(ended.outcome.done(), Some(&i.to_be_bytes()[..]), "{}", ended.outcome);
    }
    assert_eq!(echo.runs.load(Ordering::Relaxed), 300);
    assert_eq!(worker.drain().finished, 300);
}

#[test]
fn a_full_slice_pushes_back_and_does_not_hold_up_another() {
    let rack = Rack::with(Rates::default(), &[ECHO, OTHER], 4);
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let stuck = service_fn(OTHER, move |_, _| {
        until("the gate", || gate.load(Ordering::Relaxed));
        Ok(())
    });
    let _stuck = rack.worker("stuck", stuck);
    let _worker = rack.worker("w", Echo::default());
    let client = rack.client("c");
    let mut waiting = Vec::new();
    let mut pushed_back = 0;
    // The packet thread sends as many tasks as the switch accepts; afterwards nothing frees room.
    while pushed_back < 3 {
        match client.try_submit(OTHER, b"x", DEADLINE) {
            Ok(pending) => waiting.push(pending),
            Err(why) => {
                assert_eq!(why, SubmitError::Busy);
                pushed_back += 1;
                thread::sleep(Duration::from_millis(50));
            }
        }
        assert!(waiting.len() < 10_000, "never pushed back");
    }
    let ended = client.submit(ECHO, b"past", DEADLINE).expect("another slice").wait();
    assert_eq!(ended.outcome.done(), Some(&b"past"[..]));

    let blocked = thread::scope(|scope| {
        let blocked = scope.spawn(|| client.submit(OTHER, b"x", DEADLINE));
        thread::sleep(Duration::from_millis(50));
        assert!(!blocked.is_finished());
        open.store(true, Ordering::Relaxed);
        blocked.join().expect("no panic").expect("room in the end")
    });
    waiting.push(blocked);
    // A task that overtakes the token that would have made room for it may be refused; no task may be
    // unknown.
    let outcomes: Vec<Outcome> = waiting.into_iter().map(|pending| pending.wait().outcome).collect();
    assert!(!outcomes.iter().any(|outcome| matches!(outcome, Outcome::Unknown(_))));
    assert!(outcomes.iter().any(|outcome| outcome.done().is_some()));
}

#[test]
fn a_worker_that_drains_finishes_what_it_holds_and_others_go_on() {
    let rack = Rack::start();
    let slow = Echo { takes: Duration::from_millis(2), ..Echo::default() };
    let first = rack.worker("first", slow.clone());
    // A repeat of a task that had waited for long would be run by the other worker, too.
    let client = rack.client_dilated("c", 200);
    let _second = rack.worker("second", slow.clone());
    rack.until_serving(2);
    let pending: Vec<PendingTask> =
        (0..200_u32).map(|i| client.submit(ECHO, &i.to_be_bytes(), DEADLINE).expect("it fits")).collect();
    until("work", || slow.runs.load(Ordering::Relaxed) > 20);
    let report = first.drain();
    assert!(report.drained && report.finished > 0, "{report}");
    for pending in pending {
        let ended = pending.wait();
        assert!(ended.outcome.done().is_some(), "{}", ended.outcome);
    }
    assert_eq!(slow.runs.load(Ordering::Relaxed), 200);
}

#[test]
fn tasks_of_a_worker_that_dies_are_answered_by_another() {
    let rack = Rack::start();
    let slow = Echo { takes: Duration::from_millis(2), ..Echo::default() };
    let first = rack.worker("first", slow.clone());
    let _second = rack.worker("second", slow.clone());
    rack.until_serving(2);
    let client = rack.client("c");
    let pending: Vec<PendingTask> =
        (0..200_u32).map(|i| client.submit(ECHO, &i.to_be_bytes(), DEADLINE).expect("it fits")).collect();
    until("work", || slow.runs.load(Ordering::Relaxed) > 20);
    first.kill();
    for pending in pending {
        let ended = pending.wait();
        assert!(ended.outcome.done().is_some(), "{}", ended.outcome);
    }
}

#[test]
fn tasks_outlive_the_switch_and_the_controller() {
    let mut rack = Rack::start();
    let slow = Echo { takes: Duration::from_millis(1), ..Echo::default() };
    let _workers = [rack.worker("a", slow.clone()), rack.worker("b", slow.clone())];
    let client = rack.client("c");
    let pending: Vec<PendingTask> =
        (0..400_u32).map(|i| client.submit(ECHO, &i.to_be_bytes(), DEADLINE).expect("it fits")).collect();
    until("work", || slow.runs.load(Ordering::Relaxed) > 20);
    rack.restart();
    for (i, pending) in (0_u32..).zip(pending) {
        let outcome = insist(&client, &i.to_be_bytes(), pending, &[NOBODY]);
        assert!(outcome.done().is_some(), "{outcome}");
    }
}

#[test]
fn dilation_stretches_a_task_while_the_worker_still_takes_packets() {
    let rack = Rack::start();
    let service = service_fn(ECHO, |task, _| {
        task.hold(Nanos::from_millis(5));
        Ok(())
    });
    let worker = rack.worker_with("w", service, |options| options.dilation = 200);
    let client = rack.client("c");
    let began = Instant::now();
    let both = [(); 2].map(|()| client.submit(ECHO, b"", DEADLINE).expect("it fits"));
    let waits = both.map(|pending| match pending.wait().outcome {
        Outcome::Reply(answer) => answer,
        other => panic!("{other}"),
    });
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert!(waits.iter().all(|answer| answer.service >= Nanos::from_millis(1_000)));
    assert!(waits.iter().any(|answer| answer.worker_wait >= Nanos::from_millis(100)), "{waits:?}");
    assert!(worker.drain().busy > 0.0);
}

#[test]
fn a_client_without_a_controller_gives_up_and_says_so() {
    let mut options = ClientOptions::new("127.0.0.1:1").expect("a legal address");
    options.patience = Duration::from_millis(300);
    let error = Client::connect(&options).expect_err("nobody listens there");
    assert!(error.is_bad_input(), "{error}");
    assert!(matches!(error, NetError::NotRegistered { waited, .. } if waited == options.patience));
}

#[test]
fn a_worker_that_no_slice_wants_is_told_why() {
    let rack = Rack::start();
    let mut options = WorkerOptions::new(&rack.controller()).expect("a legal address");
    options.slice = "nowhere".into();
    let worker = sluice_net::Worker::new(&options, Echo::default()).expect("free ports");
    let error = worker.run().expect_err("there is no such slice");
    assert!(error.to_string().contains("nowhere") && error.is_bad_input(), "{error}");
}

#[test]
fn a_client_that_is_dropped_ends_what_is_outstanding() {
    let rack = Rack::start();
    let _worker = rack.worker("w", Echo { takes: Duration::from_millis(300), ..Echo::default() });
    let client = rack.client("c");
    let told = Arc::new(AtomicU64::new(0));
    for _ in 0..50 {
        let told = Arc::clone(&told);
        let callback = move |_| {
            told.fetch_add(1, Ordering::Relaxed);
        };
        client.submit_with(ECHO, b"slow", DEADLINE, callback).expect("it fits");
    }
    drop(client);
    assert_eq!(told.load(Ordering::Relaxed), 50);
}

#[test]
fn a_task_whose_deadline_passes_in_the_client_was_never_sent() {
    let rack = Rack::with(Rates::default(), &[ECHO], 1);
    let _worker = rack.worker("w", Echo { takes: Duration::from_millis(400), ..Echo::default() });
    let client = rack.client("c");
    let held: Vec<PendingTask> =
        (0..8).map(|_| client.submit(ECHO, b"x", DEADLINE).expect("it fits")).collect();
    let late = client.submit(ECHO, b"x", Duration::from_millis(100)).expect("it fits").wait();
    assert_eq!(late.outcome, Outcome::Refused(RefusedWhy::NeverSent));
    drop(held);
}

/// A service that states its remaining time in steps, and holds its worker if asked to.
struct Completion {
    holds: bool,
}

impl Service for Completion {
    fn types(&self) -> Vec<TaskType> {
        vec![ECHO]
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let (all, began) = (Duration::from_millis(3), Instant::now());
        let left = |since: Duration| Nanos(all.saturating_sub(since).as_nanos() as u64);
        task.left(left(Duration::ZERO));
        if self.holds {
            task.hold(left(Duration::ZERO));
        }
        while !self.holds && began.elapsed() < all {
            task.left(left(began.elapsed()));
        }
        reply.extend(task.bytes);
        Ok(())
    }
}

#[test]
fn a_worker_whose_service_says_what_is_left_asks_for_the_next_task_before_it_ends() {
    for (holds, early) in [(false, true), (true, true), (false, false)] {
        let rack = Rack::start();
        let worker = rack
            .worker_with("w", Completion { holds }, |options| (options.quota, options.early) = (1, early));
        rack.until_served();
        let client = rack.client("c");
        let submit = |_| client.submit(ECHO, b"x", DEADLINE).expect("it fits");
        let pending: Vec<PendingTask> = (0..40).map(submit).collect();
        for task in pending {
            assert!(matches!(task.wait().outcome, Outcome::Reply(_)), "every task is answered");
        }
        let report = worker.drain();
        assert_eq!((report.finished, report.early_tokens > 0), (40, early), "holds: {holds}; {report:?}");
    }
}
