//! The affinity table: it holds where a task's last try was sent, so that the next try goes there too
//! (Horus A.4).
//!
//! The paper's connection table keeps the packets of one task on one node. Here only a task's first packet
//! asks a switch; the others go from host to host (NEED and PART). What repeats is the task's tries. A
//! worker that ran one try answers the next with the reply that it gave, if the next try comes to the same
//! worker. So this table holds the node of each try, and later tries look it up.
//!
//! An entry holds the task's mark, its node, and the time at which the try was sent. The entry counts for a
//! configured time, so that a node that died does not keep a task for longer, and only while the node is in
//! the pool. A newer task overwrites the cell of an older one. A try that is refused removes its own entry.
//!
//! A pass knows the node only after it has chosen, behind the loads. So the table stands behind them, in
//! one stage, and a later try takes two passes: the first looks, the second sends.

use sluice_units::span;
use sluice_wire::{Attempt, Nanos, TaskId};

use crate::pipeline::{Layout, Pass, Register};

/// The first try of a task: no try stands before it, so no lookup is needed.
pub(super) const FIRST_TRY: Attempt = Attempt(1);
/// Entries. A task takes one when it is sent, and a switch sends a task every few microseconds at most.
const CELLS: usize = 1 << 16;
/// The low bits of the time that an entry leaves out: it counts in steps of 2¹⁶ ns, 65.5 µs.
const STAMP_SHIFT: u32 = 16;
/// The largest stamp: its 24 bits wrap after 18 minutes.
const STAMP_MAX: u64 = (1 << 24) - 1;
/// A cell without an entry; no mark is zero.
const EMPTY: u64 = 0;

/// The longest time that an entry may count: far less than the 18 minutes after which its stamp wraps.
pub(super) const KEEPS_MAX: Nanos = Nanos::from_millis(500_000);

/// The last node of every task.
#[derive(Debug)]
pub(super) struct AffinityTable {
    keeps: Nanos,
    cells: Register<u64>,
}

impl AffinityTable {
    /// An empty table in this stage, which must stand behind the choice of the node. An entry counts for
    /// `keeps`.
    pub(super) fn new(layout: &mut Layout, stage: u8, keeps: Nanos) -> Self {
        Self { keeps, cells: Register::new(layout, "affinity", stage, 64, CELLS, EMPTY) }
    }

    /// Notes that a try of the task is sent to this node.
    pub(super) fn note(&mut self, pass: &mut Pass, now: Nanos, task: TaskId, node: u16) {
        let (cell, mark) = place(task);
        let entry = stamp(now) << 40 | u64::from(node) << 24 | mark;
        self.cells.write(pass, cell, entry);
    }

    /// The node to which the task's last try was sent, unless the entry is too old.
    pub(super) fn find(&mut self, pass: &mut Pass, now: Nanos, task: TaskId) -> Option<u16> {
        let (cell, mark) = place(task);
        let entry = self.cells.read(pass, cell);
        let age = stamp(now).wrapping_sub(entry >> 40) & STAMP_MAX;
        (is_of(entry, mark) && age <= self.keeps.0.div_ceil(1 << STAMP_SHIFT)).then_some((entry >> 24) as u16)
    }

    /// Removes the task's entry, because its node refused the task.
    pub(super) fn forget(&mut self, pass: &mut Pass, task: TaskId) {
        let (cell, mark) = place(task);
        self.cells.branch(pass, cell, |entry| is_of(entry, mark), |_| EMPTY, |entry| entry);
    }
}

/// Reads how long an entry counts: at least one step of its stamp, 65.5 µs.
pub(super) fn read_keeps(text: &str) -> Option<Nanos> {
    span(text).ok().filter(|keeps| (Nanos(1 << STAMP_SHIFT)..=KEEPS_MAX).contains(keeps))
}

const MARK_MAX: u64 = (1 << 24) - 1;

/// The cell of a task, and the mark by which the cell knows the task.
const fn place(task: TaskId) -> (usize, u64) {
    let word = (task.incarnation.0 ^ (task.sequence.0 as u64) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 31) ^ task.sequence.0 as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
    ((word >> 40) as usize % CELLS, word >> 8 & MARK_MAX | 1)
}

