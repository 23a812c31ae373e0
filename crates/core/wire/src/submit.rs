//! A task's bytes, a submitted task, and several tasks in one submission.
//!
//! The tasks of one submission differ in their numbers, which are consecutive, and in their bytes, which
//! fit a queue entry. A switch takes one task a pass, the first, and recirculates the rest.

use crate::{
    Age, Attempt, Budget, ClientId, Epoch, Handle, INLINE_BYTES, Key, Nanos, TaskId, TaskType, descriptor_len,
};

/// The bytes of a task or a reply, as the state machines see them.
///
/// Up to [`INLINE_BYTES`] stand in `inline`. The bytes of a longer payload are named by `handle`, and
/// `inline` then holds the submitter's descriptor: the length and checksum of all bytes of the task or
/// reply, of which this packet may carry only the first `len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// How many bytes this packet carries.
    pub len: u16,
    /// The bytes themselves, zero-padded, if `len` is at most [`INLINE_BYTES`].
    pub inline: [u8; INLINE_BYTES],
    /// The driver's handle of a longer payload; [`Handle::NONE`] for a short one.
    pub handle: Handle,
}

impl Payload {
    /// No bytes at all.
    pub const EMPTY: Self = Self { len: 0, inline: [0; INLINE_BYTES], handle: Handle::NONE };

    /// Whether the payload is too long for a queue entry.
    pub const fn is_large(&self) -> bool {
        self.len as usize > INLINE_BYTES
    }

    /// How many bytes the whole task or reply has; the descriptor of a large one says it.
    pub const fn total(&self) -> u32 {
        if self.is_large() { descriptor_len(self.inline) } else { self.len as u32 }
    }

    /// Whether the task or reply has more bytes than this packet carries.
    pub const fn has_more(&self) -> bool {
        self.total() > self.len as u32
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// A task on its way from a client to the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submit {
    /// The epoch of the switch that the client knows.
    pub epoch: Epoch,
    pub key: Key,
    pub client: ClientId,
    pub task: TaskId,
    /// Which try this is.
    pub attempt: Attempt,
    pub task_type: TaskType,
    /// The task's class, 0 first, if the switch has classes of tasks; otherwise only carried through.
    pub priority: u8,
    /// The labels that the task needs beside those of its type, one bit each, if the switch tells kinds of
    /// workers apart; otherwise only carried through.
    pub constraints: u8,
    /// The time since the client first sent the task.
    pub age: Age,
    /// For how long the task is still worth beginning.
    pub budget: Budget,
    /// The task's bytes.
    pub payload: Payload,
}

impl Submit {
    /// The same task after a wait: older, and with less of its budget.
    #[must_use]
    pub const fn after(mut self, wait: Nanos) -> Self {
        self.age = self.age.plus(wait);
        self.budget = self.budget.after(wait);
        self
    }
}

/// The most tasks in one submission. So many fit the memory that a DISPATCH takes.
pub const JOB_TASKS_MAX: usize = 5;

/// Tasks of one client in one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskJob {
    /// The first task; the others share its fields.
    first: Submit,
    /// How many tasks are behind the first.
    behind: u8,
    lengths: [u8; JOB_TASKS_MAX - 1],
    bytes: [[u8; INLINE_BYTES]; JOB_TASKS_MAX - 1],
}

impl TaskJob {
    /// A job of one task so far; `None` if the task has more bytes than a queue entry holds.
    pub const fn of(task: Submit) -> Option<Self> {
        if task.payload.is_large() {
            return None;
        }
        let Payload { len, inline, .. } = task.payload;
        let first = Submit { payload: Payload { len, inline, handle: Handle::NONE }, ..task };
        let (lengths, bytes) = ([0; JOB_TASKS_MAX - 1], [[0; INLINE_BYTES]; JOB_TASKS_MAX - 1]);
        Some(Self { first, behind: 0, lengths, bytes })
    }

