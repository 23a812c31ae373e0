//! Rain: one queue per slice that holds either waiting tasks or parked tokens (Rain §3.2.1, §3.2.3).
//!
//! One number, `balance`, says what the queue holds: above zero so many tokens, below zero so many tasks. A
//! token adds one, a task subtracts one, and the value before decides whether the arrival meets an entry of
//! the other side or waits. So one access decides each arrival, and no count is ever taken back.
//!
//! The shared front settles what the paper leaves open: each token is granted once and each try of a task
//! enters once, whatever the network repeats, reorders or loses. A token of a worker that died or moved is
//! never used. A task that cannot wait gets a REJECT.
//!
//! The bytes of a large task that waits are written ahead (module `rdma_engine`). In a switch without
//! servers they stay with the driver, under their handle.
//!
//! A task may have a budget, the longest wait after which it is still worth beginning. A token that takes a
//! task whose budget is spent recirculates to the next one, and the task gets a REJECT (`late`; ours). An
//! entry holds the budget as submitted, because it also holds when the task arrived.
//!
//! Tokens may have ranks, by how many tasks stand before them at their workers (module `tokens`); tasks may
//! have classes (module `tasks`).
//!
//! The stages, behind the front's 0 and 1: `balance` (2), heads and tails (3), rings (4 to 11), `gen_out`
//! (5), `sent` and `seen_out` (8); at egress the servers' rows (8) and packet numbers (9). Counts of ranks
//! or classes take one or two stages behind `balance`, and half as many tasks fit behind them
//! (`EntryTable`).
#![expect(clippy::inline_always, reason = "a packet is copied at each call that stays one")]

mod entries;
mod fill;
mod halves;
mod leaf;
mod limited;
mod memory;
mod notes;
mod queue_limit;
mod rings;
mod selective;
mod settings;
mod sized;
mod stages;
mod sweeps;
mod target;
mod tasks;
mod tokens;

use sluice_wire::tables::{Feed, KINDS_MAX, SliceRow, SliceState};
use sluice_wire::{Nanos, Rank, RejectReason, SliceId, Submit, Sweep};

use crate::config::Config;
use crate::entry::{Kept, WaitingTask};
use crate::front::{Entering, Front, Granted, Queued, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Parked, Verdict};
use crate::rdma_engine::RdmaEngine;
use crate::refusal::Refusal;
use entries::EntryTable;
pub use leaf::RainLeaf;
use memory::RainMemory;
use notes::ReturningToken;
use queue_limit::{QueueLimit, RowLimit};
pub use selective::Selective;
pub(crate) use settings::Settings;
pub use stages::Kinds;
use stages::Stages;
pub(crate) use target::Targeted;
pub use target::{FIRST_WINDOW, TargetChange, UNMEASURED};
use tasks::WaitsAt;
use tokens::ParkedToken;

/// How often a task may recirculate because it met stale tokens; after that it is rejected.
pub const ROUNDS_MAX: u64 = 16;

/// Rain's program and memory.
#[derive(Debug)]
pub struct Rain {
    front: Front,
    memory: RainMemory,
    /// `None` if there is no room for servers.
    engine: Option<RdmaEngine>,
}

impl Rain {
    /// A switch without sources, all slices closed.
    ///
    /// # Panics
    /// If a ring or cell count is not a power of two, or the memory does not fit the chip.
    pub fn new(config: Config) -> Self {
        Self::of_kinds(config, Kinds::ONE)
    }

    /// An empty switch that tells ranks of tokens and classes of tasks apart. Each class has a ring of its
    /// own.
    ///
    /// # Panics
    /// As [`Rain::new`], and if there are kinds that cannot be counted.
    pub fn of_kinds(config: Config, kinds: Kinds) -> Self {
        Self::with_table(config, kinds, kinds.table())
    }

    /// An empty switch whose entries stand as `table` says.
    fn with_table(config: Config, kinds: Kinds, table: EntryTable) -> Self {
        for count in [kinds.ranks, kinds.classes] {
            let counts = count.is_power_of_two() && usize::from(count) <= KINDS_MAX;
            assert!(counts, "1, 2 or 4 ranks and classes, not {count}");
        }
        let stages = Stages::of(kinds, table);
        let feed = Feed::Tokens { ranked: kinds.ranks > 1 };
        let mut front = Front::new(Self::NAME, feed, config, stages.back());
        (front.classes, front.servers) = (kinds.classes, config.servers);
        let memory = RainMemory::new(&mut front.layout, &config, kinds, stages);
        let engine = (config.servers > 0)
            .then(|| RdmaEngine::new(&mut front.layout, &config, kinds.classes, stages.servers()));
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
        if self.memory.tasks.are_classed() {
            self.token_among_classes(pass, now, slice, granted, rank)
        } else {
            self.token_of::<false>(pass, now, slice, (granted, rank), &mut None, &mut RowLimit)
        }
    }

