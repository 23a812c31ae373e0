//! Rain where not every worker serves every task of its slice (ours; in no paper): tasks need labels, or
//! wish for labels, that some workers have.
//!
//! One balance cannot decide here: a task may have to wait while tokens are parked that do not serve it. So
//! tokens are counted by the kind of their worker, and behind them tasks by their class, each in a ring of
//! its own. A task takes a token that serves it, or waits: one pass, as in plain Rain. A token passes the
//! counts of tokens before it can see whether a task waits. So it looks for a task first. If there is none,
//! the token recirculates, parks, and looks whether a task came meanwhile. If one did, a note for the
//! token's kind recirculates, takes one token out again, and that token looks once more.
//!
//! Hence no task waits beyond a few passes while a token that serves it is parked. Of a task and a token
//! that miss each other, one came later. A later task would have seen the token; a later token has seen the
//! task when it parked, and sent a note. A note that takes a stale token out goes on until it finds a live
//! one, or none.
//!
//! Workers look first for the tasks that need most, and tasks take the worker that has least. To let no
//! class starve, every 16th token of a kind looks first for another class. If labels are only wished for
//! (locality), a pass of its own looks for a worker that meets the wish.
//!
//! The stages, behind the front's 0 and 1: turns and tokens by kind (2, 3), tasks by class (4, 5), heads
//! and tails (6), rings (7 to 11), `gen_out` (8), `sent` and `seen_out` (10); at egress the servers' rows
//! (10) and packet numbers (11).

use sluice_wire::serving::Serving;
use sluice_wire::tables::{Feed, KINDS_MAX, SliceState};
use sluice_wire::{Nanos, Rank, RejectReason, SliceId, Submit, Sweep, WorkerId};

use super::fill::Fill;
use super::memory::narrow_columns;
use super::notes::{Round, TokenStep};
use super::rings::RingSet;
use super::stages::Stages;
use super::tasks;
use super::tokens::{self, ParkedToken};
use super::{ROUNDS_MAX, Rain, is_late};
use crate::config::Config;
use crate::entry::{Kept, WaitingTask};
use crate::front::{BackStages, Entering, Front, Granted, Queued, Scheduler};
use crate::pipeline::{Pass, Register};
use crate::program::{Cargo, Circulating, Parked, Verdict};
use crate::rdma_engine::RdmaEngine;
use crate::refusal::Refusal;

const KINDS: u8 = KINDS_MAX as u8;
const LAST_TURN: u16 = tasks::last_turn(KINDS);

/// A bit of a task's memo: it has asked the workers that meet its wishes once. The count of rounds stands
/// below.
const ASKED: u64 = 1 << 8;
/// The most times that a task may ask for its wish again.
pub(super) const WAIT_MAX: u8 = 64;

/// Rain's program and memory, with kinds of workers and classes of tasks.
#[derive(Debug)]
pub struct Selective {
    pub(super) front: Front,
    turn: Register<u16>,
    pub(super) parked: Fill,
    pub(super) tokens: RingSet<ParkedToken>,
    pub(super) waiting: Fill,
    pub(super) tasks: RingSet<WaitingTask>,
    engine: Option<RdmaEngine>,
    /// How often a task asks again for a worker that meets its wish, while other workers have room.
    patience: u8,
}

/// The result of taking a parked token.
pub(super) enum Taken {
    Nothing {
        /// How many tokens are parked of kinds that were not asked for.
        others: u32,
    },
    /// A token of a worker that has left, or has another generation now.
    Stale,
    Live(ParkedToken),
}

impl Selective {
    /// A switch without sources, all slices closed.
    ///
    /// # Panics
    /// If a ring or cell count is not a power of two, or the memory does not fit the chip.
    pub fn new(config: Config) -> Self {
        let words = Fill::words(KINDS);
        let stages = Stages::behind(2 * words);
        let back = BackStages { gen_out: stages.rings + 1, sent: stages.sent };
        let mut front = Front::new(Self::NAME, Feed::TOKENS, config, back);
        (front.classes, front.kinds, front.servers) = (KINDS, KINDS, config.servers);
        let slices = config.slices as usize;
        let layout = &mut front.layout;
        layout.table("needs of types", 0, 16 + 8, config.types.into());
        layout.table("classes of needs, kinds that serve them", 0, 16 + 8 + 2 + 8, slices << 8);
        layout.table("classes that kinds serve", 0, 16 + 2 + 8, slices * KINDS_MAX);
        let turn = tasks::turns(layout, slices * KINDS_MAX);
        let parked = Fill::new(layout, ["kinds 0, 1", "kinds 2, 3"], Stages::BALANCE, slices);
        let waiting = Fill::new(layout, ["classes 0, 1", "classes 2, 3"], Stages::BALANCE + words, slices);
        let tokens = tokens::rings_of(layout, &config, KINDS, stages);
        let sort = tasks::sort(&config, KINDS);
        layout.queue(u32::from(config.slices) * u32::from(KINDS) * sort.cells);
        let tasks = RingSet::new(layout, &config, sort, stages.heads, &narrow_columns(stages.rings));
        let engine = (config.servers > 0).then(|| RdmaEngine::new(layout, &config, KINDS, stages.rings + 3));
        Self { front, turn, parked, tokens, waiting, tasks, engine, patience: 0 }
    }

