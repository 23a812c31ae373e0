//! A server of many cores that registers as several workers of a rack.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use sluice_host::orchestrator::{Assignment, Priority};
use sluice_net::client::{Outcome, PendingTask};
use sluice_net::service::{Service, ServiceError, Task};
use sluice_net::worker::{LaneServer, LaneServerOptions, LaneService, Stopper, WorkerReport};
use sluice_net::{NetError, TaskType, WorkerOptions};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Nanos, SliceId};

use crate::DEADLINE;
use crate::rack::{ECHO, NOBODY, OTHER, Rack, insist, until};

/// A service that echoes the task's bytes. A task of the other type runs until it is released, with or
/// without pauses.
#[derive(Clone, Default)]
struct Both {
    /// How often each task ran.
    runs: Arc<std::sync::Mutex<BTreeMap<Vec<u8>, u32>>>,
    let_go: Arc<AtomicBool>,
    pauses: bool,
    takes: Nanos,
    holds: Nanos,
    at_once: Arc<AtomicU64>,
    most_at_once: Arc<AtomicU64>,
    /// Pieces of batch work done; `None` without a batch service.
    pieces: Option<Arc<AtomicU64>>,
}

impl Service for Both {
    fn types(&self) -> Vec<TaskType> {
        vec![ECHO, OTHER]
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        *self.runs.lock().expect("nobody panics there").entry(task.bytes.to_vec()).or_default() += 1;
        let began = Instant::now();
        let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        let waits = |task: &Task<'_>| task.task_type == OTHER && !self.let_go.load(Ordering::Acquire);
        while waits(&task) || (began.elapsed().as_nanos() as u64) < self.takes.0 {
            if self.pauses {
                task.pause();
            }
            std::hint::spin_loop();
        }
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        task.hold(self.holds);
        match task.bytes {
            b"panic" => panic!("as asked"),
            b"error" => return Err(ServiceError::new("as asked")),
            bytes => reply.extend(bytes),
        }
        Ok(())
    }

    fn batch(&mut self, pause: &dyn Fn()) -> bool {
        pause();
        self.pieces.as_ref().is_some_and(|pieces| pieces.fetch_add(1, Ordering::Relaxed) < u64::MAX)
    }
}

/// A server on its thread; dropping it stops it at once.
struct Server {
    stopper: Stopper,
    thread: Option<JoinHandle<Result<WorkerReport, NetError>>>,
}

impl Server {
    fn start(rack: &Rack, name: &str, service: &Both, change: impl FnOnce(&mut LaneServerOptions)) -> Self {
        let mut worker = WorkerOptions::new(&rack.controller()).expect("a legal address");
        name.clone_into(&mut worker.name);
        worker.faults = rack.faults(name);
        let of = |slice: TaskType, priority| LaneService {
            slice: slice.to_string(),
            priority: Priority::new(priority).expect("legal"),
            weight: NonZeroU32::MIN,
        };
        let mut options = LaneServerOptions::new(worker, 2, vec![of(ECHO, 1), of(OTHER, 0)]).expect("legal");
        change(&mut options);
        let service = service.clone();
        let server = LaneServer::new(&options, move || service.clone()).expect("free ports and threads");
        Self { stopper: server.stopper(), thread: Some(thread::spawn(|| server.run())) }
    }

    fn drain(mut self) -> WorkerReport {
        self.stopper.stop();
        let thread = self.thread.take().expect("joined once");
        thread.join().expect("no panic").expect("no error")
    }

    fn kill(mut self) {
        self.end();
    }

