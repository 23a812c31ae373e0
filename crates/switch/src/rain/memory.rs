//! Rain's register arrays, and the stages they live in.

use alloc::vec::Vec;

use super::tokens::ParkedTokens;
use crate::config::Config;
use crate::entry::WaitingTask;
use crate::pipeline::{Column, Layout, Register, Ring};

/// Register arrays.
#[derive(Debug)]
pub(super) struct RainMemory {
    /// Tokens parked (positive) or tasks waiting (negative) of each slice.
    pub(super) balance: Register<i32>,
    pub(super) task_head: Register<u32>,
    pub(super) task_tail: Register<u32>,
    pub(super) tokens: ParkedTokens,
    pub(super) tasks: Ring<WaitingTask>,
}

/// Where the parts of the memory live that come later the more ranks are counted before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stages {
    /// Counts of ranks, if there are any, and behind them heads and tails.
    counts: u8,
    heads: u8,
    /// The first of the rings.
    pub(super) rings: u8,
}

impl Stages {
    pub(super) const fn of(ranks: u8) -> Self {
        let counts = BALANCE + 1;
        let heads = counts + ParkedTokens::words(ranks);
        Self { counts, heads, rings: heads + 1 }
    }

    /// The workers' counters: behind the generation of a token that was taken.
    pub(super) const fn sent(self) -> u8 {
        if self.heads > self.counts { self.rings + 3 } else { self.rings + 2 }
    }
}

const BALANCE: u8 = 2;

/// What the ring of tasks takes of a stage, counted from its first.
type Part = (&'static str, u8, u32);

/// One byte of payload a stage, as on the chip (Rain §4); what identifies the task lies beside it.
const PAPER: &[Part] = &[
    ("payload 0", 0, 8),
    ("client, attempt", 0, 32),
    ("payload 1", 1, 8),
    ("incarnation", 1, 64),
    ("payload 2", 2, 8),
    ("type, length", 2, 32),
    ("payload 3", 3, 8),
    ("arrived, age", 3, 64),
    ("payload 4", 4, 8),
    ("sequence", 4, 32),
    ("payload 5", 5, 8),
    ("priority, constraints, ahead", 5, 16 + 1),
    ("payload 6", 6, 8),
    ("payload 7", 7, 8),
];

/// Two bytes of payload a stage: what counts ranks takes up to two stages, and its rings most of one.
const CLOSER: &[Part] = &[
    ("client, attempt", 0, 32),
    ("payload 0, 1", 0, 16),
    ("incarnation", 1, 64),
    ("payload 2, 3", 2, 16),
    ("arrived, age", 3, 64),
    ("sequence, priority, constraints, ahead", 4, 32 + 16 + 1),
    ("payload 4, 5", 4, 16),
    ("type, length", 5, 32),
    ("payload 6, 7", 5, 16),
];

fn task_columns(ranks: u8, first: u8) -> Vec<Column> {
    let parts = if ranks > 1 { CLOSER } else { PAPER };
    parts.iter().map(|(name, stage, bits)| Column { name, stage: first + stage, bits: *bits }).collect()
}

impl RainMemory {
    pub(super) fn new(layout: &mut Layout, config: &Config, ranks: u8, stages: Stages) -> Self {
        let slices = config.slices as usize;
        let start = config.counters_start.0;
        let tasks = slices * config.tasks_per_slice as usize;
        let columns = task_columns(ranks, stages.rings);
        layout.queue(tasks as u32);
        Self {
            balance: Register::new(layout, "balance", BALANCE, 32, slices, 0),
            task_head: Register::new(layout, "task head", stages.heads, 32, slices, start),
            task_tail: Register::new(layout, "task tail", stages.heads, 32, slices, start),
            tokens: ParkedTokens::new(layout, config, ranks, stages.counts),
            tasks: Ring::new(layout, "task ring", &columns, tasks, WaitingTask::default()),
        }
    }
}
