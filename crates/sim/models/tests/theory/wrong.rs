//! Policies that are wrong on purpose: the checks must find each.

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Central, Discipline, Queue, Rack, Task};
use sluice_stats::{Level, Recorder, Recording, Warmup};
use sluice_wire::Nanos;
use sluice_workload::{Requests, Workload};

use crate::cells;
use crate::grid::{self, Cell, Service};

#[test]
fn services_three_per_cent_too_long_are_noticed() {
    assert!(grid::run(&cells::cheap(), 1.0, Central::new).holds());
    let outcome = grid::run(&cells::cheap(), 1.03, Central::new);
    assert!(outcome.misses_too_often(), "{outcome:#?}");
}

#[test]
fn last_come_first_served_is_noticed() {
    let cell = Cell { service: Service::Exp, workers: 4, load: 0.8, tasks: 4_000_000 };
    let outcome = grid::run(&[cell], 1.0, LastFirst::new);
    assert!(outcome.misses_too_often(), "{outcome:#?}");
}

#[test]
fn a_lost_worker_is_noticed() {
    let cell = Cell { service: Service::Exp, workers: 16, load: 0.8, tasks: 4_000_000 };
    let outcome = grid::run(&[cell], 1.0, LosesAWorker::new);
    assert!(outcome.misses_too_often(), "{outcome:#?}");
}

#[test]
#[should_panic(expected = "tasks in are not waiting + running + done + refused")]
fn a_lost_task_is_noticed_at_once() {
    let workload = Workload::parse("exp:10us").expect("it is right");
    let recording = Recording {
        mean_services_ns: vec![10_000.0],
        tasks: 100_000,
        warmup: Warmup::Tasks(0),
        parts: 0,
        way_home: Nanos(0),
        passed_over_at_random: None,
        within: Vec::new(),
    };
    let requests = Requests::new(&workload, 300_000.0, 4, 0);
    let mut rack = Rack::new(LosesATask { central: Central::new(4), came: 0 }, 4, Nanos(0));
    rack.run(requests, &mut Recorder::new(recording), &AtomicBool::new(false));
}

/// Serves the newest task first.
struct LastFirst {
    waiting: Vec<Task>,
    idle: Vec<usize>,
    level: Level,
}

impl LastFirst {
    fn new(workers: usize) -> Self {
        Self { waiting: Vec::new(), idle: (0..workers).collect(), level: Level::default() }
    }
}

impl Discipline for LastFirst {
    fn arrive(&mut self, task: Task, now: Nanos) -> Option<usize> {
        let worker = self.idle.pop();
        if worker.is_none() {
            self.waiting.push(task);
            self.level.enter(now);
        }
        worker
    }

    fn finish(&mut self, worker: usize, now: Nanos) -> Option<Task> {
        let next = self.waiting.pop();
        match next {
            Some(_) => self.level.leave(now),
            None => self.idle.push(worker),
        }
        next
    }

    fn waiting_in_switch(&mut self) -> Option<&mut Level> {
        Some(&mut self.level)
    }

    fn waiting_at_workers(&mut self) -> Option<&mut Level> {
        None
    }
}

/// Forgets one worker when the worker becomes idle, as if its token were lost.
struct LosesAWorker {
    queue: Queue,
    idle: Vec<usize>,
    served: u64,
}

impl LosesAWorker {
    fn new(workers: usize) -> Self {
        Self { queue: Queue::new(), idle: (0..workers).collect(), served: 0 }
    }
}

impl Discipline for LosesAWorker {
    fn arrive(&mut self, task: Task, now: Nanos) -> Option<usize> {
        let worker = self.idle.pop();
        if worker.is_none() {
            self.queue.push(task, now);
        }
        worker
    }

    fn finish(&mut self, worker: usize, now: Nanos) -> Option<Task> {
        self.served += 1;
        let next = self.queue.pop(now);
        if next.is_none() && (worker != 0 || self.served < 10_000) {
            self.idle.push(worker);
        }
        next
    }

    fn waiting_in_switch(&mut self) -> Option<&mut Level> {
        Some(self.queue.level())
    }

    fn waiting_at_workers(&mut self) -> Option<&mut Level> {
        None
    }
}

/// Forgets a task.
struct LosesATask {
    central: Central,
    came: u64,
}

impl Discipline for LosesATask {
    fn arrive(&mut self, task: Task, now: Nanos) -> Option<usize> {
        self.came += 1;
        if self.came == 50_000 {
            return None;
        }
        self.central.arrive(task, now)
    }

    fn finish(&mut self, worker: usize, now: Nanos) -> Option<Task> {
        self.central.finish(worker, now)
    }

    fn waiting_in_switch(&mut self) -> Option<&mut Level> {
        self.central.waiting_in_switch()
    }

    fn waiting_at_workers(&mut self) -> Option<&mut Level> {
        None
    }
}
