//! The outstanding tasks, found by their sequence numbers.
//!
//! The switch remembers a client's attempts in replay cells: a task's cell is its sequence number modulo
//! the number of cells. So two outstanding tasks must not share a cell, and the client skips a number whose
//! cell is taken. An eighth of the cells stays free. So each task uses up at most eight numbers, and the
//! number of a slow task stays comparable with the numbers of the many fast tasks after it.
//!
//! The tasks themselves lie packed in a slab, so that a few tasks touch little memory.

use alloc::vec;
use alloc::vec::Vec;

use sluice_wire::serving::Labels;
use sluice_wire::{Budget, Epoch, Nanos, Payload, Serial, TaskType};

use super::{RefusedWhy, Submission};

/// A time that never comes: no timer is set for it.
pub(super) const END_OF_TIME: Nanos = Nanos(u64::MAX);
/// Marks a cell that no task uses.
const FREE: u32 = u32::MAX;
/// The largest number of cells, whatever the grant allows.
const CELLS_MAX: u32 = 1 << 20;

/// Why a task's timer is set, unless for its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextTry {
    /// The newest attempt counts as lost.
    Timeout,
    /// A retry after a REJECT, paid from the budget.
    Paid,
    /// A retry after a REJECT outside the budget: this client's repeats may have taken the room.
    Free,
}

/// One outstanding task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) sequence: Serial,
    pub(super) tag: u64,
    pub(super) payload: Payload,
    pub(super) deadline: Nanos,
    /// When the first attempt left.
    pub(super) first_sent: Nanos,
    /// After this time workers may have forgotten that they ran the task, or nothing is left of its budget,
    /// so it is not sent again.
    pub(super) retry_until: Nanos,
    /// The time after which the task is not worth beginning.
    pub(super) begin_by: Nanos,
    pub(super) task_type: TaskType,
    /// The priority class, the same in each attempt.
    pub(super) class: u8,
    /// The labels that a worker must have to run the task.
    pub(super) needs: Labels,
    /// Attempts sent.
    pub(super) attempts: u16,
    /// How often the timeout has doubled. A whole word: a narrower field would stall the processor, which
    /// reads it as a word just after it was written.
    pub(super) backoffs: u32,
    /// Whether the submitter allows further attempts.
    pub(super) retry: bool,
    /// Whether any attempt before the newest one was never rejected, and so may have run.
    pub(super) unanswered: bool,
    /// Why the newest attempt was refused, if it was.
    pub(super) rejected: Option<RefusedWhy>,
    /// Attempts that may wait in the switch: they were sent in its present life and not rejected.
    pub(super) waiting: u16,
    /// Why the timer is set.
    pub(super) due: NextTry,
    /// The epoch in which the newest attempt was sent.
    pub(super) sent_in: Epoch,
    /// The epoch in which the free retry was last used.
    pub(super) freed_in: Epoch,
    /// The share to which the task is charged.
    pub(super) share: u32,
    /// Whether the task waits for room in its share before it is sent again.
    pub(super) kept_back: bool,
    /// Whether the task has run and its reply is being fetched.
    pub(super) fetching: bool,
}

impl Slot {
    /// A task before its first attempt.
    #[inline]
    pub(super) fn new(
        now: Nanos,
        sequence: Serial,
        share: u32,
        submission: &Submission,
        retry_for: Nanos,
    ) -> Self {
        let begin_by = submission.begin_by.unwrap_or(END_OF_TIME);
        let retry_until = (now + retry_for).min(submission.deadline);
        Self {
            sequence,
            tag: submission.tag,
            payload: submission.payload,
            deadline: submission.deadline,
            first_sent: now,
            retry_until: retry_until.min(begin_by.since(Budget::SHORTEST)),
            begin_by,
            task_type: submission.task_type,
            class: 0,
            needs: submission.needs,
            attempts: 0,
            backoffs: 0,
            retry: submission.retry,
            unanswered: false,
            rejected: None,
            waiting: 0,
            due: NextTry::Timeout,
            sent_in: Epoch(0),
            freed_in: Epoch(0),
            share,
            kept_back: false,
            fetching: false,
        }
    }

    /// Why the task was refused; `None` if an attempt may have run.
    pub(super) fn refused(&self) -> Option<RefusedWhy> {
        self.rejected.filter(|_| !self.unanswered)
    }

    /// What is left of the task's budget.
    #[inline]
    pub(super) fn budget(&self, now: Nanos) -> Budget {
        if self.begin_by == END_OF_TIME { Budget::NONE } else { Budget::of(self.begin_by.since(now)) }
    }

    /// Attempts that may wait in the switch, without the first of them.
    pub(super) fn repeats(&self) -> u32 {
        u32::from(self.waiting.saturating_sub(1))
    }

