//! The counts of waiting entries of a slice in one word, so that one access decides about an arrival of any
//! rank.

/// A kind of entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Tokens, counted by rank.
    Tokens,
    /// Tasks, counted by class.
    Tasks,
}

impl Side {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Tokens => Self::Tasks,
            Self::Tasks => Self::Tokens,
        }
    }
}

/// How many entries wait, by rank or class: four counts, and a bit that says which kind they are. Tokens
/// and tasks never wait at the same time, so one set of counts is enough.
///
/// A count holds up to 32,767; the caller must refuse further entries before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LineWord(pub u64);

/// What happens to an arrival: it waits in its own ring, or meets an entry of the other kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineStep {
    /// The arrival waits among entries of its own kind.
    Waits,
    /// The arrival takes the oldest waiting entry of the other kind with this rank or class.
    Takes(usize),
}

const COUNT_BITS: usize = 15;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const TASKS_WAIT: u64 = 1 << 63;

impl LineWord {
    /// The counts after an arrival of this kind with this rank or class, and what happens to the arrival.
    pub const fn arrives(self, side: Side, rank: usize) -> (Self, LineStep) {
        let own = match side {
            Side::Tokens => 0,
            Side::Tasks => TASKS_WAIT,
        };
        let counts = self.0 & !TASKS_WAIT;
        if counts == 0 || self.0 & TASKS_WAIT == own {
            return (Self(own | (counts + one(rank))), LineStep::Waits);
        }
        let first = counts.trailing_zeros() as usize / COUNT_BITS;
        (Self(self.0 - one(first)), LineStep::Takes(first))
    }

    /// The counts after one waiting entry of this kind with this rank or class is taken out; `None` if
    /// there is none.
    pub const fn without(self, side: Side, rank: usize) -> Option<Self> {
        if self.waits(side, rank) == 0 { None } else { Some(Self(self.0 - one(rank))) }
    }

    /// How many entries of this kind with this rank or class wait.
    pub const fn waits(self, side: Side, rank: usize) -> u64 {
        let tasks_wait = self.0 & TASKS_WAIT != 0;
        let is_side = matches!((side, tasks_wait), (Side::Tokens, false) | (Side::Tasks, true));
        if is_side { self.0 >> (rank * COUNT_BITS) & COUNT_MASK } else { 0 }
    }
}

const fn one(rank: usize) -> u64 {
    1 << (rank * COUNT_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_rank_goes_first_and_only_one_side_waits() {
        let mut line = LineWord::default();
        for rank in [3, 1, 2, 1] {
            let waits;
            (line, waits) = line.arrives(Side::Tokens, rank);
            assert_eq!(waits, LineStep::Waits);
        }
        for rank in [1, 1, 2, 3] {
            let took;
            (line, took) = line.arrives(Side::Tasks, 0);
            assert_eq!(took, LineStep::Takes(rank));
        }
        (line, _) = line.arrives(Side::Tasks, 2);
        assert_eq!([line.waits(Side::Tokens, 2), line.waits(Side::Tasks, 2)], [0, 1]);
        assert_eq!(line.arrives(Side::Tokens, 0).1, LineStep::Takes(2));
    }

    #[test]
    fn one_is_taken_out_where_one_waits() {
        let (line, _) = LineWord::default().arrives(Side::Tokens, 1);
        assert_eq!(line.without(Side::Tokens, 0), None);
        assert_eq!(line.without(Side::Tasks, 1), None);
        assert_eq!(line.without(Side::Tokens, 1), Some(LineWord::default()));
    }
}
