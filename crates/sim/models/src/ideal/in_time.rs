//! Disciplines that know each service time and serve only what is answered within a limit.
//!
//! [`FirstInTime`] decides at the arrival. Tasks are served in their order, so the times at which workers
//! become free for a task are known when it comes; a task that would be answered too late is refused at
//! once, and one that is let in is in time.
//!
//! [`ShortestInTime`] shows what knowledge can buy beyond that: when more comes than can be served, an answer
//! costs the least work if the shortest task goes first. A free worker takes the shortest waiting task that
//! can still be in time; a task that cannot be any more is given up. No schedule can answer more tasks in a
//! span than the shortest of those that come, as many as fill the workers' time. This one comes near that
//! bound where the limit is many services long. It is no optimum: to find one is NP-hard, even with all
//! arrivals known.

use std::collections::BTreeSet;

use sluice_stats::Level;
use sluice_wire::Nanos;

use super::disciplines::{Central, Discipline};
use super::least::Least;
use super::task::Task;

/// One queue of tasks that will all be in time.
#[derive(Clone, Debug)]
pub(super) struct FirstInTime {
    central: Central,
    /// When each worker will have served all that were let in.
    free_at: Least,
    /// What a wait and a service may take together.
    most: Nanos,
}

impl FirstInTime {
    pub(super) fn new(workers: usize, limit: Nanos, distance: Nanos) -> Self {
        let most = limit.since(distance);
        Self { central: Central::new(workers), free_at: Least::new(workers, 0), most }
    }
}

impl Discipline for FirstInTime {
    fn admits(&mut self, task: &Task) -> bool {
        let (free_at, worker) = self.free_at.first();
        let ends = task.at.max(Nanos(free_at)) + task.service;
        let is_in_time = ends <= task.at + self.most;
        if is_in_time {
            self.free_at.set(worker, ends.0);
        }
        is_in_time
    }

    fn arrive(&mut self, task: Task, now: Nanos) -> Option<usize> {
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

/// The shortest task first, of those that can be in time.
#[derive(Clone, Debug)]
pub(super) struct ShortestInTime {
    /// Waiting tasks: their service time, their number, when they came and their class.
    by_service: BTreeSet<(Nanos, u64, Nanos, u8)>,
    /// The same tasks: the latest start that is in time, their number, their service time.
    by_start: BTreeSet<(Nanos, u64, Nanos, Nanos, u8)>,
    idle: Vec<usize>,
    number: u64,
    most: Nanos,
    level: Level,
}

impl ShortestInTime {
    pub(super) fn new(workers: usize, limit: Nanos, distance: Nanos) -> Self {
        Self {
            by_service: BTreeSet::new(),
            by_start: BTreeSet::new(),
            idle: (0..workers).rev().collect(),
            number: 0,
            most: limit.since(distance),
            level: Level::default(),
        }
    }

    fn latest_start(&self, at: Nanos, service: Nanos) -> Nanos {
        at + self.most.since(service)
    }
}

impl Discipline for ShortestInTime {
    fn admits(&mut self, task: &Task) -> bool {
        task.service <= self.most
    }

    fn expired(&mut self, now: Nanos) -> Option<Task> {
        let first = *self.by_start.first()?;
        let (latest, number, service, at, class) = first;
        if latest >= now {
            return None;
        }
        self.by_start.remove(&first);
        self.by_service.remove(&(service, number, at, class));
        self.level.leave(now);
        Some(Task { at, service, class })
    }

    fn arrive(&mut self, task: Task, now: Nanos) -> Option<usize> {
        let worker = self.idle.pop();
        if worker.is_none() {
            let Task { at, service, class } = task;
            self.number += 1;
            self.by_service.insert((service, self.number, at, class));
            self.by_start.insert((self.latest_start(at, service), self.number, service, at, class));
            self.level.enter(now);
        }
        worker
    }

    fn finish(&mut self, worker: usize, now: Nanos) -> Option<Task> {
        let Some((service, number, at, class)) = self.by_service.pop_first() else {
            self.idle.push(worker);
            return None;
        };
        self.by_start.remove(&(self.latest_start(at, service), number, service, at, class));
        self.level.leave(now);
        Some(Task { at, service, class })
    }

    fn waiting_in_switch(&mut self) -> Option<&mut Level> {
        Some(&mut self.level)
    }

    fn waiting_at_workers(&mut self) -> Option<&mut Level> {
        None
    }
}