    /// Whether another attempt may be made at this time, as far as the retry budget allows.
    pub(super) fn may_retry(&self, at: Nanos) -> bool {
        self.retry && self.attempts < u16::MAX && at < self.retry_until
    }
}

/// The table of replay cells and the slab of tasks. Slab indices name tasks, for the timers too.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// How many cells the newest grant allows: zero or a power of two.
    wanted: u32,
    /// The slab index of the task in each cell. There are `wanted` cells, or more while outstanding tasks
    /// would collide in so few.
    cells: Vec<u32>,
    /// One bit for each cell in use, so that a search looks at 64 cells at once.
    taken: Vec<u64>,
    slab: Vec<Slot>,
    vacant: Vec<u32>,
}

impl Slots {
    /// Outstanding tasks.
    pub(super) fn len(&self) -> usize {
        self.slab.len() - self.vacant.len()
    }

    /// Takes the number of replay cells from a grant.
    pub(super) fn allow(&mut self, replay_cells: u32, outstanding_max: u32) {
        let most = outstanding_max.min(CELLS_MAX);
        let factor = replay_cells & replay_cells.wrapping_neg();
        self.wanted = if most == 0 { 0 } else { factor.min(1 << most.ilog2()) };
    }

    /// The first sequence number from `next` on whose cell is free.
    #[inline]
    pub(super) fn claim(&mut self, next: Serial) -> Option<Serial> {
        let usable = self.wanted - self.wanted / 8;
        if self.len() >= usable as usize || !self.fit() {
            return None;
        }
        let mask = self.wanted - 1;
        let residue = self.free_from((next.0 & mask) as usize)?;
        Some(next.plus((residue as u32).wrapping_sub(next.0) & mask))
    }

    /// Stores a task in the cell that [`Slots::claim`] found, and returns its slab index.
    #[expect(clippy::inline_always, reason = "a task is copied at a call that stays one")]
    #[inline(always)]
    pub(super) fn insert(&mut self, slot: Slot) -> u32 {
        let residue = self.residue(slot.sequence);
        let id = if let Some(id) = self.vacant.pop() {
            self.slab[id as usize] = slot;
            id
        } else {
            self.slab.push(slot);
            self.slab.len() as u32 - 1
        };
        self.cells[residue] = id;
        self.taken[residue / 64] |= 1 << (residue % 64);
        id
    }

    /// The slab index of a task; `None` if the task is not outstanding.
    #[inline]
    pub(super) fn find(&self, sequence: Serial) -> Option<u32> {
        if self.cells.is_empty() {
            return None;
        }
        let id = self.cells[self.residue(sequence)];
        (id != FREE && self.slab[id as usize].sequence == sequence).then_some(id)
    }

    /// The task at an index that [`Slots::find`] or [`Slots::insert`] returned.
    #[inline]
    pub(super) fn get(&mut self, id: u32) -> &mut Slot {
        &mut self.slab[id as usize]
    }

