//! The programs of CPUs, and the memory that checkers use.

use sluice_rendezvous::{Counter, LineWord, Memory, Passes, Ring, RingPlan, Side, SweepPass, Task, Token};

use crate::ledger::Ledger;

/// One pass, or one sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// The token with this index arrives.
    Token(u16),
    /// The token with this index and this rank arrives.
    Ranked(u16, usize),
    /// The token with this index, of an ended registration, arrives.
    StaleToken(u16),
    /// The task with this index arrives.
    Task(u32),
    /// A SWEEP visits tokens of the lowest rank: the number of tokens, and the largest number of turns.
    SweepTokens(u32, u32),
    /// A SWEEP takes out a task.
    SweepTask,
}

/// How many turns a sweep for tasks may take.
const TURNS_MAX: u32 = 2;

impl Op {
    /// Runs the whole pass, or one turn of a sweep. Returns whether it is over.
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

/// Accesses beyond those of passes, for planting mistakes.
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
    /// The number of rings: tasks have one class here.
    pub(crate) const fn count(&self) -> usize {
        match self.rings {
            RingPlan::One => 1,
            RingPlan::Ranked { ranks, .. } => ranks + 1,
        }
    }

    /// How many more tokens than tasks the line counts in a ring, if there is a line.
    pub(crate) fn counted(&self, line: LineWord, ring: usize) -> Option<i32> {
        let RingPlan::Ranked { ranks, .. } = self.rings else { return None };
        let tasks = ring.checked_sub(ranks).map(|class| -(line.waits(Side::Tasks, class) as i32));
        Some(tasks.unwrap_or(line.waits(Side::Tokens, ring) as i32))
    }
}

/// The programs of several CPUs, and what one CPU does before them.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) ring: Ring,
    pub(crate) rings: RingPlan,
    /// The first number of both kinds.
    pub(crate) start: u32,
    pub(crate) before: Vec<Op>,
    pub(crate) cpus: Vec<Vec<Op>>,
}

impl Scene {
    pub(crate) const fn rules(&self) -> Rules {
        Rules { ring: self.ring, rings: self.rings }
    }

    /// A ledger of the scene's tokens and tasks.
    pub(crate) fn ledger(&self) -> Ledger {
        let count = |is: fn(&Op) -> bool| {
            self.before.iter().chain(self.cpus.iter().flatten()).filter(|op| is(op)).count()
        };
        let tokens = count(|op| matches!(op, Op::Token(_) | Op::Ranked(..) | Op::StaleToken(_)));
        Ledger::new(tokens, count(|op| matches!(op, Op::Task(_))))
    }
}

/// A ring of 2 cells, each used once; no lap can wrap, for which 4 passes at once would need a ring of 16.
/// The check falls on the pass's own cell. The numbers, and the laps in the words, wrap between the two
/// cells.
pub(crate) fn two_and_two() -> Scene {
    Scene {
        ring: Ring { cell_bits: 1, part_bits: 0, ahead: 0 },
        rings: RingPlan::One,
        start: u32::MAX - 1,
        before: vec![],
        cpus: vec![vec![Op::Token(0)], vec![Op::Token(1)], vec![Op::Task(0)], vec![Op::Task(1)]],
    }
}

/// Two tokens and two tasks on a larger ring, with a sweep of tokens, which makes passes try further numbers.
pub(crate) fn with_a_sweep() -> Scene {
    let mut scene = two_and_two();
    scene.ring = Ring { cell_bits: 4, part_bits: 3, ahead: 6 };
    scene.cpus.push(vec![Op::SweepTokens(2, 3)]);
    scene
}

/// The scene of [`with_a_sweep`], with a sweep of tasks instead.
pub(crate) fn with_a_sweep_of_tasks() -> Scene {
    let mut scene = with_a_sweep();
    scene.cpus.pop();
    scene.cpus.push(vec![Op::SweepTask]);
    scene
}

/// Two sweeps at once, over stale and valid tokens.
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

/// Two CPUs on the smallest ring for two: one continues for more than a lap while the other reads a task's
/// cell, across the wrap of the numbers.
pub(crate) fn two_over_a_lap() -> Scene {
    Scene {
        ring: Ring { cell_bits: 3, part_bits: 2, ahead: 3 },
        rings: RingPlan::One,
        start: u32::MAX - 7,
        before: vec![Op::Task(0)],
        cpus: vec![vec![Op::Token(0)], pairs(1, 12)],
    }
}

