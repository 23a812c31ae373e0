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
//! The stages, behind the front's 0 and 1: `balance` (2), heads and tails (3), rings (4 to 11), `gen_out`
//! (5), `sent` and `seen_out` (6); at egress the servers' rows (7) and packet numbers (8).
#![expect(clippy::inline_always, reason = "a packet is copied at each call that stays one")]

mod engine;
mod memory;

use alloc::boxed::Box;
use core::fmt;

use sluice_wire::tables::{Feed, SliceRow, SliceState, TableAnswer, TableOp};
use sluice_wire::{
    Endpoint, Generation, Nanos, Psn, RejectReason, Serial, ServerId, SliceId, Submit, Sweep, SweepOf,
    WorkerId,
};

use crate::adaptive::Adaptive;
use crate::arguments;
use crate::config::Config;
use crate::early::Early;
use crate::entry::{Kept, WaitingTask, cell};
use crate::front::{BackStages, Entering, Front, Granted, Queued, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Parked, Program, Replica, Verdict, WriteAhead};
use crate::refusal::Refusal;
use crate::settings::{ProgramSettings, Published};
use engine::RdmaEngine;
use memory::{ParkedToken, RainMemory};

/// How often a task may go round because the tokens that it met were stale (it is rejected then).
pub const ROUNDS_MAX: u64 = 16;

/// Tokens of each worker, unless something else is asked for.
const DEPTH: u8 = 2;

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
        let mut front = Front::new(Self::NAME, Feed::Tokens, config, BackStages { gen_out: 5, sent: 6 });
        let memory = RainMemory::new(&mut front.layout, &config);
        let engine = (config.servers > 0).then(|| RdmaEngine::new(&mut front.layout, &config));
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
    fn token(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, granted: Granted) -> Verdict {
        let s = slice.0 as usize;
        let cap = self.front.config.tokens_per_slice;
        let balance = self.memory.balance.branch(pass, s, |b| b < cap as i32, |b| b + 1, |b| b);
        if balance >= cap as i32 {
            debug_assert!(false, "rain: slice {slice} was given more tokens than its ring holds");
            return Verdict::Drop(Refusal::TokenRingFull);
        }
        if balance >= 0 {
            let ticket = self.memory.token_tail.update(pass, s, |tail| tail.wrapping_add(1));
            let token = ParkedToken { worker: granted.worker, generation: granted.generation };
            self.memory.tokens.write(pass, cell(slice, ticket, cap), token);
            self.front.note_granted(pass, granted);
            return Verdict::Parked;
        }
        let ticket = self.memory.task_head.update(pass, s, |head| head.wrapping_add(1));
        let task = self.memory.tasks.read(pass, cell(slice, ticket, self.front.config.tasks_per_slice));
        let queued = Queued { wait: task.waited(now), occupancy: balance.unsigned_abs() - 1 };
        self.front.dispatch_from(pass, &task.submit(), task.place(slice, ticket), granted, queued)
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
            let index = cell(slice, ticket, self.front.config.tasks_per_slice);
            let write = self.engine.as_ref().and_then(|engine| engine.ahead(slice, ticket, submit));
            self.memory.tasks.write(
                pass,
                index,
                WaitingTask::of(submit, arrived, self.kept(write.is_some())),
            );
            return write.map_or(Verdict::Parked, Verdict::Ahead);
        }
        let ParkedToken { worker, generation } = self.pop_token(pass, slice);
        if !self.front.is_live(pass, worker, generation) {
            return Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo: round + 1 });
        }
        let granted = Granted { worker, generation, seen: None };
        let queued = Queued { wait: now.since(arrived), occupancy: 0 };
        self.front.dispatch(pass, submit, granted, queued)
    }

    /// The broom: one entry a pass, and a second pass for a token that parks again.
    #[inline(never)]
    fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep) -> Verdict {
        if let Some((worker, generation)) = sweep.carried
            && self.front.is_admitted(worker, generation)
        {
            let granted = Granted { worker, generation, seen: None };
            let verdict = self.token(pass, now, sweep.slice, granted);
            return if verdict == Verdict::Parked { go_on(sweep, None) } else { verdict };
        }
        match sweep.of {
            _ if sweep.left == 0 => Verdict::Drop(Refusal::SweepDone),
            SweepOf::Tokens => self.sweep_token(pass, sweep),
            SweepOf::Tasks => self.sweep_task(pass, sweep),
        }
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
        SliceState {
            row: SliceRow::default(),
            balance: self.memory.balance.peek(slice),
            tokens_in: Serial(self.memory.token_tail.peek(slice)),
            tokens_out: Serial(self.memory.token_head.peek(slice)),
            tasks_out: Serial(self.memory.task_head.peek(slice)),
        }
    }

    fn waiting(&self) -> u32 {
        let waits = |slice| self.memory.balance.peek(slice).min(0).unsigned_abs();
        (0..self.front.config.slices.into()).map(waits).sum()
    }

    fn parked(&self, slice: SliceId) -> Parked {
        let (memory, config, s) = (&self.memory, &self.front.config, slice.0 as usize);
        let tickets =
            |from: u32, to: u32| (0..to.wrapping_sub(from)).map(move |step| from.wrapping_add(step));
        let tasks = tickets(memory.task_head.peek(s), memory.task_tail.peek(s));
        let tokens = tickets(memory.token_head.peek(s), memory.token_tail.peek(s));
        let token = |ticket| memory.tokens.peek(cell(slice, ticket, config.tokens_per_slice));
        Parked {
            tasks: tasks
                .map(|ticket| memory.tasks.peek(cell(slice, ticket, config.tasks_per_slice)).submit())
                .collect(),
            tokens: tokens.map(token).map(|token| (token.worker, token.generation)).collect(),
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

    fn sweep_token(&mut self, pass: &mut Pass, sweep: Sweep) -> Verdict {
        let s = sweep.slice.0 as usize;
        if self.memory.balance.branch(pass, s, |b| b > 0, |b| b - 1, |b| b) <= 0 {
            return Verdict::Drop(Refusal::SweepDone);
        }
        let ParkedToken { worker, generation } = self.pop_token(pass, sweep.slice);
        let live = self.front.is_live(pass, worker, generation).then_some((worker, generation));
        go_on(Sweep { left: sweep.left - 1, ..sweep }, live)
    }

    /// Only a closed slice is swept of tasks: an open one's tasks have workers to wait for.
    fn sweep_task(&mut self, pass: &mut Pass, sweep: Sweep) -> Verdict {
        let s = sweep.slice.0 as usize;
        let closed = !self.front.tables.slices[s].open;
        let takes = |balance: i32| closed && balance < 0;
        if !takes(self.memory.balance.branch(pass, s, takes, |b| b + 1, |b| b)) {
            return Verdict::Drop(Refusal::SweepDone);
        }
        let ticket = self.memory.task_head.update(pass, s, |head| head.wrapping_add(1));
        let index = cell(sweep.slice, ticket, self.front.config.tasks_per_slice);
        let task: Submit = self.memory.tasks.read(pass, index).submit();
        self.front.sweep_out(&task)
    }

    #[inline(always)]
    fn pop_token(&mut self, pass: &mut Pass, slice: SliceId) -> ParkedToken {
        let ticket = self.memory.token_head.update(pass, slice.0 as usize, |head| head.wrapping_add(1));
        self.memory.tokens.read(pass, cell(slice, ticket, self.front.config.tokens_per_slice))
    }
}

fn go_on(sweep: Sweep, carried: Option<(WorkerId, Generation)>) -> Verdict {
    let cargo = Cargo::Sweep(Sweep { carried, ..sweep });
    Verdict::Again(Circulating { cargo, arrived: Nanos::default(), memo: 0 })
}

/// How many tokens each worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    tokens: u8,
    adaptive: Option<Adaptive>,
    early: Option<Early>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tokens: DEPTH, adaptive: None, early: None }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.adaptive {
            None => write!(f, "{}", self.tokens)?,
            Some(adaptive) if self.tokens == DEPTH => adaptive.fmt(f)?,
            Some(adaptive) => write!(f, "{},{adaptive}", self.tokens)?,
        }
        self.early.map_or(Ok(()), |early| write!(f, ",{early}"))
    }
}

