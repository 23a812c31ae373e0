//! The rounds of a token and a task (`front.h`), and what a SWEEP takes (`sweep.h`).

use crate::line::{LineStep, LineWord, Side};
use crate::meeting::{Entered, Meeting};
use crate::ring::{CellState, Ring};
use crate::{Counter, Memory, Note, Task, Token};

/// How often a token or a task goes on to another number, as in the program.
pub const ROUNDS_MAX: u32 = 16;

/// The passes over one slice.
#[derive(Debug)]
pub struct Passes<'a, M> {
    /// The measures of each of the slice's rings.
    pub ring: Ring,
    /// Which rings it has.
    pub rings: RingPlan,
    /// What CPUs share of it.
    pub memory: &'a M,
    /// Whether a token is of its worker's present registration.
    pub is_live: fn(Token) -> bool,
}

/// Which rings a slice has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RingPlan {
    /// One, in which the n-th token of all meets the n-th task of all. Nothing decides about an arrival.
    One,
    /// One for each rank of tokens, and behind them one for each class of tasks. The [`LineWord`] decides
    /// where an arrival goes: into its own ring if it has to wait, else where the first of the other side
    /// waits. In each ring the n-th that takes meets the n-th that was to wait, whichever of them is at the
    /// cell first; since the line had counted the one before the other took, both come.
    ///
    /// Who comes looks at its own ring, before the line; who takes looks at no other. So the first at a cell
    /// may be one that takes, while with P passes at once up to P of those that were counted before have no
    /// number yet: a look has to be that much farther ahead, `ahead` 2 P or more. By the line who takes comes
    /// after the look of the one that it takes.
    Ranked {
        /// How many rings tokens have.
        ranks: usize,
        /// How often a pass tries to change the line, which others change too, before it is turned away.
        tries: u32,
    },
}

/// A SWEEP that takes tokens out, and parks those again that are live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SweepPass {
    pub rank: usize,
    /// How many it may still visit.
    pub left: u32,
    /// How often it may still look around.
    pub turns: u32,
    /// What it has in hand.
    pub carried: Option<Token>,
}

enum Takes<T> {
    Nothing,
    One(T),
    /// Another CPU took it.
    Late,
}

impl<M: Memory> Passes<'_, M> {
    /// A granted token comes, with its rank.
    ///
    /// # Errors
    /// As the memory says.
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

    /// A task comes, with its class.
    ///
    /// # Errors
    /// As the memory says.
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

    /// One turn of a sweep. Says whether it has come to its end.
    ///
    /// # Errors
    /// As the memory says.
    pub fn sweep(&self, sweep: &mut SweepPass) -> Result<bool, M::Stop> {
        if sweep.turns == 0 {
            // The token is spent, and its worker told.
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

    /// A SWEEP takes out the oldest task of a class of a slice that has no workers.
    ///
    /// # Errors
    /// As the memory says.
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

    /// The live token in hand parks again, or meets a task that came meanwhile.
    fn parks(&self, sweep: &mut SweepPass, token: Token) -> Result<bool, M::Stop> {
        // A busy ring frees itself: the CPU that holds a cell gets on.
        let Some(ring) = self.ring_for(Side::Tokens, sweep.rank)? else { return Ok(false) };
        match ring.token_try(token)? {
            Entered::Parked => sweep.carried = None,
            Entered::Met(()) => return Ok(true),
            Entered::Void => {}
        }
        Ok(false)
    }

    /// The ring to which an arrival goes; `None`: it is turned away, and nothing has been changed.
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

    /// The next that waits on this side, if one does. No look at the ring is needed: that one had one.
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

    /// The next number of one kind, if the other has gone ahead.
    fn take_behind(&self, own: Counter, other: Counter) -> Result<Takes<u32>, M::Stop> {
        let number = self.memory.read(own)?;
        if self.memory.read(other)?.wrapping_sub(number) as i32 <= 0 {
            return Ok(Takes::Nothing);
        }
        Ok(if self.memory.take_if(own, number)? { Takes::One(number) } else { Takes::Late })
    }

    /// The next number of who takes, if the line has one to take.
    fn take_in_line(&self, side: Side, rank: usize, taker: Counter) -> Result<Takes<u32>, M::Stop> {
        let line: LineWord = self.memory.line()?;
        let Some(to) = line.without(side, rank) else { return Ok(Takes::Nothing) };
        if self.memory.change_line(line, to)? != line {
            return Ok(Takes::Late);
        }
        Ok(Takes::One(self.memory.take(taker)?))
    }

    /// The live token of this number, which is to be parked again.
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

    /// Where those wait that come with this rank or class.
    fn own_ring(&self, side: Side, rank: usize) -> Meeting<'_, M> {
        let index = match (self.rings, side) {
            (RingPlan::One, _) => 0,
            (RingPlan::Ranked { .. }, Side::Tokens) => rank,
            (RingPlan::Ranked { ranks, .. }, Side::Tasks) => ranks + rank,
        };
        Meeting { ring: self.ring, index, memory: self.memory }
    }
}
