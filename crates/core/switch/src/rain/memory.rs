//! Rain's register arrays.

use super::stages::{Kinds, Stages};
use super::tasks::WaitingTasks;
use super::tokens::ParkedTokens;
use crate::config::Config;
use crate::pipeline::{Layout, Register};

/// Register arrays.
#[derive(Debug)]
pub(super) struct RainMemory {
    /// Tokens parked (positive) or tasks waiting (negative) of each slice.
    pub(super) balance: Register<i32>,
    pub(super) tokens: ParkedTokens,
    pub(super) tasks: WaitingTasks,
}

impl RainMemory {
    pub(super) fn new(layout: &mut Layout, config: &Config, kinds: Kinds, stages: Stages) -> Self {
        Self {
            balance: Register::new(layout, "balance", Stages::BALANCE, 32, config.slices.into(), 0),
            tokens: ParkedTokens::new(layout, config, kinds.ranks, stages),
            tasks: WaitingTasks::new(layout, config, kinds.classes, stages),
        }
    }
}
