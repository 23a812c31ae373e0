//! How long a key takes, measured as tasks run: what a service needs to say how much of a task is left.

use std::time::Instant;

use sluice_net::service::Task;
use sluice_wire::Nanos;

/// Keys between two words.
const KEYS_A_WORD: u32 = 16;
/// Tasks that the measure remembers, about.
const MEMORY: f64 = 16.0;

/// The measured time of a key, of one kind of task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Zero until a task was measured.
    ns_per_key: f64,
}

impl Pace {
    /// Begins a task of so many keys, and says how long it will take.
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

/// A task's way through its keys.
pub(crate) struct Walk<'t> {
    pace: &'t mut Pace,
    task: Task<'t>,
    keys: u32,
    done: u32,
    began: Instant,
}

impl Walk<'_> {
    /// One more key is done: a good place for others to run.
    pub(crate) fn step(&mut self) {
        self.done += 1;
        self.task.pause();
        if self.done.is_multiple_of(KEYS_A_WORD) {
            self.say();
        }
    }

    /// All are done, or there were no more.
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
        let task = Task::new(b"", TaskType(1), 100, &held).heard_by(&listener);
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
