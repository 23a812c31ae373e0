//! Which cell a number has, and what its word says (`ring.h`).

use crate::Token;

/// A ring's measures. The program's has four parts; checkers take as few cells as keep the rules.
///
/// The rules: with P passes at once, `ahead` is more than P and a part has more cells than P. Then any P + 1
/// numbers of one kind in a row have a look among them that fell into the part before its first number was
/// given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    /// Two to this power: cells.
    pub cell_bits: u32,
    /// Two to this power: cells of each part that is given back as a whole.
    pub part_bits: u32,
    /// How far ahead of its number a pass looks.
    pub ahead: u32,
}

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellState {
    Empty = 0,
    Task = 1,
    Token = 2,
    Void = 3,
}

const WORKER_SHIFT: u32 = 32;
const STATE_SHIFT: u32 = 48;
const LAP_SHIFT: u32 = 52;

impl Ring {
    /// How many cells it has.
    pub const fn cells(&self) -> usize {
        1 << self.cell_bits
    }

    /// How many parts it has.
    pub const fn parts(&self) -> usize {
        1 << (self.cell_bits - self.part_bits)
    }

    /// A number's cell.
    pub const fn cell(&self, number: u32) -> usize {
        number as usize & (self.cells() - 1)
    }

    /// The part of a number's cell.
    pub const fn part(&self, number: u32) -> usize {
        number as usize >> self.part_bits & (self.parts() - 1)
    }

    /// The part to look at before this number is taken, and how many of its cells must have been given back.
    pub const fn wanted(&self, next: u32) -> (usize, u32) {
        let number = next.wrapping_add(self.ahead);
        let laps = number >> self.cell_bits;
        (self.part(number), laps << self.part_bits)
    }

    /// Whether a part is still in use of which so many cells were given back.
    pub const fn is_in_use(&self, released: u32, wanted: u32) -> bool {
        self.beyond(released, wanted) > 1 << self.part_bits
    }

    /// How much one count of a part's cells is beyond another: of 2^32 numbers a part sees its share.
    pub const fn beyond(&self, released: u32, before: u32) -> u32 {
        released.wrapping_sub(before) & u32::MAX >> (self.cell_bits - self.part_bits)
    }

    /// How many cells of a part were given back when all numbers below this one were.
    pub const fn given_back(&self, start: u32, part: usize) -> u32 {
        let within = start & (self.cells() as u32 - 1);
        let before = (part as u32) << self.part_bits;
        let of_this_lap = within.saturating_sub(before);
        let whole = 1 << self.part_bits;
        ((start >> self.cell_bits) << self.part_bits) + if of_this_lap < whole { of_this_lap } else { whole }
    }

    /// A cell's word.
    pub const fn word(&self, number: u32, state: CellState, token: Token) -> u64 {
        let lap = (number as u64 >> self.cell_bits) << LAP_SHIFT;
        lap | (state as u64) << STATE_SHIFT | (token.worker as u64) << WORKER_SHIFT | token.generation as u64
    }

    /// The token in a word.
    pub const fn token(word: u64) -> Token {
        Token { worker: (word >> WORKER_SHIFT) as u16, generation: word as u32 }
    }

    /// What a word says that was found in this number's cell; `None` if it is of another lap.
    pub const fn state(&self, number: u32, word: u64) -> Option<CellState> {
        if word >> LAP_SHIFT != self.word(number, CellState::Empty, Self::token(0)) >> LAP_SHIFT {
            return None;
        }
        match word >> STATE_SHIFT & 0xf {
            0 => Some(CellState::Empty),
            1 => Some(CellState::Task),
            2 => Some(CellState::Token),
            3 => Some(CellState::Void),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_in_use_until_all_of_its_last_lap_is_given_back() {
        let ring = Ring { cell_bits: 3, part_bits: 2, ahead: 3 };
        assert_eq!(ring.wanted(4), (1, 0));
        assert_eq!(ring.wanted(5), (0, 4));
        assert!(ring.is_in_use(3, 4));
        assert!(!ring.is_in_use(4, 4));
    }

    #[test]
    fn counts_and_laps_wrap() {
        let ring = Ring { cell_bits: 3, part_bits: 2, ahead: 3 };
        let start = u32::MAX - 1;
        assert_eq!([ring.given_back(start, 0), ring.given_back(start, 1)], [1 << 31, (1 << 31) - 2]);
        assert_eq!(ring.wanted(start), (0, 0));
        assert!(!ring.is_in_use(ring.given_back(start, 0), 0));
        let token = Token { worker: 3, generation: 9 };
        let word = ring.word(start, CellState::Token, token);
        assert_eq!(ring.state(start, word), Some(CellState::Token));
        assert_eq!(ring.state(start.wrapping_add(8), word), None);
        assert_eq!(Ring::token(word), token);
    }
}