    /// Why the controller refused the server.
    fn refused(mut self) -> String {
        let thread = self.thread.take().expect("joined once");
        match thread.join().expect("no panic") {
            Err(NetError::Refused { why }) => why,
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stopper.stop();
            self.stopper.stop();
            thread.join().ok();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn rack() -> Rack {
    Rack::with(sluice_netem::Rates::default(), &[ECHO, OTHER], 1_000)
}

#[test]
fn tasks_of_every_size_and_fate_come_back_from_the_cores() {
    let rack = rack();
    let server = Server::start(&rack, "s", &Both::default(), |_| {});
    let client = rack.client("c");
    let most = client.payload_max();
    for bytes in [0, 1, 8, 9, 1_000, 1_385, 10_000, most] {
        let task: Vec<u8> = (0..bytes).map(|i| (i / 7) as u8).collect();
        let ended = client.submit(ECHO, &task, DEADLINE).expect("it fits").wait();
        assert_eq!(ended.outcome.done(), Some(&task[..]), "{bytes}: {}", ended.outcome);
    }
    let run = |bytes: &[u8]| client.submit(ECHO, bytes, DEADLINE).expect("it fits").wait().outcome;
    assert_eq!(run(b"error").to_string(), "the service failed: as asked");
    assert_eq!(run(b"panic").to_string(), "the service failed: the service panicked: as asked");
    let report = server.drain();
    assert_eq!((report.finished, report.failed, report.panicked, report.drained), (10, 1, 1, true));
}

/// The names of some of its lanes belong to another server.
#[test]
fn a_server_of_which_a_lane_is_refused_ends_once_the_others_have_answered_what_they_hold() {
    let rack = rack();
    let first = Server::start(&rack, "s", &Both::default(), |options| options.services.truncate(1));
    let client = rack.client("c");
    let echoed = client.submit(ECHO, b"echo", DEADLINE).expect("it fits").wait();
    assert_eq!(echoed.outcome.done(), Some(&b"echo"[..]));
    let both = Both::default();
    let second = Server::start(&rack, "s", &both, |_| {});
    let held = client.submit(OTHER, b"held", DEADLINE).expect("it fits");
    until("it runs", || both.runs.lock().expect("nobody panics there").contains_key(&b"held"[..]));
    until("the server leaves", || match rack.table(TableOp::ReadSlice(SliceId(1))) {
        TableAnswer::Slice(state) => !state.row.open,
        other => panic!("{other:?}"),
    });
    both.let_go.store(true, Ordering::Release);
    assert_eq!(held.wait().outcome.done(), Some(&b"held"[..]));
    assert!(second.refused().contains("is held by another host"));
    first.kill();
}

#[test]
fn urgent_tasks_pass_long_ones_that_pause() {
    let rack = rack();
    let both = Both { pauses: true, ..Both::default() };
    let server = Server::start(&rack, "s", &both, |_| {});
    let client = rack.client("c");
    // Twice as many tasks as cores: all cores are taken, and stay so until the tasks are released.
    let long: Vec<PendingTask> =
        (0..4_u8).map(|i| client.submit(OTHER, &[200 + i], DEADLINE).expect("it fits")).collect();
    until("four long tasks", || both.at_once.load(Ordering::SeqCst) == 4);
    for i in 0..50_u8 {
        let ended = client.submit(ECHO, &[i], DEADLINE).expect("it fits").wait();
        assert_eq!(ended.outcome.done(), Some(&[i][..]), "{}", ended.outcome);
    }
    both.let_go.store(true, Ordering::Release);
    assert!(long.into_iter().all(|pending| pending.wait().outcome.done().is_some()));
    assert_eq!(server.drain().finished, 54);
}

#[test]
fn a_pool_runs_no_more_tasks_at_once_than_it_has_threads() {
    let rack = rack();
    let both = Both { pauses: true, ..Both::default() };
    let server = Server::start(&rack, "s", &both, |options| options.pool = true);
    let client = rack.client("c");
    let submit =
        |i: u8| client.submit(if i == 3 { ECHO } else { OTHER }, &[200 + i], DEADLINE).expect("it fits");
    let pending: Vec<PendingTask> = (0..5).map(submit).collect();
    until("two long tasks", || both.at_once.load(Ordering::SeqCst) == 2);
    both.let_go.store(true, Ordering::Release);
    assert!(pending.into_iter().all(|pending| pending.wait().outcome.done().is_some()));
    assert_eq!(both.most_at_once.load(Ordering::SeqCst), 2, "a task that pauses keeps its thread");
    assert_eq!(server.drain().finished, 5);
}

#[test]
fn nothing_is_lost_and_nothing_runs_twice_on_a_server_whatever_its_packets_meet() {
    let faults = "loss=0.03,dup=0.03,reorder=0.05,delay=1ms".parse().expect("well written");
    let rack = Rack::with(faults, &[ECHO, OTHER], 1_000);
    let both = Both { pauses: true, takes: Nanos::from_micros(20), ..Both::default() };
    both.let_go.store(true, Ordering::Release);
    // Each service has at least two lanes, so attempts of one task meet tokens of different lanes.
    let server = Server::start(&rack, "s", &both, |options| options.cores = 4);
    rack.until_served();
    let client = rack.client("c");
    for round in 0..4_u32 {
        let submit = |i: u32| {
            let task_type = if i.is_multiple_of(5) { OTHER } else { ECHO };
            (i, client.submit(task_type, &i.to_be_bytes().repeat(5), DEADLINE).expect("it fits"))
        };
        let pending: Vec<(u32, PendingTask)> = (round * 300..(round + 1) * 300).map(submit).collect();
        for (i, pending) in pending {
            let ended = pending.wait();
            assert_eq!(ended.outcome.done(), Some(&i.to_be_bytes().repeat(5)[..]), "{i}: {}", ended.outcome);
        }
    }
    let runs = both.runs.lock().expect("nobody panics there").clone();
    assert_eq!(runs.len(), 1_200);
    assert!(runs.values().all(|runs| *runs == 1), "each once, over whichever lane its attempts came");
    let report = server.drain();
    assert!(report.packets.lost_on_purpose > 0 && report.repeated > 0, "{report:?}");
}

#[test]
fn tasks_of_a_server_that_dies_are_answered_by_another_and_outlive_the_switch() {
    let mut rack = rack();
    let both = Both { pauses: true, takes: Nanos::from_millis(1), ..Both::default() };
    both.let_go.store(true, Ordering::Release);
    let first = Server::start(&rack, "first", &both, |_| {});
    let second = Server::start(&rack, "second", &both, |_| {});
    rack.until_served();
    let client = rack.client("c");
    let submit = |i: u32| client.submit(ECHO, &i.to_be_bytes(), DEADLINE).expect("it fits");
    let pending: Vec<PendingTask> = (0..400).map(submit).collect();
    let ran = || both.runs.lock().expect("nobody panics there").len();
    until("work", || ran() > 40);
    first.kill();
    until("more work", || ran() > 120);
    rack.restart();
    for (i, pending) in (0_u32..).zip(pending) {
        let outcome = insist(&client, &i.to_be_bytes(), pending, &[NOBODY]);
        assert!(outcome.done().is_some(), "{outcome}");
    }
    assert!(second.drain().drained);
}

#[test]
fn dilated_cores_share_a_thread_and_serve_as_many_tasks_at_once_as_there_are() {
    let rack = rack();
    let both = Both { pauses: true, holds: Nanos::from_micros(500), ..Both::default() };
    let server = Server::start(&rack, "s", &both, |options| {
        options.cores = 16;
        options.worker.dilation = 100;
    });
    rack.until_served();
    let client = rack.client("c");
    let submit = |i: u32| client.submit(OTHER, &i.to_be_bytes(), DEADLINE).expect("it fits");
    let pending: Vec<PendingTask> = (0..64).map(submit).collect();
    until("each task runs", || both.at_once.load(Ordering::SeqCst) == 64);
    both.let_go.store(true, Ordering::Release);
    let answers: Vec<_> = pending
        .into_iter()
        .map(|pending| match pending.wait().outcome {
            Outcome::Reply(answer) => answer,
            other => panic!("{other}"),
        })
        .collect();
    // Measured in the cores' own time, which can run ahead of the wall clock if their thread was late.
    assert!(answers.iter().all(|answer| answer.service >= Nanos::from_millis(50)));
    assert_eq!(server.drain().finished, 64);
}

#[test]
fn cores_without_tasks_do_batch_work_and_tasks_pass_it() {
    let rack = rack();
    let pieces = Arc::<AtomicU64>::default();
    let both = Both { pauses: true, pieces: Some(Arc::clone(&pieces)), ..Both::default() };
    let server = Server::start(&rack, "s", &both, |options| options.batch = true);
    let client = rack.client("c");
    for i in 0..50_u8 {
        let before = pieces.load(Ordering::Relaxed);
        let ended = client.submit(ECHO, &[i], DEADLINE).expect("it fits").wait();
        assert_eq!(ended.outcome.done(), Some(&[i][..]), "{}", ended.outcome);
        until("batch work", || pieces.load(Ordering::Relaxed) > before);
    }
    let report = server.drain();
    assert_eq!((report.finished, report.drained), (50, true));
    assert!(report.batch > 0.0 && report.to_string().contains(", batch work "), "{report}");
}

#[test]
fn batch_work_is_refused_where_there_is_none_or_a_pool() {
    let rack = rack();
    for (pieces, pool, why) in [
        (None, false, "its service has no such work"),
        (Some(Arc::default()), true, "takes no batch service in a pool"),
    ] {
        let both = Both { pieces, ..Both::default() };
        let worker = WorkerOptions::new(&rack.controller()).expect("a legal address");
        let mut options = LaneServerOptions::new(worker, 2, Vec::new()).expect("legal");
        (options.batch, options.pool) = (true, pool);
        let refused = LaneServer::new(&options, move || both.clone()).expect_err("it cannot be");
        assert!(refused.to_string().contains(why), "{refused}");
    }
}

#[test]
fn a_slice_with_a_core_of_its_own_is_served_though_others_never_pause() {
    for assignment in [Assignment::Dedicated, Assignment::Hybrid(1)] {
        let rack = rack();
        let both = Both { takes: Nanos::from_micros(200), ..Both::default() };
        let server = Server::start(&rack, "s", &both, |options| {
            (options.cores, options.assignment) = (4, assignment);
        });
        rack.until_served();
        let client = rack.client("c");
        let submit =
            |task_type, i: u32| client.submit(task_type, &i.to_be_bytes(), DEADLINE).expect("it fits");
        // Waiting tasks ask for cores, up to all cores that no other service keeps.
        until("three tasks at once", || {
            let pending: Vec<PendingTask> = (0..40).map(|i| submit(ECHO, i)).collect();
            assert!(pending.into_iter().all(|pending| pending.wait().outcome.done().is_some()));
            both.most_at_once.load(Ordering::SeqCst) >= 3
        });
        server.kill();
    }
    let rack = rack();
    let both = Both::default();
    let server = Server::start(&rack, "s", &both, |options| {
        (options.cores, options.assignment) = (2, Assignment::Dedicated);
    });
    let client = rack.client("c");
    let submit = |task_type, i: u8| client.submit(task_type, &[i], DEADLINE).expect("it fits");
    let long: Vec<PendingTask> = (0..4).map(|i| submit(OTHER, 200 + i)).collect();
    until("a long task", || both.at_once.load(Ordering::SeqCst) == 1);
    for i in 0..20 {
        let ended = submit(ECHO, i).wait();
        assert_eq!(ended.outcome.done(), Some(&[i][..]), "{}", ended.outcome);
    }
    both.let_go.store(true, Ordering::Release);
    assert!(long.into_iter().all(|pending| pending.wait().outcome.done().is_some()));
    assert_eq!(server.drain().finished, 24);
}