    /// Removes a task and frees its cell.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> Slot {
        let slot = self.slab[id as usize];
        let residue = self.residue(slot.sequence);
        self.cells[residue] = FREE;
        self.taken[residue / 64] &= !(1 << (residue % 64));
        self.vacant.push(id);
        slot
    }

    /// The indices of all outstanding tasks.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        self.cells.iter().copied().filter(|id| *id != FREE)
    }

    /// The oldest outstanding sequence number before `next`; `next` itself if no task is outstanding.
    pub(super) fn oldest(&self, next: Serial) -> Serial {
        let sequences = self.ids().map(|id| self.slab[id as usize].sequence);
        sequences.min_by_key(|sequence| sequence.since(next)).unwrap_or(next)
    }

    #[inline]
    fn residue(&self, sequence: Serial) -> usize {
        sequence.0 as usize & (self.cells.len() - 1)
    }

    /// Gives the table the size that the grant allows. Returns false, and changes nothing, if two
    /// outstanding tasks would share a cell.
    #[inline]
    fn fit(&mut self) -> bool {
        let cells = self.wanted as usize;
        if self.cells.len() == cells {
            return true;
        }
        let mut table = vec![FREE; cells];
        // In a table of fewer than 64 cells, the bits beyond the table count as taken.
        let mut taken = vec![if cells < 64 { u64::MAX << cells } else { 0 }; cells.div_ceil(64)];
        for id in self.ids() {
            let residue = self.slab[id as usize].sequence.0 as usize & (cells - 1);
            if table[residue] != FREE {
                return false;
            }
            table[residue] = id;
            taken[residue / 64] |= 1 << (residue % 64);
        }
        (self.cells, self.taken) = (table, taken);
        true
    }

    /// The first free cell from `start` on; the search wraps round at the table's end.
    #[inline]
    fn free_from(&self, start: usize) -> Option<usize> {
        let words = self.taken.len();
        (0..=words).find_map(|step| {
            // The number of words is a power of two: a mask is cheaper than a division.
            let word = (start / 64 + step) & (words - 1);
            let from = if step == 0 { u64::MAX << (start % 64) } else { u64::MAX };
            let free = !self.taken[word] & from;
            (free != 0).then(|| word * 64 + free.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(sequence: Serial) -> Slot {
        let submission = Submission { retry: true, ..Submission::default() };
        Slot::new(Nanos(0), sequence, 0, &submission, Nanos(0))
    }

    #[test]
    fn a_task_whose_tries_cannot_be_numbered_any_more_is_not_tried_again() {
        let tried = |attempts| Slot { attempts, retry_until: Nanos(1), ..slot(Serial(0)) };
        assert_eq!([u16::MAX - 1, u16::MAX].map(|tries| tried(tries).may_retry(Nanos(0))), [true, false]);
    }

    fn put(slots: &mut Slots, next: &mut Serial) -> Option<u32> {
        let sequence = slots.claim(*next)?;
        *next = sequence.plus(1);
        Some(slots.insert(slot(sequence)))
    }

    #[test]
    fn a_residue_is_skipped_until_its_task_is_removed_also_across_the_wrap() {
        for cells in [1, 2, 8, 64, 256] {
            let mut slots = Slots::default();
            slots.allow(cells, 1 << 16);
            let mut next = Serial(u32::MAX - 3);
            let ids: Vec<u32> = core::iter::from_fn(|| put(&mut slots, &mut next)).collect();
            assert_eq!(ids.len() as u32, cells - cells / 8);
            let stuck = *slots.get(ids[0]);
            for _ in 0..3 * cells {
                let Some(id) = slots.ids().find(|id| *id != ids[0]) else { break };
                slots.remove(id);
                assert!(put(&mut slots, &mut next).is_some());
                assert_eq!(slots.find(stuck.sequence), Some(ids[0]));
            }
            assert_eq!(slots.oldest(next), stuck.sequence);
        }
    }

    #[test]
    fn with_one_slow_task_the_sequence_runs_ahead_by_eight_a_task_at_most() {
        let mut slots = Slots::default();
        slots.allow(1 << 10, 1 << 16);
        let mut next = Serial(0);
        while put(&mut slots, &mut next).is_some() {}
        let (start, tasks) = (next, 20_000);
        for _ in 0..tasks {
            let newest = slots.find(next.plus(u32::MAX)).unwrap();
            slots.remove(newest);
            put(&mut slots, &mut next).unwrap();
        }
        assert!(next.since(start) <= 8 * tasks + (1 << 10), "{}", next.since(start));
    }

    #[test]
    fn a_smaller_table_takes_nothing_until_the_tasks_outstanding_fit() {
        let mut slots = Slots::default();
        slots.allow(8, 1 << 16);
        let mut next = Serial(0);
        let ids: Vec<u32> = (0..6).filter_map(|_| put(&mut slots, &mut next)).collect();
        slots.allow(4, 1 << 16);
        assert!(put(&mut slots, &mut next).is_none());
        for id in [ids[1], ids[2], ids[3]] {
            slots.remove(id);
        }
        assert!(put(&mut slots, &mut next).is_none(), "0 and 4 meet in one residue");
        assert_eq!(slots.find(Serial(4)), Some(ids[4]));
        slots.remove(ids[4]);
        assert!(put(&mut slots, &mut next).is_some());
        assert_eq!(slots.find(Serial(0)), Some(ids[0]));
    }

    #[test]
    fn a_larger_table_serves_at_once_and_keeps_what_is_outstanding() {
        let mut slots = Slots::default();
        slots.allow(2, 1 << 16);
        let mut next = Serial(7);
        let ids: Vec<u32> = core::iter::from_fn(|| put(&mut slots, &mut next)).collect();
        slots.allow(128, 1 << 16);
        assert_eq!(core::iter::from_fn(|| put(&mut slots, &mut next)).count(), 110);
        assert_eq!(slots.find(Serial(7)), Some(ids[0]));
    }

    #[test]
    fn odd_numbers_of_cells_are_used_as_far_as_they_are_a_power_of_two() {
        for (cells, most, usable) in [(0, 8, 0), (12, 8, 4), (1 << 31, 10, 7), (7, 8, 1), (8, 0, 0)] {
            let mut slots = Slots::default();
            slots.allow(cells, most);
            let mut next = Serial(0);
            assert_eq!(core::iter::from_fn(|| put(&mut slots, &mut next)).count(), usable);
        }
    }
}
