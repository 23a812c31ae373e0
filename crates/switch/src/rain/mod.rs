//! Rain: one queue per slice that holds either waiting tasks or parked tokens (Rain §3.2.1, §3.2.3).
//!
//! One number, `balance`, says what the queue holds: above zero, so many tokens; below, so many tasks. A
//! token that arrives adds one and a task takes one away, and the value before says what to do: meet what
//! waits on the other side, or wait. So each arrival is decided by one access, and nothing ever has to be
//! taken back.
//!
//! What the paper leaves open stands in the shared front: each token is granted once and each try of a task
//! enters once, whatever the network repeats, reorders or loses. A token of a worker that died or moved is
//! never used; a task that cannot wait is refused aloud.
//!
//! The bytes of a large task that waits are written ahead (module `engine`), unless the switch is made
//! without servers: then they stay with the driver, under their handle.
//!
//! Tokens may be told apart by how many tasks stand before them at their workers (module `tokens`).
//!
//! The stages, behind the front's 0 and 1: `balance` (2), heads and tails (3), rings (4 to 11), `gen_out`
//! (5), `sent` and `seen_out` (6); at egress the servers' rows (7) and packet numbers (8). Where tokens have
//! ranks, their counts take one or two stages behind `balance`, and all else comes so much later.
#![expect(clippy::inline_always, reason = "a packet is copied at each call that stays one")]

mod engine;
mod memory;
mod settings;
mod sweeps;
mod tokens;

use sluice_wire::tables::{Feed, RANKS_MAX, SliceRow, SliceState, TableAnswer, TableOp};
use sluice_wire::{Endpoint, Nanos, Place, Psn, Rank, RejectReason, Serial, ServerId, SliceId, Sweep};

use crate::config::Config;
use crate::entry::{Kept, WaitingTask, cell};
use crate::front::{BackStages, Entering, Front, Granted, Queued, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Parked, Replica, Verdict, WriteAhead};
use crate::refusal::Refusal;
use engine::RdmaEngine;
use memory::{RainMemory, Stages};
pub(crate) use settings::Settings;
use tokens::ParkedToken;

/// How often a task may go round because the tokens that it met were stale (it is rejected then).
pub const ROUNDS_MAX: u64 = 16;

/// Rain's program and memory.
#[derive(Debug)]
pub struct Rain {
    front: Front,
    memory: RainMemory,
    /// There if there is room for servers.
    engine: Option<RdmaEngine>,
}

impl Rain {
    /// An empty switch: no sources, no slices open.
    ///
    /// # Panics
    /// If a ring or cell count is not a power of two, or the memory does not fit the chip.
    pub fn new(config: Config) -> Self {
        Self::ranked(config, 1)
    }

    /// The same with tokens told apart by so many ranks, 1 to [`RANKS_MAX`].
    ///
    /// # Panics
    /// As [`Rain::new`], and if there are more ranks or none.
    pub fn ranked(config: Config, ranks: u8) -> Self {
        assert!((1..=RANKS_MAX).contains(&usize::from(ranks)), "1 to {RANKS_MAX} ranks, not {ranks}");
        let stages = Stages::of(ranks);
        let back = BackStages { gen_out: stages.rings + 1, sent: stages.sent() };
        let mut front = Front::new(Self::NAME, Feed::Tokens { ranked: ranks > 1 }, config, back);
        let memory = RainMemory::new(&mut front.layout, &config, ranks, stages);
        let engine =
            (config.servers > 0).then(|| RdmaEngine::new(&mut front.layout, &config, stages.rings + 3));
        Self { front, memory, engine }
    }
}

impl Scheduler for Rain {
    const NAME: &'static str = "rain";

    #[inline]
    fn front(&self) -> &Front {
        &self.front
    }

    #[inline]
    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    /// A granted token meets a waiting task, or parks (Rain §3.2.1).
    #[inline(always)]
    fn token(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        rank: Rank,
    ) -> Verdict {
        let cap = self.front.config.tokens_per_slice;
        let balance =
            self.memory.balance.branch(pass, slice.0 as usize, |b| b < cap as i32, |b| b + 1, |b| b);
        if balance >= cap as i32 {
            debug_assert!(false, "rain: slice {slice} was given more tokens than its ring holds");
            return Verdict::Drop(Refusal::TokenRingFull);
        }
        if balance >= 0 {
            let token = ParkedToken { worker: granted.worker, generation: granted.generation };
            self.memory.tokens.park(pass, slice, rank, token);
            self.front.note_granted(pass, granted);
            return Verdict::Parked;
        }
        let (task, place) = self.take_task(pass, slice);
        let queued = Queued { wait: task.waited(now), occupancy: balance.unsigned_abs() - 1 };
        self.front.dispatch_from(pass, &task.submit(), place, granted, queued)
    }

