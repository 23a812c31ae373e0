//! In which stages the columns of Rain's entries stand.

use alloc::vec::Vec;

use crate::pipeline::Column;

/// A column of a ring: its name, its stage counted from the rings' first, and its bits.
type Part = (&'static str, u8, u32);

/// The arrays from the rings' first stage on. All stages are counted from that one.
///
/// The worker of a token comes before its generation and `gen_out`. Budget and time come early: two stages
/// later it is known whether the task is late, and so whether its token counts as spent (`sent`). The rest
/// stands where a stage has room.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryTable {
    tokens: &'static [Part],
    tasks: &'static [Part],
    /// Another column of tasks.
    more: &'static [Part],
    /// The generation that a popped token must have.
    pub(super) gen_out: u8,
    /// The workers' counters.
    pub(super) sent: u8,
    /// The servers' rows. Their packet numbers are one stage behind.
    pub(super) servers: u8,
}

/// 131,072 tasks and 65,536 tokens: eight stages. A stage has 48 blocks of map RAM. A column of 32 bits takes
/// 33, one of 16 bits 17, one of 8 bits 9; a token's generation takes 17, its worker 9.
pub(super) const PAPER: EntryTable = EntryTable {
    tokens: &[("token worker", 0, 16), ("token generation", 0, 32)],
    tasks: &[
        ("budget", 0, 16),
        ("arrived high", 1, 32),
        ("payload 0", 1, 8),
        ("arrived low, age", 2, 32),
        ("payload 1", 2, 8),
        ("ahead", 2, 1),
        ("client", 3, 16),
        ("attempt", 3, 16),
        ("payload 2", 3, 8),
        ("incarnation low", 4, 32),
        ("payload 3", 4, 8),
        ("sequence", 5, 32),
        ("payload 4", 5, 8),
        ("type", 6, 16),
        ("length", 6, 16),
        ("payload 5", 6, 8),
        ("priority", 7, 8),
        ("constraints", 7, 8),
        ("payload 6", 7, 8),
        ("payload 7", 7, 8),
    ],
    more: &[],
    gen_out: 1,
    sent: 4,
    servers: 4,
};

/// 65,536 tasks and 131,072 tokens: five stages, behind the counts of ranks, classes or kinds. A column of
/// 32 bits takes 17 blocks, one of 16 bits 9; a token's generation takes 33, its worker 17. Fields that stand
/// side by side in the header share a column.
pub(super) const HALF: EntryTable = EntryTable {
    tokens: &[("token worker", 0, 16), ("token generation", 2, 32)],
    tasks: &[
        ("arrived high", 0, 32),
        ("budget", 0, 16),
        ("arrived low, age", 1, 32),
        ("incarnation low", 1, 32),
        ("payload 4, 5", 1, 16),
        ("client", 2, 16),
        ("ahead", 2, 1),
        ("sequence", 3, 32),
        ("attempt, length", 3, 32),
        ("type, priority, constraints", 4, 32),
        ("payload 0 to 3", 4, 32),
        ("payload 6, 7", 4, 16),
    ],
    more: &[],
    gen_out: 1,
    sent: 3,
    servers: 3,
};

/// A leaf has no rows of clients, so an entry holds its whole incarnation.
pub(super) const LEAF: EntryTable = EntryTable { more: &[("incarnation high", 5, 32)], ..HALF };

impl EntryTable {
    pub(super) fn tokens(&self, first: u8) -> Vec<Column> {
        columns(self.tokens, first).collect()
    }

    pub(super) fn tasks(&self, first: u8) -> Vec<Column> {
        columns(self.tasks, first).chain(columns(self.more, first)).collect()
    }
}

fn columns(parts: &[Part], first: u8) -> impl Iterator<Item = Column> {
    parts.iter().map(move |(name, stage, bits)| Column { name, stage: first + stage, bits: *bits })
}