/// Three CPUs on the smallest ring for three: the third one's token may take a number long after its check.
pub(crate) fn three_over_a_lap() -> Scene {
    Scene {
        ring: Ring { cell_bits: 3, part_bits: 2, ahead: 4 },
        rings: RingPlan::One,
        start: 0,
        before: vec![Op::Task(0)],
        cpus: vec![vec![Op::Token(0)], pairs(1, 8), vec![Op::Token(8)]],
    }
}

/// While one CPU reads a task's cell, a sweep repeatedly voids the cell that the token of another is to
/// find.
pub(crate) fn voided_over_a_lap() -> Scene {
    let mut scene = three_over_a_lap();
    scene.cpus[1] = [pairs(1, 3), vec![Op::Token(3)]].concat();
    scene.cpus[2] = vec![Op::SweepTokens(5, 6)];
    scene
}

/// Two ranks at once, on rings whose cells are used once.
pub(crate) fn ranked(tries: u32) -> Scene {
    let mut scene = two_and_two();
    scene.rings = RingPlan::Ranked { ranks: 2, tries };
    scene.cpus[0] = vec![Op::Ranked(0, 1)];
    scene
}

/// Two ranks on larger rings, with a sweep of tokens of the lowest rank, which makes a token of that rank
/// try another number.
pub(crate) fn ranked_with_a_sweep() -> Scene {
    let mut scene = ranked(4);
    scene.ring = Ring { cell_bits: 4, part_bits: 2, ahead: 8 };
    scene.before = vec![Op::StaleToken(2), Op::Ranked(0, 1)];
    scene.cpus = vec![vec![Op::Token(1)], vec![Op::Task(0)], vec![Op::SweepTokens(2, 3)]];
    scene
}

/// The rings of [`ranked_with_a_sweep`], with a sweep of tasks instead.
pub(crate) fn ranked_with_a_sweep_of_tasks() -> Scene {
    let mut scene = ranked_with_a_sweep();
    scene.before = vec![Op::Task(1)];
    scene.cpus = ranked(4).cpus;
    scene.cpus[3] = vec![Op::SweepTask];
    scene
}

/// Two CPUs on the smallest rings for two: one continues for more than a lap of the tasks' ring while the
/// other reads a task's cell in it.
pub(crate) fn tasks_over_a_lap() -> Scene {
    let mut scene = two_over_a_lap();
    scene.ring.ahead = 4;
    scene.rings = RingPlan::Ranked { ranks: 2, tries: 4 };
    scene.cpus[1] = (1..12).flat_map(|pair| [Op::Task(pair.into()), Op::Token(pair)]).collect();
    scene
}

/// Two CPUs as in [`tasks_over_a_lap`], but on the token ring of a rank: one CPU has counted its token in
/// the line, and has no number yet.
pub(crate) fn tokens_over_a_lap() -> Scene {
    let mut scene = tasks_over_a_lap();
    scene.before = vec![];
    scene.cpus = vec![
        vec![Op::Ranked(0, 1)],
        (0..12).flat_map(|pair| [Op::Task(pair.into()), Op::Ranked(pair + 1, 1)]).collect(),
    ];
    scene
}

/// One CPU brings two tokens of the lowest rank to rings of one cell, from which others take them. A token
/// of the next rank is parked, so that two tasks never wait in their own ring.
pub(crate) fn taken_in_one_cell() -> Scene {
    let mut scene = ranked(4);
    scene.ring.cell_bits = 0;
    scene.before = vec![Op::Ranked(2, 1)];
    scene.cpus = vec![vec![Op::Token(0), Op::Token(1)], vec![Op::Task(0)], vec![Op::Task(1)]];
    scene
}

/// Three CPUs on such a ring, which checks only the next cell: the third one's token may be counted in the
/// line long after its check.
pub(crate) fn three_ranked_over_a_lap() -> Scene {
    let mut scene = tokens_over_a_lap();
    scene.ring = Ring { cell_bits: 2, part_bits: 1, ahead: 0 };
    scene.start = 0;
    scene.cpus[1] = (0..4).flat_map(|pair| [Op::Task(pair.into()), Op::Ranked(pair + 1, 1)]).collect();
    scene.cpus.push(vec![Op::Ranked(5, 1)]);
    scene
}

/// A token, a task, the next token, the next task, and so on.
fn pairs(from: u16, to: u16) -> Vec<Op> {
    (from..to).flat_map(|pair| [Op::Token(pair), Op::Task(pair.into())]).collect()
}
