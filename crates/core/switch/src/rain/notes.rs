//! The packets that recirculate: a token whose task was refused because its budget was spent; and in a queue
//! where not every worker serves every task, a token that has found no task yet, and the switch's note that
//! a parked token should look again.

use sluice_wire::{Generation, Rank, SliceId, WorkerId};

use crate::program::{Circulating, Verdict};

/// A packet that the program sends to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// A granted token, and its step in this pass.
    Token { worker: WorkerId, generation: Generation, step: TokenStep },
    /// A token of this kind parked while a task that it serves waited. The pass takes one token of the kind
    /// out, which looks again.
    Recall { slice: SliceId, kind: u8 },
}

/// What a token does in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenStep {
    /// Looks for a waiting task of any class that it serves.
    Look,
    /// Parks, and recirculates a note if a task that it serves waits now.
    Park,
}

/// A granted token that meets the queue again: the task that it took was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReturningToken {
    pub(super) worker: WorkerId,
    pub(super) generation: Generation,
    pub(super) rank: Rank,
}

impl ReturningToken {
    /// The token of this memo; `None` if the memo is another note.
    pub(super) const fn read(memo: u64) -> Option<Self> {
        if memo & RETURNS == 0 {
            return None;
        }
        Some(Self {
            worker: WorkerId(memo as u16),
            generation: Generation((memo >> 16) as u32),
            rank: Rank::behind((memo >> 48 & 0x7) as u32),
        })
    }

    pub(super) const fn memo(self) -> u64 {
        let rank = self.rank.get() as u64;
        RETURNS | rank << 48 | (self.generation.0 as u64) << 16 | self.worker.0 as u64
    }
}

const RETURNS: u64 = 1 << 61;
const RECALL: u64 = 1 << 63;
const PARK: u64 = 1 << 62;

impl Round {
    pub(super) const fn read(memo: u64) -> Self {
        if memo & RECALL != 0 {
            return Self::Recall { slice: SliceId(memo as u16), kind: (memo >> 16) as u8 };
        }
        Self::Token {
            worker: WorkerId(memo as u16),
            generation: Generation((memo >> 16) as u32),
            step: if memo & PARK != 0 { TokenStep::Park } else { TokenStep::Look },
        }
    }

    pub(super) const fn memo(self) -> u64 {
        match self {
            Self::Recall { slice, kind } => RECALL | (kind as u64) << 16 | slice.0 as u64,
            Self::Token { worker, generation, step } => {
                let step = if matches!(step, TokenStep::Park) { PARK } else { 0 };
                step | (generation.0 as u64) << 16 | worker.0 as u64
            }
        }
    }

    /// Recirculates this packet.
    pub(super) const fn go(self) -> Verdict {
        Verdict::Again(Circulating::note(self.memo()))
    }
}