    /// A task meets a parked token, or waits, or finds the queue full. One that met a stale token comes round
    /// as a new arrival, past its replay cell.
    #[inline(always)]
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, memo } = task;
        let round = memo.unwrap_or(0);
        if round > ROUNDS_MAX {
            return self.front.reject(submit, RejectReason::StaleTokens);
        }
        let (slice, limit) = match self.front.open_slice(submit) {
            Ok((slice, SliceRow { limit, .. })) => (slice, *limit),
            Err(reason) => return self.front.reject(submit, reason),
        };
        let s = slice.0 as usize;
        let full = -(limit as i32);
        let balance = self.memory.balance.branch(pass, s, |b| b > full, |b| b - 1, |b| b);
        if balance <= full {
            return self.front.reject(submit, RejectReason::QueueFull);
        }
        if balance <= 0 {
            let ticket = self.memory.task_tail.update(pass, s, |tail| tail.wrapping_add(1));
            let index = cell(s, ticket, self.front.config.tasks_per_slice);
            let write = self.engine.as_ref().and_then(|engine| engine.ahead(slice, ticket, submit));
            self.memory.tasks.write(
                pass,
                index,
                WaitingTask::of(submit, arrived, self.kept(write.is_some())),
            );
            return write.map_or(Verdict::Parked, Verdict::Ahead);
        }
        let Some(ParkedToken { worker, generation }) = self.memory.tokens.take(pass, slice) else {
            debug_assert!(false, "rain: slice {slice} has fewer tokens than its balance");
            return self.front.reject(submit, RejectReason::StaleTokens);
        };
        if !self.front.is_live(pass, worker, generation) {
            return Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo: round + 1 });
        }
        let granted = Granted { worker, generation, seen: None };
        let queued = Queued { wait: now.since(arrived), occupancy: 0 };
        self.front.dispatch(pass, submit, granted, queued)
    }

    #[inline(never)]
    fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        self.broom(pass, now, sweep, memo)
    }

    fn servers(&self) -> u16 {
        self.front.config.servers
    }

    fn rings(&mut self, op: TableOp) -> Option<TableAnswer> {
        let engine = self.engine.as_mut()?;
        match op {
            TableOp::SetServer(server, row) => engine.set_server(server, row)?,
            TableOp::ReadServer(server) => return engine.read_server(server).map(TableAnswer::Server),
            TableOp::SetRing(slice, server, row) => engine.set_ring(slice, server, row)?,
            TableOp::ReadRing(slice, server) => {
                return engine.read_ring(slice, server);
            }
            TableOp::SetCopies(slice, copies) => engine.set_copies(slice, copies)?,
            _ => return None,
        }
        Some(TableAnswer::Done)
    }

    fn replica(&mut self, pass: &mut Pass, write: &WriteAhead, copy: u16) -> Option<Replica> {
        self.engine.as_mut()?.replica(pass, write, copy)
    }

    fn nak(&mut self, pass: &mut Pass, from: Endpoint, server: ServerId, expected: Psn) -> Verdict {
        let Some(engine) = self.engine.as_mut() else { return Verdict::Drop(Refusal::Unexpected) };
        engine.nak(pass, from, server, expected).map_or_else(Verdict::Drop, |()| Verdict::Parked)
    }

    fn slice_state(&self, slice: usize) -> SliceState {
        let (tokens_in, tokens_out) = self.memory.tokens.counts(slice);
        SliceState {
            row: SliceRow::default(),
            balance: self.memory.balance.peek(slice),
            tokens_in,
            tokens_out,
            tasks_out: Serial(self.memory.task_head.peek(slice)),
        }
    }

    fn waiting(&self) -> u32 {
        let waits = |slice| self.memory.balance.peek(slice).min(0).unsigned_abs();
        (0..self.front.config.slices.into()).map(waits).sum()
    }

    fn parked(&self, slice: SliceId) -> Parked {
        let (memory, config, s) = (&self.memory, &self.front.config, slice.0 as usize);
        let (head, tail) = (memory.task_head.peek(s), memory.task_tail.peek(s));
        let tickets = (0..tail.wrapping_sub(head)).map(|step| head.wrapping_add(step));
        let task = |ticket| memory.tasks.peek(cell(s, ticket, config.tasks_per_slice)).submit();
        let token = |token: ParkedToken| (token.worker, token.generation);
        Parked {
            tasks: tickets.map(task).collect(),
            tokens: memory.tokens.parked(slice).map(token).collect(),
        }
    }
}

impl Rain {
    /// Who keeps the bytes of a task that waits.
    const fn kept(&self, ahead: bool) -> Kept {
        match (ahead, &self.engine) {
            (true, _) => Kept::Ahead,
            (false, Some(_)) => Kept::Client,
            (false, None) => Kept::Driver,
        }
    }

    /// Takes the task that has waited longest. The balance has told that there is one.
    #[inline(always)]
    fn take_task(&mut self, pass: &mut Pass, slice: SliceId) -> (WaitingTask, Place) {
        let s = slice.0 as usize;
        let ticket = self.memory.task_head.update(pass, s, |head| head.wrapping_add(1));
        let task = self.memory.tasks.read(pass, cell(s, ticket, self.front.config.tasks_per_slice));
        (task, task.place(slice, ticket))
    }
}
