//! The cell of a number, and the contents of the cell's word (`ring.h`).

use crate::Token;

/// The sizes of a ring. The C program's ring has four parts; checkers use the fewest cells that satisfy the
/// rules.
///
/// The rules: with P passes at once, `ahead` is more than P, and a part has more than P cells. Then, among
/// any P + 1 consecutive numbers of one kind, at least one pass checked the part before that part's first
/// number was given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    /// The binary logarithm of the number of cells.
    pub cell_bits: u32,
    /// The binary logarithm of the number of cells in a part, which is released as a whole.
    pub part_bits: u32,
    /// How many cells ahead of its number a pass checks.
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
    /// The number of the ring's cells.
    pub const fn cells(&self) -> usize {
        1 << self.cell_bits
    }

    /// The number of the ring's parts.
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

    /// The part to check before this number is taken, and how many of its cells must have been released.
    pub const fn wanted(&self, next: u32) -> (usize, u32) {
        let number = next.wrapping_add(self.ahead);
        let laps = number >> self.cell_bits;
        (self.part(number), laps << self.part_bits)
    }

    /// Whether a part with this many released cells is still in use.
    pub const fn is_in_use(&self, released: u32, wanted: u32) -> bool {
        self.beyond(released, wanted) > 1 << self.part_bits
    }

    /// The difference between two counts of a part's released cells. Of 2^32 numbers, a part sees its
    /// share, so counts wrap there.
    pub const fn beyond(&self, released: u32, before: u32) -> u32 {
        released.wrapping_sub(before) & u32::MAX >> (self.cell_bits - self.part_bits)
    }

    /// How many cells of a part were released when all numbers below this one were.
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

    /// The state in `word`, read from the cell of `number`; `None` if the word is from another lap.
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