    /// A task meets a parked token, or waits, or finds the queue full. A task that met a stale token
    /// recirculates as a new arrival; its replay cell is not checked again.
    #[inline(always)]
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        self.task_of(pass, now, task, &mut None, &mut RowLimit)
    }

    fn note(&mut self, pass: &mut Pass, now: Nanos, memo: u64) -> Verdict {
        match self.returning(memo) {
            Ok((slice, granted, rank)) => self.token(pass, now, slice, granted, rank),
            Err(refusal) => Verdict::Drop(refusal),
        }
    }

    #[inline(never)]
    fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        self.sweep(pass, now, sweep, memo)
    }

    fn engine(&mut self) -> Option<&mut RdmaEngine> {
        self.engine.as_mut()
    }

    fn slice_state(&self, slice: usize) -> SliceState {
        let (tokens_in, tokens_out) = self.memory.tokens.counts(slice);
        let (tasks_in, tasks_out) = self.memory.tasks.counts(slice);
        SliceState {
            row: SliceRow::default(),
            balance: self.memory.balance.peek(slice),
            tokens_in,
            tokens_out,
            tasks_in,
            tasks_out,
            ..SliceState::default()
        }
    }

    fn waiting(&self) -> u32 {
        let waits = |slice| self.memory.balance.peek(slice).min(0).unsigned_abs();
        (0..self.front.config.slices.into()).map(waits).sum()
    }

    fn parked(&self, slice: SliceId) -> Parked {
        let token = |token: ParkedToken| (token.worker, token.generation);
        Parked {
            tasks: self.memory.tasks.waiting(slice).map(|task| self.front.whole(&task)).collect(),
            tokens: self.memory.tokens.parked(slice).map(token).collect(),
        }
    }
}

impl Rain {
    /// Kept apart, so that a program without classes does not pay for them.
    #[inline(never)]
    fn token_among_classes(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        rank: Rank,
    ) -> Verdict {
        self.token_of::<true>(pass, now, slice, (granted, rank), &mut None, &mut RowLimit)
    }

    /// Writes also to `left` what the slice's queue holds after the pass, if the pass has seen that. An
    /// argument, because a verdict that is returned in a tuple is copied twice.
    #[inline(always)]
    fn token_of<const CLASSED: bool>(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        (granted, rank): (Granted, Rank),
        left: &mut Option<Left>,
        queue_limit: &mut impl QueueLimit,
    ) -> Verdict {
        let cap = self.front.config.tokens_per_slice;
        let wish = if CLASSED { self.memory.tasks.wish(pass, slice) } else { 0 };
        let balance =
            self.memory.balance.branch(pass, slice.0 as usize, |b| b < cap as i32, |b| b + 1, |b| b);
        if balance >= cap as i32 {
            debug_assert!(false, "rain: slice {slice} was given more tokens than its ring holds");
            return Verdict::Drop(Refusal::TokenRingFull);
        }
        let balance_left = balance + 1;
        if balance >= 0 {
            let token = ParkedToken { worker: granted.worker, generation: granted.generation };
            let first = self.memory.tokens.park(pass, slice, rank, token);
            queue_limit.token_came(pass, now, slice, true);
            self.front.note_granted(pass, granted);
            let first = first.unwrap_or(balance_left.unsigned_abs());
            *left = Some(Left { balance: balance_left, first });
            return Verdict::Parked;
        }
        *left = Some(Left { balance: balance_left, first: 0 });
        let (task, place) = self.memory.tasks.take::<CLASSED>(pass, slice, wish);
        queue_limit.token_came(pass, now, slice, false);
        if task.is_late(now) {
            *left = None;
            return self.late(pass, slice, task, (granted, rank));
        }
        let queued = Queued { wait: task.waited(now), occupancy: balance.unsigned_abs() - 1 };
        self.front.dispatch_waiting(pass, &task, place, granted, queued)
    }

