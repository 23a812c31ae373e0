//! Waiting tasks, by class: a token meets one of the first class that has any, and of those the oldest (ours;
//! in no paper).
//!
//! Each class of a slice has a ring, and how many tasks lie in each is counted (module `halves`). Class 0
//! goes first; the last class stands for all beyond it. So that none waits for ever, every [`TURN`]th token
//! wishes for another class, one after the other, and takes it if it has a task. With one class there is one
//! ring, the slice's queue of the paper (Rain §3.2.1), and nothing to count.

use sluice_wire::tables::RingCounts;
use sluice_wire::{Place, SliceId};

use super::halves::Halves;
use super::stages::{Stages, ring_counts};
use crate::config::Config;
use crate::entry::{WaitingTask, cell};
use crate::pipeline::{Column, Layout, Pass, Register, Ring};

/// Of so many tokens that come to a slice one wishes for a class that is not the first. Tokens that find
/// nobody waiting count too: then nobody waits for a turn.
pub(super) const TURN: u16 = 16;

/// The rings of waiting tasks of all slices.
#[derive(Debug)]
pub(super) struct WaitingTasks {
    /// Whose turn it is; there if there are classes.
    turn: Option<Register<u16>>,
    counts: Halves,
    head: Register<u32>,
    tail: Register<u32>,
    ring: Ring<WaitingTask>,
    classes: u8,
    /// Cells of each ring.
    cells: u32,
}

impl WaitingTasks {
    pub(super) fn new(
        layout: &mut Layout,
        config: &Config,
        columns: &[Column],
        classes: u8,
        stages: Stages,
    ) -> Self {
        let (slices, cells) = (config.slices as usize, config.tasks_per_slice);
        let rings = slices * classes as usize;
        layout.queue((rings * cells as usize) as u32);
        let turn = (classes > 1).then(|| Register::new(layout, "turn", Stages::BALANCE, 16, slices, 0));
        let counts = Halves::new(layout, ["class halves", "classes"], stages.counts, slices, classes);
        let pointer = |layout: &mut Layout, name| {
            Register::new(layout, name, stages.heads, 32, rings, config.counters_start.0)
        };
        let (head, tail) = (pointer(layout, "task head"), pointer(layout, "task tail"));
        let ring = Ring::new(layout, "task ring", columns, rings * cells as usize, WaitingTask::default());
        Self { turn, counts, head, tail, ring, classes, cells }
    }

    /// Whether there are several classes.
    #[inline]
    pub(super) const fn are_classed(&self) -> bool {
        self.classes > 1
    }

    /// The class that a token wishes for, which is at the balance now.
    pub(super) fn wish(&mut self, pass: &mut Pass, slice: SliceId) -> u8 {
        let Some(turn) = self.turn.as_mut() else { return 0 };
        let others = u16::from(self.classes - 1);
        let last = others * TURN - 1;
        let turn = turn.branch(pass, slice.0 as usize, |turn| turn < last, |turn| turn + 1, |_| 0);
        if turn % TURN == TURN - 1 { (turn / TURN) as u8 + 1 } else { 0 }
    }

    /// The cell of a task that is going to wait, and its name among those that wait in the slice; the balance
    /// has counted it.
    #[inline(always)]
    pub(super) fn enter(&mut self, pass: &mut Pass, slice: SliceId, class: u8) -> WaitsAt {
        let ring = if self.classes == 1 { slice.0 as usize } else { self.count(pass, slice, class) };
        let ticket = self.tail.update(pass, ring, |tail| tail.wrapping_add(1));
        self.at(ring, ticket)
    }

    /// Counts a task that waits in its class; says in which ring.
    #[inline(never)]
    fn count(&mut self, pass: &mut Pass, slice: SliceId, class: u8) -> usize {
        let class = class.min(self.classes - 1);
        self.counts.add(pass, slice, class);
        self.ring_of(slice, class)
    }

    #[inline(always)]
    pub(super) fn write(&mut self, pass: &mut Pass, at: WaitsAt, task: WaitingTask) {
        self.ring.write(pass, at.cell, task);
    }

    /// Takes the oldest task of the class that is wished for if it has one, else of the first that has. The
    /// balance has told that there is one.
    #[inline(always)]
    pub(super) fn take<const CLASSED: bool>(
        &mut self,
        pass: &mut Pass,
        slice: SliceId,
        wish: u8,
    ) -> (WaitingTask, Place) {
        let ring = if CLASSED { self.find(pass, slice, wish) } else { slice.0 as usize };
        let ticket = self.head.update(pass, ring, |head| head.wrapping_add(1));
        let at = if CLASSED { self.at(ring, ticket) } else { self.alone(ring, ticket) };
        let task = self.ring.read(pass, at.cell);
        (task, task.place(slice, at.name))
    }

    fn find(&mut self, pass: &mut Pass, slice: SliceId, wish: u8) -> usize {
        let found = self.counts.take(pass, slice, wish);
        self.ring_of(slice, found.ring)
    }

    /// How many tasks ever entered each ring of a slice, and how many left it.
    pub(super) fn counts(&self, slice: usize) -> (RingCounts, RingCounts) {
        let of = |pointer| ring_counts(pointer, slice, self.classes);
        (of(&self.tail), of(&self.head))
    }

    /// The tasks of a slice, class by class, the oldest first.
    pub(super) fn waiting(&self, slice: SliceId) -> impl Iterator<Item = WaitingTask> {
        let rings = (0..self.classes).map(move |class| self.ring_of(slice, class));
        rings.flat_map(move |ring| {
            let (head, tail) = (self.head.peek(ring), self.tail.peek(ring));
            let lie = tail.wrapping_sub(head).min(self.cells);
            let tickets = (0..lie).map(move |step| head.wrapping_add(step));
            tickets.map(move |ticket| self.ring.peek(cell(ring, ticket, self.cells)))
        })
    }

    /// All rings of a slice lie behind each other, and their number is a power of two.
    #[inline]
    const fn at(&self, ring: usize, ticket: u32) -> WaitsAt {
        let class = ring as u32 & (self.classes - 1) as u32;
        WaitsAt {
            cell: cell(ring, ticket, self.cells),
            name: ticket << self.classes.trailing_zeros() | class,
        }
    }

    /// The same in a slice's only ring.
    #[inline]
    const fn alone(&self, ring: usize, ticket: u32) -> WaitsAt {
        WaitsAt { cell: cell(ring, ticket, self.cells), name: ticket }
    }

    const fn ring_of(&self, slice: SliceId, class: u8) -> usize {
        slice.0 as usize * self.classes as usize + class as usize
    }
}

/// Where a task waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitsAt {
    cell: usize,
    /// What names it among its slice's tasks, and so its slot in the servers' rings: classes take turns, so
    /// that no two tasks have one slot until so many have come as there are slots for their class.
    pub(super) name: u32,
}
