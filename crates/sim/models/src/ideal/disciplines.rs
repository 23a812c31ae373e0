//! The disciplines: where a task waits, and which worker takes it.

use sluice_events::dice::Dice;
use sluice_stats::Level;
use sluice_wire::Nanos;

use super::least::Least;
use super::queues::{Queue, WorkerQueues};
use super::task::Task;

/// Holds the waiting tasks. It is told of every event in order of time, and so knows the whole state.
pub trait Discipline {
    /// Whether a task is let in; asked before it arrives.
    fn admits(&mut self, _task: &Task) -> bool {
        true
    }

    /// The next waiting task that is given up by now; asked before a task arrives or a worker finishes.
    fn expired(&mut self, _now: Nanos) -> Option<Task> {
        None
    }

    /// A task arrives: returns the idle worker that starts it at once; `None` if the task waits.
    fn arrive(&mut self, task: Task, now: Nanos) -> Option<usize>;

    /// A worker has finished a task: returns the task that it starts now, if there is one.
    fn finish(&mut self, worker: usize, now: Nanos) -> Option<Task>;

    /// How many tasks wait in a queue of the switch, if there is one.
    fn waiting_in_switch(&mut self) -> Option<&mut Level>;

    /// How many tasks wait at all workers together, if workers have queues.
    fn waiting_at_workers(&mut self) -> Option<&mut Level>;
}

/// One queue for all workers.
#[derive(Clone, Debug)]
pub struct Central {
    queue: Queue,
    idle: Vec<usize>,
}

impl Central {
    /// An empty queue, and so many idle workers.
    pub fn new(workers: usize) -> Self {
        Self { queue: Queue::new(), idle: (0..workers).rev().collect() }
    }
}

impl Discipline for Central {
    #[inline]
    fn arrive(&mut self, task: Task, now: Nanos) -> Option<usize> {
        let worker = self.idle.pop();
        if worker.is_none() {
            self.queue.push(task, now);
        }
        worker
    }

