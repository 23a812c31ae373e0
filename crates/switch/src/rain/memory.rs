//! Rain's tables and register arrays, and the stages they live in.

use alloc::boxed::Box;
use alloc::vec;

use sluice_wire::tables::{ClientRow, SliceRow, WorkerRow};
use sluice_wire::{
    Age, Attempt, ClientId, Generation, Handle, Incarnation, Nanos, Payload, Serial, SliceId, Submit, TaskId,
    TaskType, WorkerId,
};

use super::Config;
use crate::pipeline::{Column, Layout, Register, Ring};

/// Match tables: the data plane reads them, the controller writes them.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) workers: Box<[Option<WorkerRow>]>,
    pub(super) clients: Box<[Option<ClientRow>]>,
    pub(super) slices: Box<[SliceRow]>,
    pub(super) types: Box<[Option<SliceId>]>,
}

impl Tables {
    pub(super) fn new(layout: &mut Layout, config: &Config) -> Self {
        let (workers, clients) = (config.workers as usize, config.clients as usize);
        // Key, address and port, index; then slice, generation, open.
        layout.table("sources: workers", 0, 32 + 144 + 16 + 16 + 32 + 1, workers);
        layout.table("sources: clients", 0, 32 + 144 + 16, clients);
        layout.table("types", 0, 16 + 16, config.types as usize);
        layout.table("slices", 0, 1 + 32 + 32, config.slices as usize);
        Self {
            workers: vec![None; workers].into_boxed_slice(),
            clients: vec![None; clients].into_boxed_slice(),
            slices: vec![SliceRow::default(); config.slices as usize].into_boxed_slice(),
            types: vec![None; config.types as usize].into_boxed_slice(),
        }
    }
}

/// Register arrays.
#[derive(Debug)]
pub(super) struct Memory {
    /// Tokens granted to each worker.
    pub(super) seen: Register<u32>,
    /// The newest try of a task that each of a client's residues has let in.
    pub(super) replay: Register<u64>,
    /// Tokens parked (positive) or tasks waiting (negative) of each slice.
    pub(super) balance: Register<i32>,
    pub(super) task_head: Register<u32>,
    pub(super) task_tail: Register<u32>,
    pub(super) token_head: Register<u32>,
    pub(super) token_tail: Register<u32>,
    pub(super) tokens: Ring<ParkedToken>,
    pub(super) tasks: Ring<WaitingTask>,
    /// The generation that a popped token must have.
    pub(super) gen_out: Register<u32>,
    /// Tasks sent to each worker.
    pub(super) sent: Register<u32>,
    /// `seen`, where a packet that popped a token can still read it.
    pub(super) seen_out: Register<u32>,
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
    Column { name: "priority, constraints", stage: 9, bits: 16 },
    Column { name: "payload 6", stage: 10, bits: 8 },
    Column { name: "payload 7", stage: 11, bits: 8 },
];

impl Memory {
    pub(super) fn new(layout: &mut Layout, config: &Config) -> Self {
        let workers = config.workers as usize;
        let slices = config.slices as usize;
        let start = config.counters_start.0;
        let cells = config.clients as usize * config.replay_cells as usize;
        let tokens = slices * config.tokens_per_slice as usize;
        let tasks = slices * config.tasks_per_slice as usize;
        Self {
            seen: Register::new(layout, "seen", 1, 32, workers, start),
            replay: Register::new(layout, "replay", 1, 64, cells, 0),
            balance: Register::new(layout, "balance", 2, 32, slices, 0),
            task_head: Register::new(layout, "task head", 3, 32, slices, start),
            task_tail: Register::new(layout, "task tail", 3, 32, slices, start),
            token_head: Register::new(layout, "token head", 3, 32, slices, start),
            token_tail: Register::new(layout, "token tail", 3, 32, slices, start),
            tokens: Ring::new(layout, "token ring", &TOKEN_COLUMNS, tokens, ParkedToken::default()),
            tasks: Ring::new(layout, "task ring", &TASK_COLUMNS, tasks, WaitingTask::default()),
            gen_out: Register::new(layout, "gen_out", 5, 32, workers, 0),
            sent: Register::new(layout, "sent", 6, 32, workers, start),
            seen_out: Register::new(layout, "seen_out", 6, 32, workers, start),
        }
    }
}

