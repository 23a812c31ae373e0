//! The rendezvous of the XDP program (`targets/ebpf/ring.h`, `match.h`, and the taking part of `sweep.h`)
//! in Rust; and a variant with ranks, which no program in the kernel has yet ([`RingPlan::Ranked`]).
//!
//! It exists for checkers. [`Passes`] uses a [`Memory`] in which each call is one access to memory shared
//! by CPUs. So a checker can insert any other access between two of them, and loom can reorder them. The C
//! code is the original; names and the order of accesses are taken from it, and a change of one requires
//! the same change of the other.
//!
//! Left out: decisions that depend on a pass's packet alone; limits (a plain comparison of two counters: a
//! refused arrival has changed nothing); all fields of a task but two, which stand for the others; waits
//! and occupancy.
#![no_std]
#![forbid(unsafe_code)]

mod line;
mod meeting;
mod passes;
mod ring;

pub use line::{LineStep, LineWord, Side};
pub use passes::{Passes, ROUNDS_MAX, RingPlan, SweepPass};
pub use ring::{CellState, Ring};

/// The memory of one slice that CPUs share. Each call except [`Memory::note`] is one access.
pub trait Memory {
    /// Why an access did not happen: a checker ends a pass with it.
    type Stop;

    /// Reads a counter with acquire order.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn read(&self, of: Counter) -> Result<u32, Self::Stop>;

    /// Adds one to a counter, and returns its old value.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn take(&self, of: Counter) -> Result<u32, Self::Stop>;

    /// Adds one to a counter if it equals `next`. Returns whether the counter equalled `next`.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn take_if(&self, of: Counter, next: u32) -> Result<bool, Self::Stop>;

    /// Reads the counts of waiting entries with relaxed order: nothing may follow from them until
    /// [`Memory::change_line`] succeeds.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn line(&self) -> Result<LineWord, Self::Stop>;

    /// Changes the counts of waiting entries if they equal `was`, and returns the old counts. The order is
    /// acquire on success, relaxed otherwise.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn change_line(&self, was: LineWord, to: LineWord) -> Result<LineWord, Self::Stop>;

    /// Reads a cell's word with acquire order. (The C program uses an address dependency instead.)
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn word(&self, cell: usize) -> Result<u64, Self::Stop>;

    /// Stores a word in a cell, and returns the old word.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn exchange(&self, cell: usize, word: u64) -> Result<u64, Self::Stop>;

    /// Sets a cell's word to zero with relaxed order.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn empty(&self, cell: usize) -> Result<(), Self::Stop>;

    /// Writes one of the two parts of a cell's task with relaxed order.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn write(&self, cell: usize, part: usize, value: u32) -> Result<(), Self::Stop>;

    /// Reads one of the two parts of a cell's task with relaxed order.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    fn data(&self, cell: usize, part: usize) -> Result<u32, Self::Stop>;

    /// Reports what the pass has just done. Not an access.
    fn note(&self, note: Note);
}

/// A counter that CPUs share. Parts, like cells, are numbered across all rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Tokens that entered a ring.
    Tokens(usize),
    /// Tasks that entered a ring.
    Tasks(usize),
    /// Released cells of a part of a ring.
    Released(usize),
}

/// A number in a ring: the place where a token and a task meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    /// The index of the slice's ring.
    pub ring: usize,
    /// The number of the token and of the task.
    pub number: u32,
}

/// A granted token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pub worker: u16,
    /// The generation of the worker's registration.
    pub generation: u32,
}

/// A task, as two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task(pub [u32; 2]);

/// A report about a token or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Note {
    /// Nothing that the pass has read so far matters any more: it has checked the ring, or starts again.
    Anew,
    /// The token waits for the task of its number.
    TokenParks(Spot, Token),
    /// The task waits for the token of its number.
    TaskParks(Spot, Task),
    /// A token and a task met: the task is sent to the token's worker.
    Meet(Spot, Token, Task),
    /// A parked token was taken out of the ring.
    TokenTaken(Spot, Token),
    /// A waiting task was taken out of the ring.
    TaskTaken(Spot, Task),
    /// A token is no longer in the ring: its worker is told, or is gone.
    TokenLeaves(Token),
    /// A task is no longer in the ring: its client is told.
    TaskLeaves(Task),
    /// The cell's contents do not match its number: a bug.
    Broken(Spot),
}
