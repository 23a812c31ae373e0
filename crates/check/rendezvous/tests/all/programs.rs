//! What CPUs do, and the memory that checkers share between them.

use sluice_rendezvous::{Counter, LineWord, Memory, Passes, Ring, RingPlan, Side, SweepPass, Task, Token};

use crate::ledger::Ledger;

/// One pass, or one walk of the sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// The token of this index comes.
    Token(u16),
    /// The same, with this rank.
    Ranked(u16, usize),
    /// The same, of a registration that is over.
    StaleToken(u16),
    /// The task of this index comes.
    Task(u32),
    /// A SWEEP visits so many tokens of the least rank, looking around so often at most.
    SweepTokens(u32, u32),
    /// A SWEEP takes out a task.
    SweepTask,
}

/// How often a sweep for tasks looks around.
const TURNS_MAX: u32 = 2;

impl Op {
    /// All of it, or of a sweep one turn; says whether it is over.
    pub(crate) fn run<M: Memory>(
        self,
        rules: Rules,
        memory: &M,
        sweep: &mut Option<SweepPass>,
    ) -> Result<bool, M::Stop> {
        let Rules { ring, rings } = rules;
        let passes = Passes { ring, rings, memory, is_live: |token| token.generation == 1 };
        match self {
            Self::Token(worker) => passes.token(0, Token { worker, generation: 1 })?,
            Self::Ranked(worker, rank) => passes.token(rank, Token { worker, generation: 1 })?,
            Self::StaleToken(worker) => passes.token(0, Token { worker, generation: 0 })?,
            Self::Task(index) => passes.task(0, Task([index, index]))?,
            Self::SweepTokens(left, turns) => {
                return passes.sweep(sweep.get_or_insert(SweepPass { rank: 0, left, turns, carried: None }));
            }
            Self::SweepTask => passes.sweep_task(0, TURNS_MAX)?,
        }
        Ok(true)
    }
}

/// What a memory offers beyond what passes may do, to plant mistakes with.
pub(crate) trait Raw: Memory {
    fn set(&self, of: Counter, value: u32) -> Result<(), Self::Stop>;
    fn set_word(&self, cell: usize, word: u64) -> Result<(), Self::Stop>;
    fn set_line(&self, line: LineWord) -> Result<(), Self::Stop>;
}

/// A slice's rings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) ring: Ring,
    pub(crate) rings: RingPlan,
}

impl Rules {
    /// How many rings there are: tasks have one class here.
    pub(crate) const fn count(&self) -> usize {
        match self.rings {
            RingPlan::One => 1,
            RingPlan::Ranked { ranks, .. } => ranks + 1,
        }
    }

    /// How many tokens more than tasks the line counts in a ring, if there is a line.
    pub(crate) fn counted(&self, line: LineWord, ring: usize) -> Option<i32> {
        let RingPlan::Ranked { ranks, .. } = self.rings else { return None };
        let tasks = ring.checked_sub(ranks).map(|class| -(line.waits(Side::Tasks, class) as i32));
        Some(tasks.unwrap_or(line.waits(Side::Tokens, ring) as i32))
    }
}

/// What many CPUs do at once, behind what one does before.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) ring: Ring,
    pub(crate) rings: RingPlan,
    /// The first number of either kind.
    pub(crate) start: u32,
    pub(crate) before: Vec<Op>,
    pub(crate) cpus: Vec<Vec<Op>>,
}

impl Scene {
    pub(crate) const fn rules(&self) -> Rules {
        Rules { ring: self.ring, rings: self.rings }
    }

    /// An account of its tokens and tasks.
    pub(crate) fn ledger(&self) -> Ledger {
        let count = |is: fn(&Op) -> bool| {
            self.before.iter().chain(self.cpus.iter().flatten()).filter(|op| is(op)).count()
        };
        let tokens = count(|op| matches!(op, Op::Token(_) | Op::Ranked(..) | Op::StaleToken(_)));
        Ledger::new(tokens, count(|op| matches!(op, Op::Task(_))))
    }
}

/// A ring of 2, of which every cell is used once. No lap can come round on it: 4 passes at once would need a
/// ring of 16. The look falls on the pass's own cell. The numbers, and the laps in the words, wrap between
/// the two.
pub(crate) fn two_and_two() -> Scene {
    Scene {
        ring: Ring { cell_bits: 1, part_bits: 0, ahead: 0 },
        rings: RingPlan::One,
        start: u32::MAX - 1,
        before: vec![],
        cpus: vec![vec![Op::Token(0)], vec![Op::Token(1)], vec![Op::Task(0)], vec![Op::Task(1)]],
    }
}

/// The same, and a sweep of tokens between them, which makes them go round to further numbers.
pub(crate) fn with_a_sweep() -> Scene {
    let mut scene = two_and_two();
    scene.ring = Ring { cell_bits: 4, part_bits: 3, ahead: 6 };
    scene.cpus.push(vec![Op::SweepTokens(2, 3)]);
    scene
}