    /// Sets how often a task whose wish no worker meets now asks again, one pass each time, before it takes
    /// any worker: at most `WAIT_MAX` times.
    #[must_use]
    pub fn with_wait(self, patience: u8) -> Self {
        Self { patience: patience.min(WAIT_MAX), ..self }
    }

    /// Carries out a token's step.
    pub(super) fn step(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        step: TokenStep,
    ) -> Verdict {
        let kind = self.kind_of(granted.worker);
        let serves = self.serving(slice).serves(kind);
        match step {
            TokenStep::Look => self.look(pass, now, slice, granted, serves, TokenStep::Park),
            TokenStep::Park if self.park(pass, slice, granted, kind) => Round::Recall { slice, kind }.go(),
            TokenStep::Park => Verdict::Parked,
        }
    }

    /// The token takes a task of these classes, or recirculates for its next step. The next step is to
    /// park, if no task waits.
    fn look(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        classes: u8,
        next: TokenStep,
    ) -> Verdict {
        let (class, left) = self.waiting.take(pass, slice, classes);
        let Some(class) = class else {
            self.front.note_granted(pass, granted);
            let Granted { worker, generation, .. } = granted;
            let step = if left == 0 { TokenStep::Park } else { next };
            return Round::Token { worker, generation, step }.go();
        };
        let ring = self.tasks.of(slice, class);
        let (task, ticket) = self.tasks.pop(pass, ring);
        if task.is_late(now) {
            self.front.note_granted(pass, granted);
            let Granted { worker, generation, .. } = granted;
            let token = Round::Token { worker, generation, step: TokenStep::Look };
            return self.front.late(slice, &task, token.memo());
        }
        let place = task.place(slice, self.tasks.name(ring, ticket));
        let queued = Queued { wait: task.waited(now), occupancy: left };
        self.front.dispatch_waiting(pass, &task, place, granted, queued)
    }

    /// The token parks; returns whether a task that it serves waits.
    pub(super) fn park(&mut self, pass: &mut Pass, slice: SliceId, granted: Granted, kind: u8) -> bool {
        self.parked.add(pass, slice, kind, u32::MAX);
        let came = self.waiting.any(pass, slice, self.serving(slice).serves(kind));
        let ring = self.tokens.of(slice, kind);
        let ticket = self.tokens.join(pass, ring);
        let token = ParkedToken { worker: granted.worker, generation: granted.generation };
        self.tokens.write(pass, ring, ticket, token);
        came
    }

    /// Takes out a token of this kind, if any is left, and lets it look again.
    fn recall(&mut self, pass: &mut Pass, slice: SliceId, kind: u8) -> Verdict {
        match self.take(pass, slice, 1 << kind) {
            Taken::Nothing { .. } => Verdict::Drop(Refusal::FixDone),
            Taken::Stale => Round::Recall { slice, kind }.go(),
            Taken::Live(ParkedToken { worker, generation }) => {
                Round::Token { worker, generation, step: TokenStep::Look }.go()
            }
        }
    }

    /// Takes the oldest token of the first of these kinds (a bit each) that has one.
    pub(super) fn take(&mut self, pass: &mut Pass, slice: SliceId, kinds: u8) -> Taken {
        let (kind, others) = self.parked.take(pass, slice, kinds);
        let Some(kind) = kind else { return Taken::Nothing { others } };
        let (token, _) = self.tokens.pop(pass, self.tokens.of(slice, kind));
        let is_live = self.front.is_live(pass, token.worker, token.generation);
        if is_live { Taken::Live(token) } else { Taken::Stale }
    }

    /// A task that no parked token serves waits, if its class has room.
    fn wait(
        &mut self,
        pass: &mut Pass,
        slice: SliceId,
        class: u8,
        limit: u32,
        task: Entering<'_>,
    ) -> Verdict {
        let Entering { submit, arrived, .. } = task;
        if !self.waiting.add(pass, slice, class, limit) {
            return self.front.reject(submit, RejectReason::QueueFull);
        }
        let ring = self.tasks.of(slice, class);
        let ticket = self.tasks.join(pass, ring);
        let name = self.tasks.name(ring, ticket);
        let write = self.engine.as_ref().and_then(|engine| engine.ahead(slice, name, submit));
        let kept = Kept::of(write.is_some(), self.engine.is_some());
        self.tasks.write(pass, ring, ticket, WaitingTask::of(submit, arrived, kept));
        write.map_or(Verdict::Parked, Verdict::Ahead)
    }

    /// The slice of a task, its class and its limit; or the reason for a REJECT.
    fn place_of(&self, submit: &Submit) -> Result<(SliceId, u8, u32), RejectReason> {
        let (slice, row) = self.front.open_slice(submit)?;
        let needs = self.front.tables.needs_of(submit);
        let class = row.serving.class_of(needs).ok_or(RejectReason::Unserved)?;
        let is_open = row.closed >> class & 1 == 0;
        if is_open { Ok((slice, class, row.limit)) } else { Err(RejectReason::NoWorkers) }
    }

