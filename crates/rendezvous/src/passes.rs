//! How a token and a task meet (`match.h`, the rounds of `front.h`), and what a SWEEP takes (`sweep.h`).

use crate::ring::{CellState, Ring};
use crate::{Counter, Memory, Note, Task, Token};

/// How often a token or a task goes on to another number, as in the program.
pub const ROUNDS_MAX: u32 = 16;

/// The passes over one slice.
#[derive(Debug)]
pub struct Passes<'a, M> {
    /// The slice's ring.
    pub ring: Ring,
    /// What CPUs share of it.
    pub memory: &'a M,
    /// Whether a token is of its worker's present registration.
    pub is_live: fn(Token) -> bool,
}

/// A SWEEP that takes tokens out, and parks those again that are live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Broom {
    /// How many it may still visit.
    pub left: u32,
    /// How often it may still look around.
    pub turns: u32,
    /// What it has in hand.
    pub carried: Option<Token>,
}

enum Entered<T> {
    /// It came first, and waits.
    Parked,
    /// It came second.
    Met(T),
    /// A SWEEP has taken its number's other half.
    Void,
}

enum Takes {
    Nothing,
    One(u32),
    /// Another CPU took it.
    Late,
}

impl<M: Memory> Passes<'_, M> {
    /// A granted token comes.
    ///
    /// # Errors
    /// As the memory says.
    pub fn token(&self, token: Token) -> Result<(), M::Stop> {
        for _ in 0..=ROUNDS_MAX {
            if self.is_busy(Counter::Tokens)? {
                break;
            }
            match self.token_try(token)? {
                Entered::Parked | Entered::Met(()) => return Ok(()),
                Entered::Void => {}
            }
        }
        self.memory.note(Note::TokenLeaves(token));
        Ok(())
    }

    /// A task comes.
    ///
    /// # Errors
    /// As the memory says.
    pub fn task(&self, task: Task) -> Result<(), M::Stop> {
        for _ in 0..=ROUNDS_MAX {
            if self.is_busy(Counter::Tasks)? {
                break;
            }
            match self.task_try(task)? {
                Entered::Parked => return Ok(()),
                Entered::Met((number, token)) if (self.is_live)(token) => {
                    self.memory.note(Note::Meet(number, token, task));
                    return Ok(());
                }
                Entered::Met((number, token)) => self.drop_token(number, token),
                Entered::Void => {}
            }
        }
        self.memory.note(Note::TaskLeaves(task));
        Ok(())
    }

    /// One turn of a broom. Says whether it has come to its end.
    ///
    /// # Errors
    /// As the memory says.
    pub fn sweep(&self, broom: &mut Broom) -> Result<bool, M::Stop> {
        if broom.turns == 0 {
            // The token is spent, and its worker told.
            broom.carried.into_iter().for_each(|token| self.memory.note(Note::TokenLeaves(token)));
            return Ok(true);
        }
        broom.turns -= 1;
        if let Some(token) = broom.carried {
            return self.parks(broom, token);
        }
        if broom.left == 0 {
            return Ok(true);
        }
        match self.takes(Counter::Tasks, Counter::Tokens)? {
            Takes::Nothing => return Ok(true),
            Takes::Late => {}
            Takes::One(number) => {
                broom.left -= 1;
                broom.carried = self.take_token(number)?;
            }
        }
        Ok(false)
    }

    /// A SWEEP takes out the oldest task of a slice that has no workers.
    ///
    /// # Errors
    /// As the memory says.
    pub fn sweep_task(&self, turns_max: u32) -> Result<(), M::Stop> {
        for _ in 0..turns_max {
            self.memory.note(Note::Anew);
            match self.takes(Counter::Tokens, Counter::Tasks)? {
                Takes::Nothing => return Ok(()),
                Takes::Late => {}
                Takes::One(number) => {
                    let Some((_, task)) = self.pop(number, CellState::Task)? else { continue };
                    self.memory.note(Note::TaskTaken(number, task));
                    self.memory.note(Note::TaskLeaves(task));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The live token in hand parks again, or meets a task that came meanwhile.
    fn parks(&self, broom: &mut Broom, token: Token) -> Result<bool, M::Stop> {
        // A busy ring frees itself: the CPU that holds a cell gets on.
        if self.is_busy(Counter::Tokens)? {
            return Ok(false);
        }
        match self.token_try(token)? {
            Entered::Parked => broom.carried = None,
            Entered::Met(()) => return Ok(true),
            Entered::Void => {}
        }
        Ok(false)
    }

    /// Whether the next numbers of a kind may meet cells of the lap before.
    fn is_busy(&self, of: Counter) -> Result<bool, M::Stop> {
        let (part, wanted) = self.ring.wanted(self.memory.read(of)?);
        let busy = self.ring.is_in_use(self.memory.read(Counter::Released(part))?, wanted);
        if !busy {
            self.memory.note(Note::Anew);
        }
        Ok(busy)
    }

    fn token_try(&self, token: Token) -> Result<Entered<()>, M::Stop> {
        let number = self.memory.take(Counter::Tokens)?;
        let cell = self.ring.cell(number);
        let mut found = self.memory.word(cell)?;
        if found == 0 {
            found = self.memory.exchange(cell, self.ring.word(number, CellState::Token, token))?;
        }
        if found == 0 {
            self.memory.note(Note::TokenParks(number, token));
            return Ok(Entered::Parked);
        }
        if self.found(number, found, CellState::Task) != CellState::Task {
            self.release(number)?;
            return Ok(Entered::Void);
        }
        let task = self.read(cell)?;
        self.release(number)?;
        self.memory.note(Note::Meet(number, token, task));
        Ok(Entered::Met(()))
    }

    fn task_try(&self, task: Task) -> Result<Entered<(u32, Token)>, M::Stop> {
        let number = self.memory.take(Counter::Tasks)?;
        let cell = self.ring.cell(number);
        let mut found = self.memory.word(cell)?;
        if found == 0 {
            for (part, value) in task.0.into_iter().enumerate() {
                self.memory.write(cell, part, value)?;
            }
            found = self.memory.exchange(cell, self.ring.word(number, CellState::Task, Ring::token(0)))?;
        }
        if found == 0 {
            self.memory.note(Note::TaskParks(number, task));
            return Ok(Entered::Parked);
        }
        // A token is its word: nothing more is read.
        self.release(number)?;
        if self.found(number, found, CellState::Token) != CellState::Token {
            return Ok(Entered::Void);
        }
        Ok(Entered::Met((number, Ring::token(found))))
    }

    /// The next number of one kind, if the other has gone ahead. No look at the ring is needed: the other had
    /// one.
    fn takes(&self, own: Counter, other: Counter) -> Result<Takes, M::Stop> {
        let number = self.memory.read(own)?;
        if self.memory.read(other)?.wrapping_sub(number) as i32 <= 0 {
            return Ok(Takes::Nothing);
        }
        Ok(if self.memory.take_if(own, number)? { Takes::One(number) } else { Takes::Late })
    }

    /// The live token of this number, which is to be parked again.
    fn take_token(&self, number: u32) -> Result<Option<Token>, M::Stop> {
        let Some((word, _)) = self.pop(number, CellState::Token)? else { return Ok(None) };
        let token = Ring::token(word);
        if !(self.is_live)(token) {
            self.drop_token(number, token);
            return Ok(None);
        }
        self.memory.note(Note::TokenTaken(number, token));
        Ok(Some(token))
    }

    /// What is in that number's cell; `None` if the other is not there yet, and will find it void.
    fn pop(&self, number: u32, other: CellState) -> Result<Option<(u64, Task)>, M::Stop> {
        let cell = self.ring.cell(number);
        let found = self.memory.exchange(cell, self.ring.word(number, CellState::Void, Ring::token(0)))?;
        if found == 0 {
            return Ok(None);
        }
        let is_other = self.found(number, found, other) == other;
        let task = if is_other && other == CellState::Task { self.read(cell)? } else { Task([0; 2]) };
        self.release(number)?;
        Ok(is_other.then_some((found, task)))
    }

    /// What the other left; void if it cannot be the other's.
    fn found(&self, number: u32, word: u64, other: CellState) -> CellState {
        match self.ring.state(number, word) {
            Some(state) if state == other || state == CellState::Void => state,
            _ => {
                self.memory.note(Note::Broken(number));
                CellState::Void
            }
        }
    }

    fn read(&self, cell: usize) -> Result<Task, M::Stop> {
        Ok(Task([self.memory.data(cell, 0)?, self.memory.data(cell, 1)?]))
    }

    /// The cell may be used by the next lap: all reads of it come before.
    fn release(&self, number: u32) -> Result<(), M::Stop> {
        self.memory.empty(self.ring.cell(number))?;
        self.memory.take(Counter::Released(self.ring.part(number)))?;
        Ok(())
    }

    /// A token that is not its worker's any more.
    fn drop_token(&self, number: u32, token: Token) {
        self.memory.note(Note::TokenTaken(number, token));
        self.memory.note(Note::TokenLeaves(token));
    }
}