    /// Adds a task behind the last one; returns whether it was added. It is added if it differs from the
    /// first in its bytes and its number only, has few bytes, and its number is the next one.
    pub fn push(&mut self, task: &Submit) -> bool {
        let Payload { len, inline, .. } = task.payload;
        let mut alike = Submit { payload: task.payload, ..self.first };
        alike.task.sequence = self.first.task.sequence.plus(u32::from(self.behind) + 1);
        let place = usize::from(self.behind);
        if alike != *task || task.payload.is_large() || place + 1 == JOB_TASKS_MAX {
            return false;
        }
        (self.lengths[place], self.bytes[place]) = (len as u8, inline);
        self.behind += 1;
        true
    }

    /// The task that is next to enter.
    pub const fn first(&self) -> &Submit {
        &self.first
    }

    /// How many tasks there are.
    pub const fn tasks(&self) -> u8 {
        self.behind + 1
    }

    /// How many tasks are behind the first.
    pub const fn behind(&self) -> u8 {
        self.behind
    }

    /// The job without its first task; `None` if that was the last.
    pub fn rest(&self) -> Option<Self> {
        let behind = self.behind.checked_sub(1)?;
        let mut rest = Self { first: self.task(1), behind, ..*self };
        // Clears the cells of the task that has left.
        (rest.lengths[0], rest.bytes[0]) = (0, [0; INLINE_BYTES]);
        rest.lengths.rotate_left(1);
        rest.bytes.rotate_left(1);
        Some(rest)
    }

    /// The same tasks after a wait: older, and with less of their budget.
    #[must_use]
    pub const fn after(mut self, wait: Nanos) -> Self {
        self.first = self.first.after(wait);
        self
    }

    /// All tasks, each as if it had come alone.
    pub fn iter(&self) -> impl Iterator<Item = Submit> {
        (0..self.tasks()).map(|at| self.task(at))
    }

    /// The task at this place, which must be below [`Self::tasks`].
    fn task(&self, at: u8) -> Submit {
        let Some(place) = usize::from(at).checked_sub(1) else { return self.first };
        let (len, inline) = (self.lengths[place].into(), self.bytes[place]);
        let mut task = Submit { payload: Payload { len, inline, handle: Handle::NONE }, ..self.first };
        task.task.sequence = self.first.task.sequence.plus(at.into());
        task
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::{Serial, TaskType};

    fn task(sequence: u32) -> Submit {
        let inline = [sequence as u8, 0, 0, 0, 0, 0, 0, 0];
        let payload = Payload { len: (sequence % 8) as u16 + 1, inline, handle: Handle::NONE };
        let task = TaskId { sequence: Serial(sequence), ..TaskId::default() };
        Submit { task, payload, ..Submit::default() }
    }

    #[test]
    fn tasks_that_follow_each_other_are_one_job_and_come_out_of_it_one_by_one() {
        let first = u32::MAX - 2;
        let all: Vec<_> = (0..9).map(|at| task(first.wrapping_add(at))).collect();
        let mut job = TaskJob::of(all[0]).unwrap();
        let taken = all[1..].iter().filter(|task| job.push(task)).count();
        assert_eq!((taken, usize::from(job.tasks())), (JOB_TASKS_MAX - 1, JOB_TASKS_MAX));
        assert_eq!(job.iter().collect::<Vec<_>>(), all[..JOB_TASKS_MAX]);
        for task in &all[..JOB_TASKS_MAX - 1] {
            assert_eq!(job.first(), task);
            job = job.rest().unwrap();
        }
        assert_eq!((*job.first(), job.rest()), (all[JOB_TASKS_MAX - 1], None));
        assert_eq!(TaskJob::of(all[JOB_TASKS_MAX - 1]), Some(job), "nothing is left of those that went");
    }

    #[test]
    fn what_is_not_alike_or_not_next_or_long_comes_alone() {
        let mut job = TaskJob::of(task(7)).unwrap();
        let mut large = task(8);
        large.payload.len = 9;
        let others = [
            task(7),
            task(9),
            large,
            Submit { task_type: TaskType(1), ..task(8) },
            Submit { priority: 1, ..task(8) },
            Submit { constraints: 1, ..task(8) },
            Submit { budget: Budget::SPENT, ..task(8) },
        ];
        assert!(others.iter().all(|other| !job.push(other)) && job.behind() == 0);
        assert_eq!(TaskJob::of(large), None);
    }
}