    /// Refuses a task whose budget is spent. The token that took it is noted as granted, and meets the queue
    /// again: a pass has one access to the balance, so it cannot take another task or park. The task comes
    /// by value, because a reference would put every task that a token takes on the stack.
    #[cold]
    #[inline(never)]
    fn late(
        &mut self,
        pass: &mut Pass,
        slice: SliceId,
        task: WaitingTask,
        (granted, rank): (Granted, Rank),
    ) -> Verdict {
        self.front.note_granted(pass, granted);
        let Granted { worker, generation, .. } = granted;
        self.front.late(slice, &task, ReturningToken { worker, generation, rank }.memo())
    }

    /// The token of a note, as granted; or the reason for which the note changes nothing. Meanwhile the
    /// worker may have left.
    fn returning(&self, memo: u64) -> Result<(SliceId, Granted, Rank), Refusal> {
        let token = ReturningToken::read(memo).ok_or(Refusal::Unexpected)?;
        let ReturningToken { worker, generation, rank } = token;
        let row = self.front.tables.worker(worker).filter(|_| self.front.is_admitted(worker, generation));
        let slice = row.ok_or(Refusal::Closed)?.slice;
        Ok((slice, Granted { worker, generation, seen: None }, rank))
    }

    /// Writes also to `left` what the slice's queue holds after the pass, if the pass has seen that.
    #[inline(always)]
    fn task_of(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        task: Entering<'_>,
        left: &mut Option<Left>,
        queue_limit: &mut impl QueueLimit,
    ) -> Verdict {
        let Entering { submit, arrived, memo } = task;
        let round = memo.unwrap_or(0);
        if round > ROUNDS_MAX {
            return self.front.reject(submit, RejectReason::StaleTokens);
        }
        if is_late(submit, now.since(arrived)) {
            return self.front.reject_late(submit);
        }
        let (slice, limit) = match self.front.open_slice(submit) {
            Ok((slice, SliceRow { limit, .. })) => (slice, *limit),
            Err(reason) => return self.front.reject(submit, reason),
        };
        let most = queue_limit.most(pass, slice);
        let allowed = queue_limit.before_class(most, submit.priority);
        let s = slice.0 as usize;
        let full = -(limit.min(allowed) as i32);
        let balance = self.memory.balance.branch(pass, s, |b| b > full, |b| b - 1, |b| b);
        if balance <= full {
            *left = Some(Left { balance, first: 0 });
            if allowed < limit
                && let Some(target) = queue_limit.refused(slice)
            {
                return self.front.reject_busy(submit, most, target);
            }
            return self.front.reject(submit, RejectReason::QueueFull);
        }
        let balance_left = balance - 1;
        if balance <= 0 {
            let waiting = self.memory.tasks.enter(pass, slice, submit.priority);
            *left = Some(Left { balance: balance_left, first: 0 });
            if let Some(memo) = queue_limit.waits(pass, now, slice) {
                return self.wait_and_note(pass, now, waiting, (submit, arrived), memo);
            }
            let engine = self.engine.as_ref();
            let write = engine.and_then(|engine| engine.ahead(slice, waiting.name, submit));
            let task = WaitingTask::of(submit, arrived, Kept::of(write.is_some(), engine.is_some()));
            self.memory.tasks.write(pass, waiting, task);
            return write.map_or(Verdict::Parked, Verdict::Ahead);
        }
        let (ParkedToken { worker, generation }, first) = self.memory.tokens.take(pass, slice);
        *left = Some(Left { balance: balance_left, first: first.unwrap_or(balance_left.unsigned_abs()) });
        if !self.front.is_live(pass, worker, generation) {
            let memo = round + 1;
            return Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo });
        }
        let granted = Granted { worker, generation, seen: None };
        let queued = Queued { wait: now.since(arrived), occupancy: 0 };
        self.front.dispatch(pass, submit, granted, queued)
    }

    /// A task waits, and its pass sends a note in the place of a write ahead.
    #[cold]
    #[inline(never)]
    fn wait_and_note(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        waiting: WaitsAt,
        (submit, arrived): (&Submit, Nanos),
        memo: u64,
    ) -> Verdict {
        let task = WaitingTask::of(submit, arrived, Kept::of(false, self.engine.is_some()));
        self.memory.tasks.write(pass, waiting, task);
        Verdict::Again(Circulating { cargo: Cargo::Note, arrived: now, memo })
    }
}

/// Whether a task that has waited so long in the switch is not worth beginning any more.
#[inline(always)]
fn is_late(submit: &Submit, wait: Nanos) -> bool {
    !submit.budget.is_none() && submit.budget.after(wait).is_spent()
}

/// What a pass has left in a slice's queue.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// As [`RainMemory::balance`].
    balance: i32,
    /// Parked tokens of the first rank; all parked tokens if ranks are not told apart.
    first: u32,
}