/// A token in its ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ParkedToken {
    pub(super) worker: WorkerId,
    pub(super) generation: Generation,
}

/// A task in its ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingTask {
    incarnation: Incarnation,
    sequence: Serial,
    times: Times,
    client: ClientId,
    attempt: Attempt,
    task_type: TaskType,
    len: u16,
    inline: [u8; 8],
    /// The driver's, beside the chip's columns: with the RDMA engine the slot follows from the ring's ticket.
    handle: Handle,
    priority: u8,
    constraints: u8,
}

impl Default for WaitingTask {
    fn default() -> Self {
        Self::of(&Submit::default(), Nanos::default())
    }
}

impl WaitingTask {
    #[inline]
    pub(super) const fn of(submit: &Submit, arrived: Nanos) -> Self {
        Self {
            incarnation: submit.task.incarnation,
            sequence: submit.task.sequence,
            times: Times::of(arrived, submit.age),
            client: submit.client,
            attempt: submit.attempt,
            task_type: submit.task_type,
            len: submit.payload.len,
            inline: submit.payload.inline,
            handle: submit.payload.handle,
            priority: submit.priority,
            constraints: submit.constraints,
        }
    }

    /// The task as its client submitted it, but for the epoch and key that it was let in with.
    #[inline]
    pub(super) fn submit(&self) -> Submit {
        Submit {
            client: self.client,
            task: TaskId { incarnation: self.incarnation, sequence: self.sequence },
            attempt: self.attempt,
            task_type: self.task_type,
            priority: self.priority,
            constraints: self.constraints,
            age: self.times.age(),
            payload: Payload { len: self.len, inline: self.inline, handle: self.handle },
            ..Submit::default()
        }
    }

    /// How long it has waited.
    #[inline]
    pub(super) const fn waited(&self, now: Nanos) -> Nanos {
        self.times.since_arrival(now)
    }
}

/// When a task arrived and how old it was then, in one word: 40 bits of 16 ns, which wrap after 4.9 h, and 24 bits of
/// an [`Age`], which saturate after 4.6 min. Workers refuse what may be older than they remember, which is less.
#[derive(Clone, Copy, Debug)]
struct Times(u64);

impl Times {
    const TICK_SHIFT: u32 = 4;
    const AGE_BITS: u32 = 24;
    const AGE_MAX: u32 = (1 << Self::AGE_BITS) - 1;

    #[inline]
    const fn of(arrived: Nanos, age: Age) -> Self {
        let age = if age.0 > Self::AGE_MAX { Self::AGE_MAX } else { age.0 };
        Self((arrived.0 >> Self::TICK_SHIFT) << Self::AGE_BITS | age as u64)
    }

    #[inline]
    const fn age(self) -> Age {
        let age = self.0 as u32 & Self::AGE_MAX;
        if age == Self::AGE_MAX { Age::MAX } else { Age(age) }
    }

    #[inline]
    const fn since_arrival(self, now: Nanos) -> Nanos {
        let ticks =
            Self::of(now, Age(0)).0.wrapping_sub(self.0 - self.0 % (1 << Self::AGE_BITS)) >> Self::AGE_BITS;
        Nanos(ticks << Self::TICK_SHIFT)
    }
}

/// The replay cell's word for one try: of two tries at one residue, the newer one's word is ahead.
#[inline]
pub(super) const fn replay_word(sequence: Serial, attempt: Attempt) -> u64 {
    (sequence.0 as u64) << 32 | (attempt.0 as u64) << 16
}
