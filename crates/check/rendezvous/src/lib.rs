//! The rendezvous of the XDP program (`targets/ebpf/ring.h`, `match.h`, and what `sweep.h` takes), in Rust
//! beside it; and one that knows ranks, which no program in the kernel has yet ([`RingPlan::Ranked`]).
//!
//! It is there for checkers: [`Passes`] is written over a [`Memory`] in which each call is one access to what
//! CPUs share, so that a checker can put any other access between two of them, and loom can reorder them. The
//! C is the original; names and order of accesses are its own, and whoever changes one changes the other.
//!
//! Left out: what a pass decides from its packet alone; limits (a plain comparison of the two counters: who
//! is turned away has changed nothing); a task's fields but two, which stand for all; waits and occupancy.
#![no_std]
#![forbid(unsafe_code)]

mod line;
mod meeting;
mod passes;
mod ring;

pub use line::{LineStep, LineWord, Side};
pub use passes::{Passes, ROUNDS_MAX, RingPlan, SweepPass};
pub use ring::{CellState, Ring};

/// What CPUs share of one slice. Each call but [`Memory::note`] is one access.
pub trait Memory {
    /// Why an access did not happen: a checker ends a pass there.
    type Stop;

    /// A count, with all that came before it there.
    ///
    /// # Errors
    /// As the memory says.
    fn read(&self, of: Counter) -> Result<u32, Self::Stop>;

    /// Adds one to a count, and says what it was.
    ///
    /// # Errors
    /// As the memory says.
    fn take(&self, of: Counter) -> Result<u32, Self::Stop>;

    /// Adds one to a count if it is this, and says whether it was.
    ///
    /// # Errors
    /// As the memory says.
    fn take_if(&self, of: Counter, next: u32) -> Result<bool, Self::Stop>;

    /// Who waits, in no order: nothing follows from it until the line is changed.
    ///
    /// # Errors
    /// As the memory says.
    fn line(&self) -> Result<LineWord, Self::Stop>;

    /// Changes who waits if that is as told, and says what it was: with all that came before it there if it
    /// was, else in no order.
    ///
    /// # Errors
    /// As the memory says.
    fn change_line(&self, was: LineWord, to: LineWord) -> Result<LineWord, Self::Stop>;

    /// A cell's word, with all that came before it there. (The program has an address depend on it instead.)
    ///
    /// # Errors
    /// As the memory says.
    fn word(&self, cell: usize) -> Result<u64, Self::Stop>;

    /// Leaves a word in a cell, and says what was there.
    ///
    /// # Errors
    /// As the memory says.
    fn exchange(&self, cell: usize, word: u64) -> Result<u64, Self::Stop>;

    /// Makes a cell's word zero, in no order.
    ///
    /// # Errors
    /// As the memory says.
    fn empty(&self, cell: usize) -> Result<(), Self::Stop>;

    /// Writes one of the two parts of a cell's task, in no order.
    ///
    /// # Errors
    /// As the memory says.
    fn write(&self, cell: usize, part: usize, value: u32) -> Result<(), Self::Stop>;

    /// Reads one of them, in no order.
    ///
    /// # Errors
    /// As the memory says.
    fn data(&self, cell: usize, part: usize) -> Result<u32, Self::Stop>;

    /// Hears what has just been done. No access.
    fn note(&self, note: Note);
}

/// A count that CPUs share. Parts are numbered through all rings, as cells are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Tokens that came to a ring.
    Tokens(usize),
    /// Tasks that came to a ring.
    Tasks(usize),
    /// Cells of a part that were used up.
    Released(usize),
}

/// A number in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    /// Which of the slice's rings.
    pub ring: usize,
    /// Of the token and the task that meet there.
    pub number: u32,
}

/// A granted token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pub worker: u16,
    /// In which registration of it.
    pub generation: u32,
}

/// A task, in two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task(pub [u32; 2]);

/// What has become of a token or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Note {
    /// Nothing that the pass has read so far matters for what comes: it has looked at the ring, or begins
    /// again.
    Anew,
    /// It waits for the task of its number.
    TokenParks(Spot, Token),
    /// It waits for the token of its number.
    TaskParks(Spot, Task),
    /// They met under their number: the task is sent to the token's worker.
    Meet(Spot, Token, Task),
    /// A parked token was taken out.
    TokenTaken(Spot, Token),
    /// A waiting task was taken out.
    TaskTaken(Spot, Task),
    /// A token is not in the ring any more: its worker is told, or has gone.
    TokenLeaves(Token),
    /// A task is not in the ring any more: its client is told.
    TaskLeaves(Task),
    /// The cell of this number was not as its number says: a bug.
    Broken(Spot),
}
