//! Virtual time for a rack without a network: arrivals, and ends of services.

use core::sync::atomic::{AtomicBool, Ordering};

use sluice_stats::{Gauges, Level, Mark, Observer, Outcome, Replied};
use sluice_wire::Nanos;
use sluice_workload::Request;

use super::disciplines::Discipline;
use super::least::Least;
use super::task::Task;

/// The time at which an idle worker finishes.
const NEVER: u64 = u64::MAX;
/// How many tasks may wait; further tasks are refused, so that no load takes all memory.
const WAITING_MAX: u64 = 1 << 22;
/// The stop flag is read after so many arrivals, at the latest.
const STOP_EVERY: u64 = 1 << 12;

/// A rack of workers under a discipline.
#[derive(Debug)]
pub struct Rack<D> {
    discipline: D,
    finishes: Least,
    /// The task that each worker serves, or served last.
    serving: Vec<Task>,
    busy: Level,
    /// A time that is added to each latency.
    distance: Nanos,
    tasks: Tasks,
}

/// The fates of all tasks so far.
#[derive(Clone, Copy, Debug, Default)]
struct Tasks {
    arrived: u64,
    done: u64,
    refused: u64,
}

impl<D: Discipline> Rack<D> {
    /// A rack of idle workers without tasks; there must be at least one worker.
    pub fn new(discipline: D, workers: usize, distance: Nanos) -> Self {
        Self {
            discipline,
            finishes: Least::new(workers, NEVER),
            serving: vec![Task::default(); workers],
            busy: Level::default(),
            distance,
            tasks: Tasks::default(),
        }
    }

    /// Serves `requests` until there are no more, the observer is complete, or the run is told to stop.
    /// Returns the averages over the measured span.
    ///
    /// A worker that finishes at the time of an arrival is free for it.
    pub fn run(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
        observer: &mut impl Observer,
        stop: &AtomicBool,
    ) -> Gauges {
        let mut requests = requests.into_iter();
        let mut next = requests.next();
        let mut gauges = None;
        let mut now = Nanos(0);
        loop {
            let (finish, worker) = self.finishes.first();
            if let Some(request) = next.filter(|request| request.at.0 < finish) {
                now = request.at;
                match observer.sent(now) {
                    Mark::None => {}
                    Mark::Opened => self.open(now),
                    Mark::Closed => gauges = Some(self.gauges(now)),
                }
                self.expire(now, observer);
                self.arrive(&request, observer);
                next = requests.next();
                if self.tasks.arrived.is_multiple_of(STOP_EVERY) && stop.load(Ordering::Relaxed) {
                    break;
                }
            } else if self.busy.now() > 0 {
                now = Nanos(finish);
                self.finish(worker, now, observer);
                if observer.is_complete() {
                    break;
                }
            } else {
                break;
            }
            debug_assert!(
                self.is_conserved(),
                "tasks in are not waiting + running + done + refused at {now:?}"
            );
        }
        gauges.unwrap_or_else(|| self.gauges(now))
    }

    #[inline]
    fn arrive(&mut self, request: &Request, observer: &mut impl Observer) {
        self.tasks.arrived += 1;
        let outstanding = self.tasks.arrived - self.tasks.done - self.tasks.refused;
        if outstanding - self.busy.now() > WAITING_MAX {
            self.tasks.refused += 1;
            return observer.failed(request.at, Outcome::Refused);
        }
        let task = Task { at: request.at, service: request.service, class: request.class };
        if !self.discipline.admits(&task) {
            self.tasks.refused += 1;
            return observer.failed(request.at, Outcome::Refused);
        }
        if let Some(worker) = self.discipline.arrive(task, request.at) {
            self.busy.enter(request.at);
            self.start(worker, task, request.at);
        }
    }

    #[inline]
    fn finish(&mut self, worker: usize, now: Nanos, observer: &mut impl Observer) {
        self.tasks.done += 1;
        self.expire(now, observer);
        let Task { at, service, class } = self.serving[worker];
        if let Some(next) = self.discipline.finish(worker, now) {
            self.start(worker, next, now);
        } else {
            self.finishes.set(worker, NEVER);
            self.busy.leave(now);
        }
        let (replied_at, waited) = (now + self.distance, now - at - service);
        observer.done(&Replied { class, intended: at, at: replied_at, service, served: service, waited });
    }

    /// Tasks that the discipline gives up end.
    #[inline]
    fn expire(&mut self, now: Nanos, observer: &mut impl Observer) {
        while let Some(task) = self.discipline.expired(now) {
            self.tasks.refused += 1;
            observer.failed(task.at, Outcome::Refused);
        }
    }

    #[inline]
    fn start(&mut self, worker: usize, task: Task, now: Nanos) {
        self.serving[worker] = task;
        self.finishes.set(worker, now.0 + task.service.0);
    }
    fn open(&mut self, now: Nanos) {
        self.busy.open(now);
        self.discipline.waiting_in_switch().into_iter().for_each(|level| level.open(now));
        self.discipline.waiting_at_workers().into_iter().for_each(|level| level.open(now));
    }

    fn gauges(&mut self, now: Nanos) -> Gauges {
        let workers = self.serving.len() as f64;
        let idle_share = 1.0 - self.busy.mean(now) / workers;
        let in_switch =
            self.discipline.waiting_in_switch().map(|level| (level.mean(now), level.max() as f64));
        let at_workers = self.discipline.waiting_at_workers().map(|level| level.mean(now) / workers);
        Gauges {
            switch_queue_mean: in_switch.map(|(mean, _)| mean),
            switch_queue_max: in_switch.map(|(_, max)| max),
            worker_queue_mean: at_workers,
            idle_share: Some(idle_share),
            ..Gauges::default()
        }
    }

    fn is_conserved(&mut self) -> bool {
        let waiting = self.discipline.waiting_in_switch().map_or(0, |level| level.now())
            + self.discipline.waiting_at_workers().map_or(0, |level| level.now());
        self.tasks.arrived == waiting + self.busy.now() + self.tasks.done + self.tasks.refused
    }
}
