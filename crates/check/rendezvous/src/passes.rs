//! The rounds of a token and of a task (`front.h`), and how a SWEEP takes entries (`sweep.h`).

use crate::line::{LineStep, LineWord, Side};
use crate::meeting::{Entered, Meeting};
use crate::ring::{CellState, Ring};
use crate::{Counter, Memory, Note, Task, Token};

/// How many numbers a token or a task tries, as in the C program.
pub const ROUNDS_MAX: u32 = 16;

/// The passes of one slice.
#[derive(Debug)]
pub struct Passes<'a, M> {
    /// The sizes of each of the slice's rings.
    pub ring: Ring,
    /// The slice's rings.
    pub rings: RingPlan,
    /// The memory that CPUs share.
    pub memory: &'a M,
    /// Whether a token belongs to its worker's present registration.
    pub is_live: fn(Token) -> bool,
}

/// The rings of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RingPlan {
    /// One ring, in which the n-th token meets the n-th task. An arrival needs no decision.
    One,
    /// One ring for each rank of tokens, followed by one for each class of tasks. The [`LineWord`] decides
    /// where an arrival goes: into its own ring if it has to wait, otherwise into the ring of the first
    /// waiting entry of the other kind. In each ring the n-th taker meets the n-th entry that was to wait,
    /// whichever reaches the cell first. The line counted the entry before the taker took it, so both will
    /// come.
    ///
    /// An arrival checks its own ring before it changes the line; a taker checks no other ring. So a taker
    /// may be the first at a cell. With P passes at once, up to P counted entries may have no number yet,
    /// so a check must cover that many more cells: `ahead` must be at least 2 P. Through the line, a taker
    /// comes after the check of the entry that it takes.
    Ranked {
        /// The number of token rings in the slice, one for each rank.
        ranks: usize,
        /// How often a pass tries to change the line, which other CPUs change too, before it gives up.
        tries: u32,
    },
}

/// A SWEEP that takes tokens out and parks valid ones again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SweepPass {
    pub rank: usize,
    /// How many entries the sweep may still visit.
    pub left: u32,
    /// How many turns the sweep may still take.
    pub turns: u32,
    /// The token that the sweep has taken out and carries to its next turn.
    pub carried: Option<Token>,
}

enum Takes<T> {
    Nothing,
    One(T),
    /// Another CPU took the entry.
    Late,
}

