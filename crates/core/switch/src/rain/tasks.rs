//! Waiting tasks, by class: a token meets the oldest task of the first class that has any (ours; in no
//! paper).
//!
//! Each class of a slice has a ring, and the tasks in each ring are counted (module `halves`). Class 0 goes
//! first; the last class stands for all beyond it. To let no class wait for ever, every [`TURN`]th token
//! wishes for another class, each class in turn, and takes it if it has a task. With one class there is one
//! ring, the slice's queue of the paper (Rain §3.2.1), and no count.

use sluice_wire::tables::RingCounts;
use sluice_wire::{Place, SliceId};

use super::halves::Halves;
use super::rings::{RingSet, Sort};
use super::stages::Stages;
use crate::config::Config;
use crate::entry::WaitingTask;
use crate::pipeline::{Layout, Pass, Register};

/// One of so many tokens of a slice wishes for a class other than the first. Tokens that find no task
/// waiting count too: no task waits for a turn then.
pub(super) const TURN: u16 = 16;

/// The rings of waiting tasks of all slices.
#[derive(Debug)]
pub(super) struct WaitingTasks {
    /// The number of the token's turn; `None` with one class.
    turn: Option<Register<u16>>,
    last_turn: u16,
    counts: Halves,
    rings: RingSet<WaitingTask>,
}

/// The names and sizes of the rings of waiting tasks, for so many classes.
pub(super) const fn sort(config: &Config, classes: u8) -> Sort {
    let cells = config.tasks_per_slice;
    Sort { head: "task head", tail: "task tail", ring: "task ring", each: classes, cells }
}

/// The turns, with so many rows.
pub(super) fn turns(layout: &mut Layout, rows: usize) -> Register<u16> {
    Register::new(layout, "turn", Stages::BALANCE, 16, rows, 0)
}

/// The last turn before the first comes again, for so many classes.
pub(super) const fn last_turn(classes: u8) -> u16 {
    (classes as u16 - 1) * TURN - 1
}

/// The class that a token wishes for, counted from the class that goes first: zero on most turns.
#[inline(always)]
pub(super) fn wish(turn: &mut Register<u16>, pass: &mut Pass, row: usize, last: u16) -> u8 {
    let turn = turn.branch(pass, row, |turn| turn < last, |turn| turn + 1, |_| 0);
    if turn % TURN == TURN - 1 { (turn / TURN) as u8 + 1 } else { 0 }
}

impl WaitingTasks {
    pub(super) fn new(layout: &mut Layout, config: &Config, classes: u8, stages: Stages) -> Self {
        let slices = config.slices as usize;
        let sort = sort(config, classes);
        layout.queue(u32::from(config.slices) * u32::from(classes) * sort.cells);
        let turn = (classes > 1).then(|| turns(layout, slices));
        let counts = Halves::new(layout, ["class halves", "classes"], stages.counts, slices, classes);
        let rings = RingSet::new(layout, config, sort, stages.heads, &stages.table.tasks(stages.rings));
        let last_turn = if classes > 1 { last_turn(classes) } else { 0 };
        Self { turn, last_turn, counts, rings }
    }

    /// Whether there are several classes.
    #[inline]
    pub(super) const fn are_classed(&self) -> bool {
        self.rings.each() > 1
    }

    /// The class wished for by a token that is at the balance now.
    pub(super) fn wish(&mut self, pass: &mut Pass, slice: SliceId) -> u8 {
        let last = self.last_turn;
        self.turn.as_mut().map_or(0, |turn| wish(turn, pass, slice.0.into(), last))
    }

    /// The ring in which a task is going to wait, and its name among the waiting tasks of the slice. The
    /// balance has counted the task.
    #[inline(always)]
    pub(super) fn enter(&mut self, pass: &mut Pass, slice: SliceId, class: u8) -> WaitsAt {
        let ring = if self.are_classed() { self.count(pass, slice, class) } else { slice.0 as usize };
        let ticket = self.rings.join(pass, ring);
        WaitsAt { ring, ticket, name: self.rings.name(ring, ticket) }
    }

    /// Counts a waiting task in its class; returns the ring.
    #[inline(always)]
    fn count(&mut self, pass: &mut Pass, slice: SliceId, class: u8) -> usize {
        let class = class.min(self.rings.each() - 1);
        self.counts.add(pass, slice, class);
        self.rings.of(slice, class)
    }

    #[inline(always)]
    pub(super) fn write(&mut self, pass: &mut Pass, at: WaitsAt, task: WaitingTask) {
        self.rings.write(pass, at.ring, at.ticket, task);
    }

    /// Takes the oldest task of the wished class if it has one, else of the first class that has one. The
    /// balance has told that there is one.
    #[inline(always)]
    pub(super) fn take<const CLASSED: bool>(
        &mut self,
        pass: &mut Pass,
        slice: SliceId,
        wish: u8,
    ) -> (WaitingTask, Place) {
        let ring = if CLASSED { self.find(pass, slice, wish) } else { slice.0 as usize };
        let (task, ticket) = self.rings.pop(pass, ring);
        (task, task.place(slice, if CLASSED { self.rings.name(ring, ticket) } else { ticket }))
    }

    #[inline(always)]
    fn find(&mut self, pass: &mut Pass, slice: SliceId, wish: u8) -> usize {
        let found = self.counts.take(pass, slice, wish);
        self.rings.of(slice, found.ring)
    }

    /// How many tasks ever entered each ring of a slice, and how many left it.
    pub(super) fn counts(&self, slice: usize) -> (RingCounts, RingCounts) {
        self.rings.counts(slice)
    }

    /// The tasks of a slice, class by class, the oldest first.
    pub(super) fn waiting(&self, slice: SliceId) -> impl Iterator<Item = WaitingTask> {
        self.rings.listed(slice)
    }
}

/// Where a task waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitsAt {
    ring: usize,
    ticket: u32,
    /// The task's name among its slice's tasks, from which its slot in the servers' rings follows.
    pub(super) name: u32,
}