/// The same with a sweep of tasks.
pub(crate) fn with_a_sweep_of_tasks() -> Scene {
    let mut scene = with_a_sweep();
    scene.cpus.pop();
    scene.cpus.push(vec![Op::SweepTask]);
    scene
}

/// Two sweeps at once: tokens that are stale, and those that are live.
pub(crate) fn with_two_sweeps() -> Scene {
    let mut scene = with_a_sweep();
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
        rings: RingPlan::One,
        start: u32::MAX - 7,
        before: vec![Op::Task(0)],
        cpus: vec![vec![Op::Token(0)], pairs(1, 12)],
    }
}

/// Three on the smallest ring for three: the third's token may take a number long after it looked.
pub(crate) fn three_over_a_lap() -> Scene {
    Scene {
        ring: Ring { cell_bits: 3, part_bits: 2, ahead: 4 },
        rings: RingPlan::One,
        start: 0,
        before: vec![Op::Task(0)],
        cpus: vec![vec![Op::Token(0)], pairs(1, 8), vec![Op::Token(8)]],
    }
}

/// While one reads a task's cell, a sweep voids what the token of another is to find, again and again.
pub(crate) fn voided_over_a_lap() -> Scene {
    let mut scene = three_over_a_lap();
    scene.cpus[1] = [pairs(1, 3), vec![Op::Token(3)]].concat();
    scene.cpus[2] = vec![Op::SweepTokens(5, 6)];
    scene
}

/// Two ranks at once, on rings of which every cell is used once.
pub(crate) fn ranked(tries: u32) -> Scene {
    let mut scene = two_and_two();
    scene.rings = RingPlan::Ranked { ranks: 2, tries };
    scene.cpus[0] = vec![Op::Ranked(0, 1)];
    scene
}

/// The same, and a sweep of the least rank between, which makes that token go round.
pub(crate) fn ranked_with_a_sweep() -> Scene {
    let mut scene = ranked(4);
    scene.ring = Ring { cell_bits: 4, part_bits: 2, ahead: 8 };
    scene.before = vec![Op::StaleToken(2), Op::Ranked(0, 1)];
    scene.cpus = vec![vec![Op::Token(1)], vec![Op::Task(0)], vec![Op::SweepTokens(2, 3)]];
    scene
}

/// The same with a sweep of tasks.
pub(crate) fn ranked_with_a_sweep_of_tasks() -> Scene {
    let mut scene = ranked_with_a_sweep();
    scene.before = vec![Op::Task(1)];
    scene.cpus = ranked(4).cpus;
    scene.cpus[3] = vec![Op::SweepTask];
    scene
}

/// Two CPUs on the smallest rings for two: one goes on for more than a lap of the tasks' ring while the other
/// reads a task's cell there.
pub(crate) fn tasks_over_a_lap() -> Scene {
    let mut scene = two_over_a_lap();
    scene.ring.ahead = 4;
    scene.rings = RingPlan::Ranked { ranks: 2, tries: 4 };
    scene.cpus[1] = (1..12).flat_map(|pair| [Op::Task(pair.into()), Op::Token(pair)]).collect();
    scene
}

/// The same on the ring of a rank: one has counted its token, and has no number yet.
pub(crate) fn tokens_over_a_lap() -> Scene {
    let mut scene = tasks_over_a_lap();
    scene.before = vec![];
    scene.cpus = vec![
        vec![Op::Ranked(0, 1)],
        (0..12).flat_map(|pair| [Op::Task(pair.into()), Op::Ranked(pair + 1, 1)]).collect(),
    ];
    scene
}

/// One brings two tokens of the least rank to rings of one cell, where others take them. A token of the next
/// rank is parked, so that never two tasks wait in their own ring.
pub(crate) fn taken_in_one_cell() -> Scene {
    let mut scene = ranked(4);
    scene.ring.cell_bits = 0;
    scene.before = vec![Op::Ranked(2, 1)];
    scene.cpus = vec![vec![Op::Token(0), Op::Token(1)], vec![Op::Task(0)], vec![Op::Task(1)]];
    scene
}

/// Three on such a ring, which looks at the next cell only: the third's token may be counted long after it
/// looked.
pub(crate) fn three_ranked_over_a_lap() -> Scene {
    let mut scene = tokens_over_a_lap();
    scene.ring = Ring { cell_bits: 2, part_bits: 1, ahead: 0 };
    scene.start = 0;
    scene.cpus[1] = (0..4).flat_map(|pair| [Op::Task(pair.into()), Op::Ranked(pair + 1, 1)]).collect();
    scene.cpus.push(vec![Op::Ranked(5, 1)]);
    scene
}

/// A token and a task in turn.
fn pairs(from: u16, to: u16) -> Vec<Op> {
    (from..to).flat_map(|pair| [Op::Token(pair), Op::Task(pair.into())]).collect()
}