impl<M: Memory> Passes<'_, M> {
    /// A granted token with this rank arrives.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    pub fn token(&self, rank: usize, token: Token) -> Result<(), M::Stop> {
        for _ in 0..=ROUNDS_MAX {
            let Some(ring) = self.ring_for(Side::Tokens, rank)? else { break };
            match ring.token_try(token)? {
                Entered::Parked | Entered::Met(()) => return Ok(()),
                Entered::Void => {}
            }
        }
        self.memory.note(Note::TokenLeaves(token));
        Ok(())
    }

    /// A task with this class arrives.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    pub fn task(&self, class: usize, task: Task) -> Result<(), M::Stop> {
        for _ in 0..=ROUNDS_MAX {
            let Some(ring) = self.ring_for(Side::Tasks, class)? else { break };
            match ring.task_try(task)? {
                Entered::Parked => return Ok(()),
                Entered::Met((spot, token)) if (self.is_live)(token) => {
                    self.memory.note(Note::Meet(spot, token, task));
                    return Ok(());
                }
                Entered::Met((spot, token)) => {
                    self.memory.note(Note::TokenTaken(spot, token));
                    self.memory.note(Note::TokenLeaves(token));
                }
                Entered::Void => {}
            }
        }
        self.memory.note(Note::TaskLeaves(task));
        Ok(())
    }

    /// Performs one turn of a sweep. Returns whether the sweep is over.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    pub fn sweep(&self, sweep: &mut SweepPass) -> Result<bool, M::Stop> {
        if sweep.turns == 0 {
            // The carried token is spent, and its worker is told.
            sweep.carried.into_iter().for_each(|token| self.memory.note(Note::TokenLeaves(token)));
            return Ok(true);
        }
        sweep.turns -= 1;
        if let Some(token) = sweep.carried {
            return self.parks(sweep, token);
        }
        if sweep.left == 0 {
            return Ok(true);
        }
        match self.takes(Side::Tokens, sweep.rank)? {
            Takes::Nothing => return Ok(true),
            Takes::Late => {}
            Takes::One((ring, number)) => {
                sweep.left -= 1;
                sweep.carried = self.take_token(&ring, number)?;
            }
        }
        Ok(false)
    }

    /// A SWEEP takes out the oldest task of a class, in a slice without workers.
    ///
    /// # Errors
    /// The memory's own `Stop`, if it ends the pass here.
    pub fn sweep_task(&self, class: usize, turns_max: u32) -> Result<(), M::Stop> {
        for _ in 0..turns_max {
            self.memory.note(Note::Anew);
            match self.takes(Side::Tasks, class)? {
                Takes::Nothing => return Ok(()),
                Takes::Late => {}
                Takes::One((ring, number)) => {
                    let Some((_, task)) = ring.pop(number, CellState::Task)? else { continue };
                    self.memory.note(Note::TaskTaken(ring.spot(number), task));
                    self.memory.note(Note::TaskLeaves(task));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Parks the carried valid token again, or matches it with a task that came meanwhile.
    fn parks(&self, sweep: &mut SweepPass, token: Token) -> Result<bool, M::Stop> {
        // A busy ring becomes free by itself: the CPU that uses a cell finishes.
        let Some(ring) = self.ring_for(Side::Tokens, sweep.rank)? else { return Ok(false) };
        match ring.token_try(token)? {
            Entered::Parked => sweep.carried = None,
            Entered::Met(()) => return Ok(true),
            Entered::Void => {}
        }
        Ok(false)
    }

    /// The ring for an arrival; `None` if it is refused: then nothing was changed.
    fn ring_for(&self, side: Side, rank: usize) -> Result<Option<Meeting<'_, M>>, M::Stop> {
        let own = self.own_ring(side, rank);
        if own.is_busy(own.counter(side))? {
            return Ok(None);
        }
        let RingPlan::Ranked { tries, .. } = self.rings else { return Ok(Some(own)) };
        let mut line = self.memory.line()?;
        for _ in 0..tries {
            let (to, change) = line.arrives(side, rank);
            let was = self.memory.change_line(line, to)?;
            if was == line {
                return Ok(Some(match change {
                    LineStep::Waits => own,
                    LineStep::Takes(first) => self.own_ring(side.other(), first),
                }));
            }
            line = was;
        }
        Ok(None)
    }

    /// Takes the next waiting entry of this kind, if there is one. The ring needs no check, since the
    /// entry's pass made it.
    fn takes(&self, side: Side, rank: usize) -> Result<Takes<(Meeting<'_, M>, u32)>, M::Stop> {
        let ring = self.own_ring(side, rank);
        let (waits, taker) = (ring.counter(side), ring.counter(side.other()));
        let taken = match self.rings {
            RingPlan::One => self.take_behind(taker, waits)?,
            RingPlan::Ranked { .. } => self.take_in_line(side, rank, taker)?,
        };
        Ok(match taken {
            Takes::One(number) => Takes::One((ring, number)),
            Takes::Nothing => Takes::Nothing,
            Takes::Late => Takes::Late,
        })
    }

    /// Takes the next number of one kind if the other kind is ahead.
    fn take_behind(&self, own: Counter, other: Counter) -> Result<Takes<u32>, M::Stop> {
        let number = self.memory.read(own)?;
        if self.memory.read(other)?.wrapping_sub(number) as i32 <= 0 {
            return Ok(Takes::Nothing);
        }
        Ok(if self.memory.take_if(own, number)? { Takes::One(number) } else { Takes::Late })
    }

    /// Takes the next number of a taker, if the line counts a waiting entry.
    fn take_in_line(&self, side: Side, rank: usize, taker: Counter) -> Result<Takes<u32>, M::Stop> {
        let line: LineWord = self.memory.line()?;
        let Some(to) = line.without(side, rank) else { return Ok(Takes::Nothing) };
        if self.memory.change_line(line, to)? != line {
            return Ok(Takes::Late);
        }
        Ok(Takes::One(self.memory.take(taker)?))
    }

    /// The valid token of this number, which is to be parked again.
    fn take_token(&self, ring: &Meeting<'_, M>, number: u32) -> Result<Option<Token>, M::Stop> {
        let Some((word, _)) = ring.pop(number, CellState::Token)? else { return Ok(None) };
        let token = Ring::token(word);
        self.memory.note(Note::TokenTaken(ring.spot(number), token));
        if !(self.is_live)(token) {
            self.memory.note(Note::TokenLeaves(token));
            return Ok(None);
        }
        Ok(Some(token))
    }

    /// The ring in which entries with this rank or class wait.
    fn own_ring(&self, side: Side, rank: usize) -> Meeting<'_, M> {
        let index = match (self.rings, side) {
            (RingPlan::One, _) => 0,
            (RingPlan::Ranked { .. }, Side::Tokens) => rank,
            (RingPlan::Ranked { ranks, .. }, Side::Tasks) => ranks + rank,
        };
        Meeting { ring: self.ring, index, memory: self.memory }
    }
}
