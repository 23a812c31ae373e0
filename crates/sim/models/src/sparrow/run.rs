//! One run: the cores of schedulers and workers, and the messages between them.

use core::cmp::Reverse;
use core::iter::Peekable;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BinaryHeap, VecDeque};

use sluice_events::dice::Dice;
use sluice_stats::{Counts, Gauges, Level, Mark, Observer, Outcome, Replied};
use sluice_testbed::{Testbed, WorkerTimes};
use sluice_wire::Nanos;
use sluice_workload::Request;

use super::machines::{JobId, Reservations, SparrowScheduler, ToWorker};
use super::settings::{Sparrow, way};
use crate::queued_event::QueuedEvent;

/// How many tasks clients may hold back; further ones are given up, as in a rack.
const BACKLOG_MAX: usize = 1 << 20;
/// The stop flag is read after so many events.
const STOP_EVERY: u32 = 1 << 14;

/// A message to a scheduler.
#[derive(Clone, Debug)]
enum ToScheduler {
    Job(Vec<Request>),
    /// A worker asks for a job's task.
    Asks {
        job: JobId,
        worker: u32,
    },
}

#[derive(Clone, Debug)]
enum Event {
    /// A message arrives at a scheduler.
    Comes(u8, ToScheduler),
    /// A scheduler's core has handled the message.
    Decided(u8, ToScheduler),
    /// A scheduler's message arrives at a worker.
    Hears(u32, u8, ToWorker<Request>),
    /// A worker's service ends.
    Ends(u32),
}

struct SchedulerNode {
    machine: SparrowScheduler<Request>,
    free_at: Nanos,
}

#[derive(Default)]
struct WorkerNode {
    reservations: Reservations<u8>,
    /// Messages that wait in its NIC, each with its scheduler.
    mail: VecDeque<(u8, ToWorker<Request>)>,
    running: Option<(Request, Nanos)>,
    /// Whether it waits for an answer to its question.
    asks: bool,
    free_at: Nanos,
}

/// Schedulers and workers in virtual time.
pub(super) struct SparrowRun<'o, O> {
    now: Nanos,
    settings: Sparrow,
    costs: WorkerTimes,
    /// The delays from a client to a scheduler, between a scheduler and a worker, and from a worker to a
    /// client.
    ways: [Nanos; 3],
    /// The time from when a task is due to its start, if the rack is idle and the worker need not ask.
    lonely: Nanos,
    schedulers: Vec<SchedulerNode>,
    turn: usize,
    /// How many tasks clients may have outstanding together, as many as with a rack's switch (C + ΣN).
    room: u64,
    /// Jobs that wait for room, and how many tasks they have.
    held_back: VecDeque<Vec<Request>>,
    held_tasks: usize,
    workers: Vec<WorkerNode>,
    event_queue: BinaryHeap<Reverse<QueuedEvent<Event>>>,
    entered: u64,
    dice: Dice,
    said: Vec<(u32, ToWorker<Request>)>,
    counts: Counts,
    opened: Counts,
    waiting: Level,
    serving: Level,
    observer: &'o mut O,
}

impl<'o, O: Observer> SparrowRun<'o, O> {
    pub(super) fn new(settings: Sparrow, testbed: &Testbed, dice: Dice, observer: &'o mut O) -> Self {
        let workers = testbed.workers;
        let machine = || SparrowScheduler::new(workers, settings.probes, settings.cancels);
        let scheduler = |_| SchedulerNode { machine: machine(), free_at: Nanos(0) };
        Self {
            now: Nanos(0),
            settings,
            costs: testbed.worker,
            ways: [testbed.way_in(), way(testbed), testbed.way_back()],
            lonely: testbed.way_in() + testbed.worker.receive,
            schedulers: (0..settings.schedulers).map(scheduler).collect(),
            turn: 0,
            room: u64::from(testbed.queue + workers),
            held_back: VecDeque::new(),
            held_tasks: 0,
            workers: (0..workers).map(|_| WorkerNode::default()).collect(),
            event_queue: BinaryHeap::new(),
            entered: 0,
            dice,
            said: Vec::new(),
            counts: Counts::default(),
            opened: Counts::default(),
            waiting: Level::default(),
            serving: Level::default(),
            observer,
        }
    }