    fn serving(&self, slice: SliceId) -> &Serving {
        &self.front.tables.slices[slice.0 as usize].serving
    }

    pub(super) fn kind_of(&self, worker: WorkerId) -> u8 {
        self.front.tables.worker(worker).map_or(0, |row| row.kind)
    }
}

/// The class, as a bit, that has the turn with this kind; zero on all other turns. The class that the kind
/// looks for first needs no turn. With wishes, the first class is the first one whose wish the kind meets.
#[inline(always)]
fn turn_of(serving: &Serving, kind: u8, turn: u8) -> u8 {
    if turn == 0 {
        return 0;
    }
    let first = if serving.is_wished() { serving.meets(kind).trailing_zeros() as u8 % KINDS } else { 0 };
    1 << ((first + turn) % KINDS)
}

impl Scheduler for Selective {
    const NAME: &'static str = Rain::NAME;

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    /// A granted token looks for a task: first for one whose wish it meets, or on a turn for the turn's
    /// class, else for any that it serves.
    fn token(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, granted: Granted, _: Rank) -> Verdict {
        let kind = self.kind_of(granted.worker);
        let turn = tasks::wish(&mut self.turn, pass, self.tokens.of(slice, kind), LAST_TURN);
        let serving = self.serving(slice);
        let serves = serving.serves(kind);
        let first = match serves & turn_of(serving, kind, turn) {
            0 if serving.is_wished() => serving.meets(kind),
            turns => turns,
        };
        if first == 0 || first == serves {
            self.look(pass, now, slice, granted, serves, TokenStep::Park)
        } else {
            self.look(pass, now, slice, granted, first, TokenStep::Look)
        }
    }

    /// A task takes a token that serves it, or waits, or finds its class full. While no parked token meets
    /// its wish and others are parked, it recirculates first.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, memo } = task;
        let memo = memo.unwrap_or(0);
        if memo % ASKED > ROUNDS_MAX {
            return self.front.reject(submit, RejectReason::StaleTokens);
        }
        if is_late(submit, now.since(arrived)) {
            return self.front.reject_late(submit);
        }
        let (slice, class, limit) = match self.place_of(submit) {
            Ok(place) => place,
            Err(reason) => return self.front.reject(submit, reason),
        };
        let serving = self.serving(slice);
        let all = serving.served_by(class);
        let met = if serving.is_wished() { serving.met_by(class) } else { all };
        let asks = memo / ASKED <= self.patience.into() && met != 0 && met != all;
        let again = |memo| Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo });
        match self.take(pass, slice, if asks { met } else { all }) {
            Taken::Nothing { others } if asks && others > 0 => again(memo + ASKED),
            Taken::Nothing { .. } => self.wait(pass, slice, class, limit, task),
            Taken::Stale => again(memo + 1),
            Taken::Live(ParkedToken { worker, generation }) => {
                let granted = Granted { worker, generation, seen: None };
                let queued = Queued { wait: now.since(arrived), occupancy: 0 };
                self.front.dispatch(pass, submit, granted, queued)
            }
        }
    }

    fn note(&mut self, pass: &mut Pass, now: Nanos, memo: u64) -> Verdict {
        match Round::read(memo) {
            Round::Recall { slice, kind } => self.recall(pass, slice, kind),
            Round::Token { worker, generation, step } => {
                let row = self.front.tables.worker(worker).copied();
                match row.filter(|_| self.front.is_admitted(worker, generation)) {
                    Some(row) => {
                        let granted = Granted { worker, generation, seen: None };
                        self.step(pass, now, row.slice, granted, step)
                    }
                    None => Verdict::Drop(Refusal::Closed),
                }
            }
        }
    }

    fn sweep(&mut self, pass: &mut Pass, _now: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        self.sweep(pass, sweep, memo)
    }

    fn engine(&mut self) -> Option<&mut RdmaEngine> {
        self.engine.as_mut()
    }

    /// Tokens and tasks may both be present; `balance` then says that tasks wait.
    fn slice_state(&self, slice: usize) -> SliceState {
        let (tokens_in, tokens_out) = self.tokens.counts(slice);
        let (tasks_in, tasks_out) = self.tasks.counts(slice);
        let (parked, waiting) = (self.parked.sum(slice) as i32, self.waiting.sum(slice) as i32);
        let balance = if waiting > 0 { -waiting } else { parked };
        SliceState { balance, tokens_in, tokens_out, tasks_in, tasks_out, ..SliceState::default() }
    }

    fn waiting(&self) -> u32 {
        (0..self.front.config.slices.into()).map(|slice| self.waiting.sum(slice)).sum()
    }

    fn parked(&self, slice: SliceId) -> Parked {
        let token = |token: ParkedToken| (token.worker, token.generation);
        Parked {
            tasks: self.tasks.listed(slice).map(|task| self.front.whole(&task)).collect(),
            tokens: self.tokens.listed(slice).map(token).collect(),
        }
    }
}
