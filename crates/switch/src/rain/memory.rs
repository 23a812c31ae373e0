//! Rain's register arrays, and the stages they live in.

use sluice_wire::{Generation, WorkerId};

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
    pub(super) token_head: Register<u32>,
    pub(super) token_tail: Register<u32>,
    pub(super) tokens: Ring<ParkedToken>,
    pub(super) tasks: Ring<WaitingTask>,
}

const TOKEN_COLUMNS: [Column; 1] = [Column { name: "token", stage: 4, bits: 16 + 32 }];

/// One byte of payload a stage, as on the chip (Rain §4); what identifies the task lies beside it.
const TASK_COLUMNS: [Column; 14] = [
    Column { name: "payload 0", stage: 4, bits: 8 },
    Column { name: "client, attempt", stage: 4, bits: 32 },
    Column { name: "payload 1", stage: 5, bits: 8 },
    Column { name: "incarnation", stage: 5, bits: 64 },
    Column { name: "payload 2", stage: 6, bits: 8 },
    Column { name: "type, length", stage: 6, bits: 32 },
    Column { name: "payload 3", stage: 7, bits: 8 },
    Column { name: "arrived, age", stage: 7, bits: 64 },
    Column { name: "payload 4", stage: 8, bits: 8 },
    Column { name: "sequence", stage: 8, bits: 32 },
    Column { name: "payload 5", stage: 9, bits: 8 },
    Column { name: "priority, constraints, ahead", stage: 9, bits: 16 + 1 },
    Column { name: "payload 6", stage: 10, bits: 8 },
    Column { name: "payload 7", stage: 11, bits: 8 },
];

impl RainMemory {
    pub(super) fn new(layout: &mut Layout, config: &Config) -> Self {
        let slices = config.slices as usize;
        let start = config.counters_start.0;
        let tokens = slices * config.tokens_per_slice as usize;
        let tasks = slices * config.tasks_per_slice as usize;
        layout.queue(tasks as u32);
        Self {
            balance: Register::new(layout, "balance", 2, 32, slices, 0),
            task_head: Register::new(layout, "task head", 3, 32, slices, start),
            task_tail: Register::new(layout, "task tail", 3, 32, slices, start),
            token_head: Register::new(layout, "token head", 3, 32, slices, start),
            token_tail: Register::new(layout, "token tail", 3, 32, slices, start),
            tokens: Ring::new(layout, "token ring", &TOKEN_COLUMNS, tokens, ParkedToken::default()),
            tasks: Ring::new(layout, "task ring", &TASK_COLUMNS, tasks, WaitingTask::default()),
        }
    }
}

/// A token in its ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ParkedToken {
    pub(super) worker: WorkerId,
    pub(super) generation: Generation,
}
