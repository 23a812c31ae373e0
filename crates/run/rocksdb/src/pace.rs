//! The time per key, measured while tasks run: from it the service predicts a task's remaining time.

use std::time::Instant;

use sluice_net::service::Task;
use sluice_wire::Nanos;

/// How many keys a task processes between two predictions.
const KEYS_A_WORD: u32 = 16;
/// About how many tasks the mean remembers.
const MEMORY: f64 = 16.0;

/// The measured time per key of one kind of task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Zero before the first measured task.
    ns_per_key: f64,
}

impl Pace {
    /// Starts a task of `keys` keys, and states its expected duration.
    pub(crate) fn begin<'t>(&'t mut self, task: Task<'t>, keys: u32) -> Walk<'t> {
        let walk = Walk { pace: self, task, keys, done: 0, began: Instant::now() };
        walk.say();
        walk
    }

    fn learn(&mut self, ns_per_key: f64) {
        let off = ns_per_key - self.ns_per_key;
        self.ns_per_key += if self.ns_per_key > 0.0 { off / MEMORY } else { off };
    }
}

/// A task's progress through its keys.
pub(crate) struct Walk<'t> {
    pace: &'t mut Pace,
    task: Task<'t>,
    keys: u32,
    done: u32,
    began: Instant,
}

impl Walk<'_> {
    /// Notes that a key is done, and lets others run.
    pub(crate) fn step(&mut self) {
        self.done += 1;
        self.task.pause();
        if self.done.is_multiple_of(KEYS_A_WORD) {
            self.say();
        }
    }

    /// Ends the task: all keys are done, or there were no more.
    pub(crate) fn end(self) {
        if self.done > 0 {
            self.pace.learn(self.began.elapsed().as_nanos() as f64 / f64::from(self.done));
        }
    }

    fn say(&self) {
        if self.pace.ns_per_key > 0.0 {
            let keys = self.keys.saturating_sub(self.done);
            self.task.left(Nanos((f64::from(keys) * self.pace.ns_per_key) as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use sluice_wire::TaskType;

    use super::*;

    #[test]
    fn what_is_left_is_keys_left_times_the_measured_time_of_a_key() {
        let (held, heard) = (Cell::new(Nanos(0)), RefCell::new(Vec::new()));
        let listener = |left| heard.borrow_mut().push(left);
        let task = Task::new(b"", TaskType(1), 100, &held).with_listener(&listener);
        let mut pace = Pace::default();
        pace.begin(task, 40).end();
        assert!(heard.borrow().is_empty(), "nothing was measured yet");
        pace.learn(100.0);
        let mut walk = pace.begin(task, 40);
        (0..40).for_each(|_| walk.step());
        walk.end();
        assert_eq!(*heard.borrow(), [Nanos(4_000), Nanos(2_400), Nanos(800)]);
        assert!(pace.ns_per_key > 0.0);
    }
}