    /// Serves requests until there are no more or the observer is complete; `None` if it is stopped.
    pub(super) fn drive(
        &mut self,
        mut requests: Peekable<impl Iterator<Item = Request>>,
        stop: &AtomicBool,
    ) -> Option<(Counts, Gauges)> {
        let (mut closed, mut turns) = (None, 0_u32);
        while !self.observer.is_complete() {
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(STOP_EVERY) && stop.load(Ordering::Relaxed) {
                return None;
            }
            match self.turn(&mut requests) {
                ControlFlow::Continue(so_far) => closed = so_far.or(closed),
                ControlFlow::Break(()) => break,
            }
        }
        Some(closed.unwrap_or_else(|| self.so_far()))
    }

    /// Carries out the next event. Returns the counts so far if the measured span ends with it; ends the
    /// loop when there is no event left.
    fn turn(
        &mut self,
        requests: &mut Peekable<impl Iterator<Item = Request>>,
    ) -> ControlFlow<(), Option<(Counts, Gauges)>> {
        let due = self.event_queue.peek().map(|Reverse(due)| due.at);
        match requests.peek().map(|request| request.at) {
            Some(at) if due.is_none_or(|due| at < due) => {
                self.now = at;
                let job = core::iter::from_fn(|| requests.next_if(|next| next.at == at)).collect();
                ControlFlow::Continue(self.submit_job(job))
            }
            _ => {
                let Some(Reverse(QueuedEvent { at, event, .. })) = self.event_queue.pop() else {
                    return ControlFlow::Break(());
                };
                self.now = at;
                self.on_event(event);
                ControlFlow::Continue(None)
            }
        }
    }

    /// Takes all tasks that are due at the same time, as one job. Returns the counts so far if the measured
    /// span ends with it.
    fn submit_job(&mut self, job: Vec<Request>) -> Option<(Counts, Gauges)> {
        let mut closed = None;
        for request in &job {
            match self.observer.sent(request.at) {
                Mark::None => {}
                Mark::Opened => self.open(),
                Mark::Closed => closed = Some(self.so_far()),
            }
        }
        if self.held_tasks + job.len() > BACKLOG_MAX {
            for task in &job {
                self.observer.failed(task.at, Outcome::PushedBack);
            }
            return closed;
        }
        self.held_tasks += job.len();
        self.held_back.push_back(job);
        self.submits();
        closed
    }

    /// Sends jobs to schedulers in turn, as long as there is room.
    fn submits(&mut self) {
        while self.waiting.now() < self.room
            && let Some(job) = self.held_back.pop_front()
        {
            self.held_tasks -= job.len();
            for _ in &job {
                self.waiting.enter(self.now);
            }
            let scheduler = self.turn as u8;
            self.turn = (self.turn + 1) % self.schedulers.len();
            self.send(self.now + self.ways[0], Event::Comes(scheduler, ToScheduler::Job(job)));
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Comes(scheduler, what) => {
                let node = &mut self.schedulers[usize::from(scheduler)];
                node.free_at = node.free_at.max(self.now) + self.settings.message;
                let at = node.free_at;
                self.enter(at, Event::Decided(scheduler, what));
            }
            Event::Decided(scheduler, what) => self.on_scheduler_message(scheduler, what),
            Event::Hears(worker, scheduler, what) => {
                if self.workers[worker as usize].running.is_some() {
                    self.workers[worker as usize].mail.push_back((scheduler, what));
                } else {
                    self.on_worker_message(worker, scheduler, what);
                }
            }
            Event::Ends(worker) => self.on_service_end(worker),
        }
    }

