//! How a token and a task meet in a ring (`match.h`): in the cell of their number; the second one sends the
//! DISPATCH.

use crate::line::Side;
use crate::ring::{CellState, Ring};
use crate::{Counter, Memory, Note, Spot, Task, Token};

/// One of a slice's rings.
pub(crate) struct Meeting<'a, M> {
    pub(crate) ring: Ring,
    pub(crate) index: usize,
    pub(crate) memory: &'a M,
}

pub(crate) enum Entered<T> {
    /// The entry came first, and waits in the ring.
    Parked,
    /// The entry came second, and takes the other one out.
    Met(T),
    /// A SWEEP has taken the other entry of this number.
    Void,
}

impl<M: Memory> Meeting<'_, M> {
    /// Whether the next numbers of a kind could reach cells that the previous lap still uses.
    pub(crate) fn is_busy(&self, of: Counter) -> Result<bool, M::Stop> {
        let (part, wanted) = self.ring.wanted(self.memory.read(of)?);
        let released = self.memory.read(Counter::Released(self.part(part)))?;
        let busy = self.ring.is_in_use(released, wanted);
        if !busy {
            self.memory.note(Note::Anew);
        }
        Ok(busy)
    }

    pub(crate) fn token_try(&self, token: Token) -> Result<Entered<()>, M::Stop> {
        let number = self.memory.take(Counter::Tokens(self.index))?;
        let cell = self.cell(number);
        let mut found = self.memory.word(cell)?;
        if found == 0 {
            found = self.memory.exchange(cell, self.ring.word(number, CellState::Token, token))?;
        }
        if found == 0 {
            self.memory.note(Note::TokenParks(self.spot(number), token));
            return Ok(Entered::Parked);
        }
        if self.found(number, found, CellState::Task) != CellState::Task {
            self.release(number)?;
            return Ok(Entered::Void);
        }
        let task = self.read(cell)?;
        self.release(number)?;
        self.memory.note(Note::Meet(self.spot(number), token, task));
        Ok(Entered::Met(()))
    }

    pub(crate) fn task_try(&self, task: Task) -> Result<Entered<(Spot, Token)>, M::Stop> {
        let number = self.memory.take(Counter::Tasks(self.index))?;
        let cell = self.cell(number);
        let mut found = self.memory.word(cell)?;
        if found == 0 {
            for (part, value) in task.0.into_iter().enumerate() {
                self.memory.write(cell, part, value)?;
            }
            found = self.memory.exchange(cell, self.ring.word(number, CellState::Task, Ring::token(0)))?;
        }
        if found == 0 {
            self.memory.note(Note::TaskParks(self.spot(number), task));
            return Ok(Entered::Parked);
        }
        // A token is entirely in the word: nothing else has to be read.
        self.release(number)?;
        if self.found(number, found, CellState::Token) != CellState::Token {
            return Ok(Entered::Void);
        }
        Ok(Entered::Met((self.spot(number), Ring::token(found))))
    }

    /// The contents of that number's cell; `None` if the other entry has not come yet, and will find the
    /// cell void.
    pub(crate) fn pop(&self, number: u32, other: CellState) -> Result<Option<(u64, Task)>, M::Stop> {
        let cell = self.cell(number);
        let found = self.memory.exchange(cell, self.ring.word(number, CellState::Void, Ring::token(0)))?;
        if found == 0 {
            return Ok(None);
        }
        let is_other = self.found(number, found, other) == other;
        let task = if is_other && other == CellState::Task { self.read(cell)? } else { Task([0; 2]) };
        self.release(number)?;
        Ok(is_other.then_some((found, task)))
    }

    /// The counter of a kind's numbers.
    pub(crate) const fn counter(&self, side: Side) -> Counter {
        match side {
            Side::Tokens => Counter::Tokens(self.index),
            Side::Tasks => Counter::Tasks(self.index),
        }
    }

    pub(crate) const fn spot(&self, number: u32) -> Spot {
        Spot { ring: self.index, number }
    }

    /// The state that the other entry left; void if the word cannot be the other entry's.
    fn found(&self, number: u32, word: u64, other: CellState) -> CellState {
        match self.ring.state(number, word) {
            Some(state) if state == other || state == CellState::Void => state,
            _ => {
                self.memory.note(Note::Broken(self.spot(number)));
                CellState::Void
            }
        }
    }

    fn read(&self, cell: usize) -> Result<Task, M::Stop> {
        Ok(Task([self.memory.data(cell, 0)?, self.memory.data(cell, 1)?]))
    }

    /// Releases a cell for the next lap, after all reads of it.
    fn release(&self, number: u32) -> Result<(), M::Stop> {
        self.memory.empty(self.cell(number))?;
        self.memory.take(Counter::Released(self.part(self.ring.part(number))))?;
        Ok(())
    }

    /// The index of a number's cell among those of all rings.
    const fn cell(&self, number: u32) -> usize {
        self.index * self.ring.cells() + self.ring.cell(number)
    }

    /// The index of this ring's part among those of all rings.
    const fn part(&self, part: usize) -> usize {
        self.index * self.ring.parts() + part
    }
}