    #[inline]
    fn finish(&mut self, worker: usize, now: Nanos) -> Option<Task> {
        let next = self.queue.pop(now);
        if next.is_none() {
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

/// One queue for all workers, and a bounded queue at each worker. A task goes to the shortest queue; of
/// equal ones to the first worker's.
#[derive(Clone, Debug)]
pub(super) struct Jbsq {
    bound: u64,
    queue: Queue,
    lines: WorkerQueues,
    depths: QueueLengths,
}

impl Jbsq {
    /// At most `bound` tasks at a worker, in service or waiting.
    pub(super) fn new(workers: usize, bound: u64) -> Self {
        Self {
            bound,
            queue: Queue::new(),
            lines: WorkerQueues::new(workers),
            depths: QueueLengths::new(workers),
        }
    }
}

impl Discipline for Jbsq {
    #[inline]
    fn arrive(&mut self, task: Task, now: Nanos) -> Option<usize> {
        let (depth, worker) = self.depths.shortest();
        if depth >= self.bound {
            self.queue.push(task, now);
            return None;
        }
        self.depths.add(worker);
        if depth == 0 {
            return Some(worker);
        }
        self.lines.push(worker, task, now);
        None
    }

    #[inline]
    fn finish(&mut self, worker: usize, now: Nanos) -> Option<Task> {
        match self.queue.pop(now) {
            // The next task takes the place of the one that ended, so the depth stays.
            Some(next) => self.lines.push(worker, next, now),
            None => self.depths.remove(worker),
        }
        self.lines.pop(worker, now)
    }

    fn waiting_in_switch(&mut self) -> Option<&mut Level> {
        Some(self.queue.level())
    }

    fn waiting_at_workers(&mut self) -> Option<&mut Level> {
        Some(self.lines.level())
    }
}

/// A queue at each worker, which tasks join at once.
#[derive(Clone, Debug)]
pub(super) struct Immediate<P> {
    pick: P,
    lines: WorkerQueues,
    /// Tasks at each worker, in service or waiting.
    held: Vec<u32>,
}

/// Chooses the worker that a task joins.
pub(super) trait WorkerChoice {
    fn worker(&mut self, held: &[u32]) -> usize;

    /// The number of tasks that a worker holds has changed.
    fn changed(&mut self, _worker: usize, _held: u32) {}
}

impl<P: WorkerChoice> Immediate<P> {
    pub(super) fn new(workers: usize, pick: P) -> Self {
        Self { pick, lines: WorkerQueues::new(workers), held: vec![0; workers] }
    }
}

impl<P: WorkerChoice> Discipline for Immediate<P> {
    #[inline]
    fn arrive(&mut self, task: Task, now: Nanos) -> Option<usize> {
        let worker = self.pick.worker(&self.held);
        self.held[worker] += 1;
        self.pick.changed(worker, self.held[worker]);
        if self.held[worker] == 1 {
            return Some(worker);
        }
        self.lines.push(worker, task, now);
        None
    }

    #[inline]
    fn finish(&mut self, worker: usize, now: Nanos) -> Option<Task> {
        self.held[worker] -= 1;
        self.pick.changed(worker, self.held[worker]);
        self.lines.pop(worker, now)
    }

    fn waiting_in_switch(&mut self) -> Option<&mut Level> {
        None
    }

    fn waiting_at_workers(&mut self) -> Option<&mut Level> {
        Some(self.lines.level())
    }
}

/// Chooses the worker with the fewest tasks; of equal ones the first.
#[derive(Clone, Debug)]
pub(super) struct ShortestQueue(Least);

impl ShortestQueue {
    pub(super) fn new(workers: usize) -> Self {
        Self(Least::new(workers, 0))
    }
}

impl WorkerChoice for ShortestQueue {
    #[inline]
    fn worker(&mut self, _held: &[u32]) -> usize {
        self.0.first().1
    }

    #[inline]
    fn changed(&mut self, worker: usize, held: u32) {
        self.0.set(worker, u64::from(held));
    }
}

/// Chooses, of two workers drawn at random, the one with fewer tasks; of equal ones the first drawn.
#[derive(Clone, Debug)]
pub(super) struct PowerOfTwo(pub(super) Dice);

impl WorkerChoice for PowerOfTwo {
    #[inline]
    fn worker(&mut self, held: &[u32]) -> usize {
        let workers = held.len() as u64;
        let word = self.0.word();
        let one = part(word >> 32, workers);
        if workers == 1 {
            return one;
        }
        let other = (one + 1 + part(word & u64::from(u32::MAX), workers - 1)) % held.len();
        if held[other] < held[one] { other } else { one }
    }
}

/// Chooses a random worker.
#[derive(Clone, Debug)]
pub(super) struct RandomWorker(pub(super) Dice);

impl WorkerChoice for RandomWorker {
    #[inline]
    fn worker(&mut self, held: &[u32]) -> usize {
        part(self.0.word() >> 32, held.len() as u64)
    }
}

/// Chooses one worker after the other.
#[derive(Clone, Debug)]
pub(super) struct RoundRobin(pub(super) usize);

impl WorkerChoice for RoundRobin {
    #[inline]
    fn worker(&mut self, held: &[u32]) -> usize {
        let worker = self.0;
        self.0 = if worker + 1 == held.len() { 0 } else { worker + 1 };
        worker
    }
}

/// The part of `parts` into which a uniform 32-bit number falls. For 65,536 workers the parts differ by
/// less than 2⁻¹⁶ of their size.
#[inline]
fn part(drawn: u64, parts: u64) -> usize {
    ((drawn * parts) >> 32) as usize
}

/// Tasks at each worker, in service or waiting.
#[derive(Clone, Debug)]
struct QueueLengths {
    each: Vec<u64>,
    tournament: Least,
}

impl QueueLengths {
    fn new(workers: usize) -> Self {
        Self { each: vec![0; workers], tournament: Least::new(workers, 0) }
    }

    #[inline]
    fn shortest(&self) -> (u64, usize) {
        self.tournament.first()
    }

    #[inline]
    fn add(&mut self, worker: usize) {
        self.each[worker] += 1;
        self.tournament.set(worker, self.each[worker]);
    }

    #[inline]
    fn remove(&mut self, worker: usize) {
        self.each[worker] -= 1;
        self.tournament.set(worker, self.each[worker]);
    }
}