    fn on_scheduler_message(&mut self, scheduler: u8, what: ToScheduler) {
        let mut said = core::mem::take(&mut self.said);
        let machine = &mut self.schedulers[usize::from(scheduler)].machine;
        match what {
            ToScheduler::Job(tasks) => machine.submit(tasks, |bound| self.dice.below(bound), &mut said),
            ToScheduler::Asks { job, worker } => machine.asked(job, worker, &mut said),
        }
        for (worker, what) in said.drain(..) {
            self.counts.polls += u64::from(matches!(what, ToWorker::Run(_) | ToWorker::Nothing));
            self.counts.empty_polls += u64::from(matches!(what, ToWorker::Nothing));
            self.send(self.now + self.ways[1], Event::Hears(worker, scheduler, what));
        }
        self.said = said;
    }

    /// A worker's core takes a message, and does what follows from it.
    fn on_worker_message(&mut self, worker: u32, scheduler: u8, what: ToWorker<Request>) {
        let node = &mut self.workers[worker as usize];
        node.free_at = node.free_at.max(self.now) + self.costs.receive;
        match what {
            ToWorker::Reserve(job) => node.reservations.reserve(scheduler, job),
            ToWorker::Cancel(job) => node.reservations.cancel(scheduler, job),
            ToWorker::Nothing => node.asks = false,
            ToWorker::Run(task) => {
                node.asks = false;
                let started = node.free_at;
                node.running = Some((task, started));
                node.free_at = started + task.service.max(Nanos(1));
                let ends = node.free_at;
                self.waiting.leave(self.now);
                self.serving.enter(self.now);
                self.enter(ends, Event::Ends(worker));
                return self.submits();
            }
        }
        self.request_task(worker);
    }

    /// An idle worker asks for the task of its next reservation.
    fn request_task(&mut self, worker: u32) {
        let node = &mut self.workers[worker as usize];
        if node.asks || node.running.is_some() {
            return;
        }
        if let Some((scheduler, job)) = node.reservations.next_turn() {
            node.asks = true;
            node.free_at = node.free_at.max(self.now) + self.costs.send;
            let comes = node.free_at + self.ways[1];
            self.send(comes, Event::Comes(scheduler, ToScheduler::Asks { job, worker }));
        }
    }

    /// A service ends: the reply leaves, and the messages in the NIC are received until one brings a task.
    fn on_service_end(&mut self, worker: u32) {
        let node = &mut self.workers[worker as usize];
        let Some((task, started)) = node.running.take() else { return };
        node.free_at = self.now + self.costs.send;
        let at = node.free_at + self.ways[2];
        self.serving.leave(self.now);
        self.counts.packets += 1;
        self.counts.passes += 1;
        let Request { at: intended, service, class, .. } = task;
        let waited = Nanos(started.since(intended).0.saturating_sub(self.lonely.0));
        let served = self.now.since(started);
        self.observer.done(&Replied { class, intended, at, service, served, waited });
        while self.workers[worker as usize].running.is_none()
            && let Some((scheduler, what)) = self.workers[worker as usize].mail.pop_front()
        {
            self.on_worker_message(worker, scheduler, what);
        }
        self.request_task(worker);
    }

    fn send(&mut self, at: Nanos, event: Event) {
        self.counts.packets += 1;
        self.counts.passes += 1;
        self.enter(at, event);
    }

    fn enter(&mut self, at: Nanos, event: Event) {
        self.event_queue.push(Reverse(QueuedEvent { at, entered: self.entered, event }));
        self.entered += 1;
    }

    fn open(&mut self) {
        self.opened = self.counts;
        self.waiting.open(self.now);
        self.serving.open(self.now);
    }

    fn so_far(&self) -> (Counts, Gauges) {
        let workers = self.workers.len() as f64;
        let gauges = Gauges {
            switch_queue_mean: Some(self.waiting.mean(self.now)),
            switch_queue_max: Some(self.waiting.max() as f64),
            idle_share: Some(1.0 - self.serving.mean(self.now) / workers),
            ..Gauges::default()
        };
        (self.counts.since(&self.opened), gauges)
    }
}

#[cfg(test)]
mod tests;