const fn is_of(entry: u64, mark: u64) -> bool {
    entry & MARK_MAX == mark
}

const fn stamp(now: Nanos) -> u64 {
    now.0 >> STAMP_SHIFT & STAMP_MAX
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use sluice_wire::{Incarnation, Serial};

    use super::*;

    const KEEPS: Nanos = Nanos::from_millis(100);

    fn table() -> AffinityTable {
        AffinityTable::new(&mut Layout::new("test"), 8, KEEPS)
    }

    const fn task(sequence: u32) -> TaskId {
        TaskId { incarnation: Incarnation(0x0123_4567_89ab_cdef), sequence: Serial(sequence) }
    }

    fn note(table: &mut AffinityTable, now: Nanos, of: TaskId, node: u16) {
        table.note(&mut Pass::begin("test"), now, of, node);
    }

    fn find(table: &mut AffinityTable, now: Nanos, of: TaskId) -> Option<u16> {
        table.find(&mut Pass::begin("test"), now, of)
    }

    #[test]
    fn a_task_is_found_where_it_was_sent_last_until_that_is_too_long_ago() {
        let table = &mut table();
        assert_eq!(find(table, Nanos(0), task(7)), None, "nothing was sent");
        let sent = Nanos::from_millis(3);
        note(table, sent, task(7), 4);
        note(table, sent, task(7), u16::MAX);
        assert_eq!(find(table, sent + KEEPS, task(7)), Some(u16::MAX));
        assert_eq!(find(table, sent + KEEPS + Nanos(2 << STAMP_SHIFT), task(7)), None, "it is too old");
        assert_eq!(find(table, sent, task(8)), None, "another task");
    }

    #[test]
    fn a_stamp_that_wraps_between_two_tries_is_as_old_as_it_is() {
        let table = &mut table();
        let last = Nanos(STAMP_MAX << STAMP_SHIFT);
        note(table, last, task(1), 3);
        assert_eq!(find(table, last + Nanos::from_millis(50), task(1)), Some(3));
        assert_eq!(find(table, last + Nanos::from_millis(101), task(1)), None);
    }

    #[test]
    fn who_is_refused_takes_its_own_entry_out_and_no_others() {
        let table = &mut table();
        note(table, Nanos(0), task(1), 3);
        let other = TaskId { incarnation: Incarnation(1), ..task(1) };
        table.forget(&mut Pass::begin("test"), other);
        assert_eq!(find(table, Nanos(0), task(1)), Some(3));
        table.forget(&mut Pass::begin("test"), task(1));
        assert_eq!(find(table, Nanos(0), task(1)), None);
    }

    /// Two tasks may share a cell: the newer one has the entry, and a refusal of the older one leaves it in
    /// place.
    #[test]
    fn who_is_refused_takes_out_no_entry_of_another_task_in_its_cell() {
        let (cell, mark) = place(task(1));
        let shares = |other: &TaskId| place(*other).0 == cell && place(*other).1 != mark;
        let other = (2..1_000_000).map(task).find(shares).expect("some task shares its cell");
        let table = &mut table();
        note(table, Nanos(0), task(1), 3);
        table.forget(&mut Pass::begin("test"), other);
        assert_eq!(find(table, Nanos(0), task(1)), Some(3));
        assert_eq!(find(table, Nanos(0), other), None, "the entry is another task's");
        note(table, Nanos(0), other, 4);
        assert_eq!([task(1), other].map(|of| find(table, Nanos(0), of)), [None, Some(4)]);
    }

    /// The tasks that a client sends in 50 ms at a million a second.
    #[test]
    fn tasks_that_come_close_behind_each_other_hardly_share_a_cell() {
        let cells: BTreeSet<usize> = (0..50_000).map(|sequence| place(task(sequence)).0).collect();
        assert!(cells.len() > 34_000, "{} of 50,000, and any hash has 35,000", cells.len());
    }

    #[test]
    fn a_time_that_an_entry_cannot_tell_is_refused() {
        for (text, read) in [
            ("100ms", Some(KEEPS)),
            ("500s", Some(KEEPS_MAX)),
            ("501s", None),
            ("1us", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(read_keeps(text), read, "{text}");
        }
    }
}