impl ProgramSettings for Settings {
    fn name(&self) -> &'static str {
        Rain::NAME
    }

    fn about(&self) -> &'static str {
        "one queue holds either waiting tasks or workers' tokens (a token: room for one task); where both meet, a task leaves"
    }

    fn arguments(&self) -> &'static str {
        "N, how many tasks each worker may have at once (its tokens, its depth): 1 to 8, else 2; adaptive, depths and who \
         serves which slice follow the load; advise, the same is found and told, but not done; theta=0.3, behind one of \
         these two: the share of its wait that a task may spend at the worker, 0 to 1; slowdown=10, likewise: the p99 \
         slowdown that is wished for, 2 to 255; replay, likewise: our rule for depths, not the paper's; stay, likewise: \
         workers stay in their slices; early, tokens leave before tasks end, as services tell when; early=10%, the same, \
         told with this error (simulator only); early=learned, the same, as tasks of one type took (simulator only)"
    }

    fn example(&self) -> &'static str {
        "rain:2"
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        if let Some(early) = Early::take(argument) {
            self.early = Some(early);
            return Some(());
        }
        match arguments::number(argument, 1..=8) {
            Some(tokens) => self.tokens = tokens,
            None => self.adaptive = Some(Adaptive::take(self.adaptive, argument)?),
        }
        Some(())
    }

    fn quota(&self) -> u8 {
        self.tokens
    }

    fn adaptive(&self) -> Option<Adaptive> {
        self.adaptive
    }

    fn feed(&self) -> Feed {
        Feed::Tokens
    }

    fn writes_ahead(&self) -> bool {
        true
    }

    fn hosts_choose_depth(&self) -> bool {
        true
    }

    fn runs_in_kernel(&self) -> bool {
        true
    }

    fn early(&self) -> Option<Early> {
        self.early
    }

    /// Rain §4. The other papers give no figures for this shape.
    fn published(&self) -> Option<Published> {
        Some(Published { stages: 11, sram: 0.241, entries: 128 * 1024 })
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        Box::new(Rain::new(config))
    }
}
