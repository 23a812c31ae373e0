//! Queues of waiting tasks, first come first served, with their length over time.

use std::collections::VecDeque;

use sluice_stats::Level;
use sluice_wire::Nanos;

use super::task::Task;

/// Tasks for which a queue has room from the start.
const ROOM: usize = 1_024;
/// The link to no task.
const NIL: u32 = u32::MAX;

/// One queue.
#[derive(Clone, Debug)]
pub struct Queue {
    tasks: VecDeque<Task>,
    level: Level,
}

impl Queue {
    /// An empty queue.
    pub fn new() -> Self {
        Self { tasks: VecDeque::with_capacity(ROOM), level: Level::default() }
    }

    /// Appends a task.
    #[inline]
    pub fn push(&mut self, task: Task, now: Nanos) {
        self.tasks.push_back(task);
        self.level.enter(now);
    }

    /// Takes the first task.
    #[inline]
    pub fn pop(&mut self, now: Nanos) -> Option<Task> {
        let task = self.tasks.pop_front()?;
        self.level.leave(now);
        Some(task)
    }

    /// How many tasks wait.
    pub fn level(&mut self) -> &mut Level {
        &mut self.level
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::new()
    }
}

/// A queue for each worker, all in one piece of memory. It grows with the most tasks that ever waited in
/// all queues together, not with the most in each.
#[derive(Clone, Debug)]
pub struct WorkerQueues {
    workers: Vec<WorkerQueue>,
    places: Vec<QueuedEntry>,
    free: u32,
    level: Level,
}

#[derive(Clone, Copy, Debug)]
struct WorkerQueue {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct QueuedEntry {
    task: Task,
    next: u32,
}

impl WorkerQueues {
    /// An empty queue for each of so many workers.
    pub fn new(workers: usize) -> Self {
        let workers = vec![WorkerQueue { first: NIL, last: NIL }; workers];
        Self { workers, places: Vec::with_capacity(ROOM), free: NIL, level: Level::default() }
    }

    /// Appends a task to a worker's queue.
    #[inline]
    pub fn push(&mut self, worker: usize, task: Task, now: Nanos) {
        let place = self.place(QueuedEntry { task, next: NIL });
        let line = &mut self.workers[worker];
        if line.first == NIL {
            line.first = place;
        } else {
            self.places[line.last as usize].next = place;
        }
        line.last = place;
        self.level.enter(now);
    }

    /// Takes the first task of a worker's queue.
    #[inline]
    pub fn pop(&mut self, worker: usize, now: Nanos) -> Option<Task> {
        let first = self.workers[worker].first;
        if first == NIL {
            return None;
        }
        let place = &mut self.places[first as usize];
        self.workers[worker].first = place.next;
        place.next = self.free;
        self.free = first;
        self.level.leave(now);
        Some(place.task)
    }

    /// How many tasks wait at all workers together.
    pub fn level(&mut self) -> &mut Level {
        &mut self.level
    }

    fn place(&mut self, filled: QueuedEntry) -> u32 {
        if self.free == NIL {
            self.places.push(filled);
            return self.places.len() as u32 - 1;
        }
        let place = self.free;
        self.free = self.places[place as usize].next;
        self.places[place as usize] = filled;
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_events::dice::Dice;

    #[test]
    fn every_line_gives_back_in_order_what_it_took() {
        let mut dice = Dice::new(1, 1);
        let mut lines = WorkerQueues::new(5);
        let mut model = vec![VecDeque::new(); 5];
        for n in 0..10_000 {
            let worker = dice.below(5) as usize;
            if dice.chance(520) {
                let task = Task { at: Nanos(n), service: Nanos(1), class: 0 };
                lines.push(worker, task, Nanos(n));
                model[worker].push_back(task);
            } else {
                assert_eq!(lines.pop(worker, Nanos(n)), model[worker].pop_front());
            }
        }
        assert_eq!(lines.level().now(), model.iter().map(|line| line.len() as u64).sum::<u64>());
        assert_eq!(lines.places.len() as u64, lines.level().max(), "places are used again");
    }
}
