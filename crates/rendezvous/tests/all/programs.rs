//! What CPUs do, and the memory that checkers share between them.

use sluice_rendezvous::{Broom, Counter, Memory, Passes, Ring, Task, Token};

use crate::ledger::Ledger;

/// One pass, or one walk of the broom.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// The token of this index comes.
    Token(u16),
    /// The same, of a registration that is over.
    StaleToken(u16),
    /// The task of this index comes.
    Task(u32),
    /// A SWEEP visits so many tokens, looking around so often at most.
    SweepTokens(u32, u32),
    /// A SWEEP takes out a task.
    SweepTask,
}

/// How often a broom for tasks looks around.
const TURNS_MAX: u32 = 2;

impl Op {
    /// All of it, or of a broom one turn; says whether it is over.
    pub(crate) fn run<M: Memory>(
        self,
        ring: Ring,
        memory: &M,
        broom: &mut Option<Broom>,
    ) -> Result<bool, M::Stop> {
        let passes = Passes { ring, memory, is_live: |token| token.generation == 1 };
        match self {
            Self::Token(worker) => passes.token(Token { worker, generation: 1 })?,
            Self::StaleToken(worker) => passes.token(Token { worker, generation: 0 })?,
            Self::Task(index) => passes.task(Task([index, index]))?,
            Self::SweepTokens(left, turns) => {
                return passes.sweep(broom.get_or_insert(Broom { left, turns, carried: None }));
            }
            Self::SweepTask => passes.sweep_task(TURNS_MAX)?,
        }
        Ok(true)
    }
}

/// What a memory offers beyond what passes may do, to plant mistakes with.
pub(crate) trait Raw: Memory {
    fn set(&self, of: Counter, value: u32) -> Result<(), Self::Stop>;
    fn set_word(&self, cell: usize, word: u64) -> Result<(), Self::Stop>;
}

/// What many CPUs do at once, behind what one does before.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) ring: Ring,
    /// The first number of either kind.
    pub(crate) start: u32,
    pub(crate) before: Vec<Op>,
    pub(crate) cpus: Vec<Vec<Op>>,
}

impl Scene {
    /// An account of its tokens and tasks.
    pub(crate) fn ledger(&self) -> Ledger {
        let count = |is: fn(&Op) -> bool| {
            self.before.iter().chain(self.cpus.iter().flatten()).filter(|op| is(op)).count()
        };
        let tokens = count(|op| matches!(op, Op::Token(_) | Op::StaleToken(_)));
        Ledger::new(tokens, count(|op| matches!(op, Op::Task(_))))
    }
}

/// A ring of 2, of which every cell is used once. No lap can come round on it: 4 passes at once would need a
/// ring of 16. The look falls on the pass's own cell. The numbers, and the laps in the words, wrap between
/// the two.
pub(crate) fn two_and_two() -> Scene {
    Scene {
        ring: Ring { cell_bits: 1, part_bits: 0, ahead: 0 },
        start: u32::MAX - 1,
        before: vec![],
        cpus: vec![vec![Op::Token(0)], vec![Op::Token(1)], vec![Op::Task(0)], vec![Op::Task(1)]],
    }
}

/// The same, and a broom of tokens between them, which makes them go round to further numbers.
pub(crate) fn with_a_broom() -> Scene {
    let mut scene = two_and_two();
    scene.ring = Ring { cell_bits: 4, part_bits: 3, ahead: 6 };
    scene.cpus.push(vec![Op::SweepTokens(2, 3)]);
    scene
}

/// The same with a broom of tasks.
pub(crate) fn with_a_broom_of_tasks() -> Scene {
    let mut scene = with_a_broom();
    scene.cpus.pop();
    scene.cpus.push(vec![Op::SweepTask]);
    scene
}

/// Two brooms at once: tokens that are stale, and those that are live.
pub(crate) fn with_two_brooms() -> Scene {
    let mut scene = with_a_broom();
    scene.cpus = vec![
        vec![Op::Token(1)],
        vec![Op::Task(0), Op::Task(1)],
        vec![Op::SweepTokens(2, 4)],
        vec![Op::SweepTokens(1, 4)],
    ];
    scene.before = vec![Op::StaleToken(0)];
    scene
}

/// Two CPUs on the smallest ring for two: one goes on for more than a lap while the other reads a task's
/// cell, over the wrap of the numbers.
pub(crate) fn two_over_a_lap() -> Scene {
    Scene {
        ring: Ring { cell_bits: 3, part_bits: 2, ahead: 3 },
        start: u32::MAX - 7,
        before: vec![Op::Task(0)],
        cpus: vec![vec![Op::Token(0)], pairs(1, 12)],
    }
}

/// Three on the smallest ring for three: the third's token may take a number long after it looked.
pub(crate) fn three_over_a_lap() -> Scene {
    Scene {
        ring: Ring { cell_bits: 3, part_bits: 2, ahead: 4 },
        start: 0,
        before: vec![Op::Task(0)],
        cpus: vec![vec![Op::Token(0)], pairs(1, 8), vec![Op::Token(8)]],
    }
}

/// While one reads a task's cell, a broom voids what the token of another is to find, again and again.
pub(crate) fn voided_over_a_lap() -> Scene {
    let mut scene = three_over_a_lap();
    scene.cpus[1] = [pairs(1, 3), vec![Op::Token(3)]].concat();
    scene.cpus[2] = vec![Op::SweepTokens(5, 6)];
    scene
}

/// A token and a task in turn.
fn pairs(from: u16, to: u16) -> Vec<Op> {
    (from..to).flat_map(|pair| [Op::Token(pair), Op::Task(pair.into())]).collect()
}
