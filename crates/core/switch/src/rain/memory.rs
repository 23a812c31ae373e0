//! Rain's register arrays.

use alloc::vec::Vec;

use super::stages::{Kinds, Stages};
use super::tasks::WaitingTasks;
use super::tokens::ParkedTokens;
use crate::config::Config;
use crate::pipeline::{Column, Layout, Register};

/// Register arrays.
#[derive(Debug)]
pub(super) struct RainMemory {
    /// Tokens parked (positive) or tasks waiting (negative) of each slice.
    pub(super) balance: Register<i32>,
    pub(super) tokens: ParkedTokens,
    pub(super) tasks: WaitingTasks,
}

/// A column of the ring of tasks: its name, its stage counted from the ring's first, and its bits.
type Part = (&'static str, u8, u32);

/// About one byte of payload a stage, as on the chip (Rain §4). The fields that identify the task lie beside
/// it. In this order and the others, budget and time come first: two stages later it is known whether the
/// task is late, and whether its token counts as spent.
const PAPER: &[Part] = &[
    ("client, attempt", 0, 32),
    ("budget", 0, 16),
    ("payload 1", 1, 8),
    ("arrived, age", 1, 64),
    ("payload 2", 2, 8),
    ("type, length", 2, 32),
    ("payload 3", 3, 8),
    ("incarnation", 3, 64),
    ("payload 4", 4, 8),
    ("sequence", 4, 32),
    ("payload 5", 5, 8),
    ("priority, constraints, ahead", 5, 16 + 1),
    ("payload 6", 6, 8),
    ("payload 0", 6, 8),
    ("payload 7", 7, 8),
];

/// Two bytes of payload a stage: counts of ranks or classes take up to two stages, and the ranks' rings
/// most of one.
const CLOSER: &[Part] = &[
    ("client, attempt", 0, 32),
    ("budget", 0, 16),
    ("arrived, age", 1, 64),
    ("payload 2, 3", 2, 16),
    ("incarnation", 3, 64),
    ("sequence, priority, constraints, ahead", 4, 32 + 16 + 1),
    ("payload 4, 5", 4, 16),
    ("type, length", 5, 32),
    ("payload 6, 7", 5, 16),
    ("payload 0, 1", 5, 16),
];

/// The whole entry in five stages, where counts take four.
const NARROW: &[Part] = &[
    ("client, attempt", 0, 32),
    ("budget", 0, 16),
    ("payload 0, 1", 0, 16),
    ("arrived, age", 1, 64),
    ("payload 6", 1, 8),
    ("type, length", 2, 32),
    ("payload 2, 3", 2, 16),
    ("incarnation", 3, 64),
    ("sequence, priority, constraints, ahead", 4, 32 + 16 + 1),
    ("payload 4, 5", 4, 16),
    ("payload 7", 4, 8),
];

/// The columns of the ring of waiting tasks, if not every worker serves every task.
pub(super) fn narrow_columns(first: u8) -> Vec<Column> {
    columns(NARROW, first)
}

/// The columns for a program that has more arrays behind the ring.
pub(super) fn columns_before_another(kinds: Kinds, first: u8) -> Vec<Column> {
    columns(if kinds == Kinds::ONE { CLOSER } else { NARROW }, first)
}

pub(super) fn task_columns(kinds: Kinds, first: u8) -> Vec<Column> {
    columns(if kinds == Kinds::ONE { PAPER } else { CLOSER }, first)
}

fn columns(parts: &[Part], first: u8) -> Vec<Column> {
    parts.iter().map(|(name, stage, bits)| Column { name, stage: first + stage, bits: *bits }).collect()
}

impl RainMemory {
    pub(super) fn new(
        layout: &mut Layout,
        config: &Config,
        kinds: Kinds,
        stages: Stages,
        columns: &[Column],
    ) -> Self {
        Self {
            balance: Register::new(layout, "balance", Stages::BALANCE, 32, config.slices.into(), 0),
            tokens: ParkedTokens::new(layout, config, kinds.ranks, stages),
            tasks: WaitingTasks::new(layout, config, columns, kinds.classes, stages),
        }
    }
}
