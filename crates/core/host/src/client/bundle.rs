//! Tasks that leave in the same instant, put into one submission where the switch accepts several.

use sluice_wire::{Packet, Submit, TaskJob};

/// An open submission. Its tasks are alike except for their bytes, and their sequence numbers follow each
/// other.
#[derive(Clone, Copy, Debug)]
pub struct Bundle {
    open: Option<TaskJob>,
    most: u8,
}

impl Bundle {
    /// An empty bundle of at most `most` tasks (see [`Client::jobs`](super::Client::jobs)).
    pub const fn new(most: u8) -> Self {
        Self { open: None, most }
    }

    /// Sets the largest number of tasks in a bundle.
    pub const fn allow(&mut self, most: u8) {
        self.most = most;
    }

    /// Whether every task goes alone.
    pub const fn is_off(&self) -> bool {
        self.most <= 1
    }

    /// Appends a task, or starts a new bundle with it. Returns the packet that leaves first, if the old
    /// bundle had to be closed, and whether the task must be sent alone after that packet.
    pub fn put(&mut self, task: &Submit) -> (Option<Packet>, bool) {
        if self.takes(task) {
            return (None, false);
        }
        let before = self.close();
        (before, !self.takes(task))
    }

    fn takes(&mut self, task: &Submit) -> bool {
        if self.is_off() {
            return false;
        }
        match &mut self.open {
            Some(job) => job.tasks() < self.most && job.push(task),
            open => {
                *open = TaskJob::of(*task);
                open.is_some()
            }
        }
    }

    /// Closes the bundle and returns its packet; `None` if the bundle is empty.
    pub fn close(&mut self) -> Option<Packet> {
        let job = self.open.take()?;
        Some(if job.behind() == 0 { Packet::Submit(*job.first()) } else { Packet::Job(job) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use sluice_wire::{Payload, Serial, TaskId, TaskType};

    fn task(sequence: u32, task_type: u16, len: u16) -> Submit {
        let task = TaskId { sequence: Serial(sequence), ..TaskId::default() };
        let payload = Payload { len, ..Payload::EMPTY };
        Submit { task, task_type: TaskType(task_type), payload, ..Submit::default() }
    }

    /// For each packet: the sequence number of its first task, and how many tasks it holds.
    fn sent(most: u8, tasks: &[Submit]) -> Vec<(u32, u8)> {
        let (mut bundle, mut sent) = (Bundle::new(most), Vec::new());
        for task in tasks {
            let (before, is_alone) = bundle.put(task);
            sent.extend(before);
            sent.extend(is_alone.then_some(Packet::Submit(*task)));
        }
        sent.extend(bundle.close());
        let shape = |packet| match packet {
            Packet::Submit(submit) => (submit.task.sequence.0, 1),
            Packet::Job(job) => (job.first().task.sequence.0, job.tasks()),
            other => panic!("{other:?}"),
        };
        sent.into_iter().map(shape).collect()
    }

    #[test]
    fn tasks_that_are_alike_and_follow_each_other_leave_together_as_many_as_the_switch_takes() {
        let alike: Vec<_> = (0..7).map(|at| task(at, 0, 8)).collect();
        assert_eq!(sent(5, &alike), [(0, 5), (5, 2)]);
        assert_eq!(sent(2, &alike), [(0, 2), (2, 2), (4, 2), (6, 1)]);
        assert_eq!(sent(1, &alike[..2]), [(0, 1), (1, 1)]);
    }

    #[test]
    fn what_differs_or_is_long_or_comes_behind_a_gap_goes_alone() {
        let tasks =
            [task(0, 0, 8), task(1, 1, 8), task(2, 1, 9), task(3, 1, 8), task(5, 1, 8), task(6, 1, 0)];
        assert_eq!(sent(5, &tasks), [(0, 1), (1, 1), (2, 1), (3, 1), (5, 2)]);
    }
}
