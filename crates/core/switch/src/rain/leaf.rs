//! A rack of Rain below Horus' spines (Rain §6 leaves racks under a light global layer as future work).
//!
//! Tasks come from spines, numbered, each number is let in once, and a pass may tell a spine one thing, all
//! as at Horus' leaf (`horus::uplink`); what becomes of tasks and tokens is Rain's, untouched. An idle worker
//! is a parked token before which no task stands: with one token a worker that is each of them, with more
//! those of the first rank. So the spine's idle racks have somebody who serves at once. The load is the
//! backlog: what waits here and what the workers hold, in the mean. Both are what the pass has seen of the
//! balance and the ranks, so that no average has to be kept, and a lost packet shifts none.
//!
//! A client that the leaf does not know (a live one knows none) hears of a task that is not taken through the
//! spine that the pool's tasks come from.
//!
//! Left out: what is written ahead, classes and labels.
//!
//! The stages: Rain's, with a queue's entry in six or five, and behind it what spines were told (10 and 11).

use sluice_wire::tables::{SliceState, SpineRow, TableAnswer, WorkerRow};
use sluice_wire::{Nanos, Packet, Rank, RejectReason, Serial, SliceId, Sweep, WorkerId};

use super::memory::columns_before_another;
use super::{Kinds, Left, Rain};
use crate::config::Config;
use crate::front::{Entering, Front, Granted, HandedDown, Scheduler};
use crate::horus::{
    Average, FabricReading, HorusError, RackStand, SpineLink, SpineView, Uplink, UplinkStages, submitted,
};
use crate::pipeline::Pass;
use crate::program::{Mirror, Parked, Verdict};
use crate::refusal::Refusal;
use crate::seats::Seats;

/// Where what spines were told lies: behind a queue's entry.
const UPLINK: UplinkStages = UplinkStages { numbers: 1, idle: 10, told: 11, averages: false };

/// Rain's program and memory in a rack of a fabric; it has no servers.
#[derive(Debug)]
pub struct RainLeaf {
    rain: Rain,
    uplink: Uplink,
    /// Tokens of each worker.
    depth: u8,
    /// How many workers each pool has.
    seats: Seats,
}

impl RainLeaf {
    /// A leaf with room for so many spines, whose workers have so many tokens each: with more than one they
    /// say what stands before them. Of the reading counts when a rack is idle and when it tells its load.
    ///
    /// # Panics
    /// If a ring or cell count is not a power of two, or the memory does not fit the chip.
    pub fn in_fabric(depth: u8, reading: FabricReading, config: Config, spines: u16) -> Self {
        let kinds = Kinds { ranks: if depth > 1 { 2 } else { 1 }, classes: 1 };
        let mut rain = Rain::with_columns(config, kinds, |first| columns_before_another(kinds, first));
        (rain.front.below_spines, rain.front.servers) = (true, 0);
        let uplink = Uplink::new(&mut rain.front.layout, (reading, UPLINK), spines, &config);
        Self { rain, uplink, depth, seats: Seats::new(&config) }
    }

    /// A spine comes, whose tasks are numbered from the one behind `sent` on; or it goes.
    ///
    /// # Errors
    /// [`HorusError::UnknownSpine`] beyond the room for them.
    pub fn set_spine(&mut self, spine: u16, row: Option<(SpineLink, Serial)>) -> Result<(), HorusError> {
        self.uplink.set_spine(&mut self.rain.front.tables.above, spine, row)
    }

    /// From now on this spine is told of a pool's workers, or none; gives what it has to hear first.
    ///
    /// # Errors
    /// [`HorusError::UnknownSpine`], [`HorusError::UnknownPool`].
    pub fn link(&mut self, pool: SliceId, spine: Option<u16>) -> Result<Option<Mirror>, HorusError> {
        self.uplink.link(&mut self.rain.front.tables.above, pool, spine)?;
        Ok(self.uplink.introduces(pool, self.idle(pool)))
    }

    /// Tasks before each of a pool's workers, in the mean.
    pub fn backlog(&self, pool: SliceId) -> Average {
        self.uplink.mean_of(pool, self.held(pool, self.rain.memory.balance.peek(pool.0.into())))
    }

    /// Workers of a pool that would serve a task at once.
    fn idle(&self, pool: SliceId) -> u16 {
        let balance = self.rain.memory.balance.peek(pool.0.into());
        let first = self.rain.memory.tokens.first(pool).unwrap_or(balance.max(0).unsigned_abs());
        self.idle_of(pool, first, self.held(pool, balance))
    }

    /// The same where so many tokens of the first rank are parked. Where no task is left all workers would,
    /// also one whose token of the first rank was lost: what it repeated may be parked behind another rank.
    fn idle_of(&self, pool: SliceId, first: u32, tasks: u32) -> u16 {
        let at_least = if tasks == 0 { self.seats.of(pool) } else { 0 };
        saturated(first).max(at_least)
    }

    /// Tasks that wait here or are at workers, tokens and tasks on their way counted with these.
    fn held(&self, pool: SliceId, balance: i32) -> u32 {
        let tokens = i64::from(self.seats.of(pool)) * i64::from(self.depth);
        u32::try_from(tokens - i64::from(balance)).unwrap_or(0)
    }

    /// After a pass that has seen the queue: perhaps the spine is told.
    fn tells(&mut self, pass: &mut Pass, pool: SliceId, left: Option<Left>, seen: Seen) {
        let Some(Left { balance, first }) = left else { return };
        let tasks = self.held(pool, balance);
        let (thought, carries_load) = match seen {
            Seen::Task(thought) => (thought, false),
            Seen::Token => (SpineView::Unknown, true),
        };
        let idle = self.idle_of(pool, first, tasks);
        self.uplink.stands(pass, pool, RackStand { idle, tasks, thought }, carries_load);
    }

    fn schedule(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>, seen: Seen) -> Verdict {
        let mut left = None;
        let verdict = self.rain.task_of(pass, now, task, &mut left);
        if let Ok((pool, _)) = self.rain.front.open_slice(task.submit) {
            self.tells(pass, pool, left, seen);
        }
        verdict
    }
}

/// Whose pass it was.
#[derive(Clone, Copy)]
enum Seen {
    /// A task's, whose spine has a thought of the rack.
    Task(SpineView),
    /// A token's, which carries a load as a reply does at Horus' leaf.
    Token,
}

fn saturated(count: u32) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

impl Scheduler for RainLeaf {
    const NAME: &'static str = "rain-leaf";

    fn front(&self) -> &Front {
        &self.rain.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.rain.front
    }

    fn token(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        rank: Rank,
    ) -> Verdict {
        let mut left = None;
        let verdict = self.rain.token_of::<false>(pass, now, slice, granted, rank, &mut left);
        self.tells(pass, slice, left, Seen::Token);
        verdict
    }

    /// Round once more: clients submit to spines.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        if task.memo.is_none() {
            return Verdict::Drop(Refusal::Unexpected);
        }
        self.schedule(pass, now, task, Seen::Task(SpineView::Unknown))
    }

    fn forwarded(&mut self, pass: &mut Pass, now: Nanos, down: HandedDown<'_>) -> Verdict {
        let HandedDown { from, task, room } = down;
        let spine = match self.uplink.admit(pass, from, task) {
            Ok(spine) => spine,
            Err(refusal) => return Verdict::Drop(refusal),
        };
        let submit = submitted(task);
        if !room {
            return self.rain.front.turn_away(&submit, RejectReason::NoRoom, Some(from));
        }
        let pool = self.rain.front.open_slice(&submit).map(|(pool, _)| pool);
        let thought =
            pool.map_or(SpineView::Unknown, |pool| self.uplink.thought(pool, spine, task.occupancy));
        let task = Entering { submit: &submit, arrived: now, memo: None };
        let mut verdict = self.schedule(pass, now, task, Seen::Task(thought));
        // The pool's spine may be another by now, which knows this client by no number.
        if let Verdict::Send { to, packet: Packet::Reject(_) } = &mut verdict
            && self.rain.front.tables.client(submit.client).is_none()
        {
            *to = from;
        }
        verdict
    }

    fn spine_set(&mut self, pool: SliceId, row: SpineRow) -> Option<TableAnswer> {
        self.uplink.set_linked(&mut self.rain.front.tables.above, pool, row).ok()?;
        self.uplink.tell_again(pool, self.idle(pool), self.backlog(pool));
        Some(TableAnswer::Done)
    }

    fn mirrored(&mut self) -> Option<Mirror> {
        self.uplink.mirrored()
    }

    /// A task that waited keeps no spine's life. What goes to its client through the pool's spine names that
    /// one's, since a REJECT of another life is no answer to a client.
    fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        let mut verdict = self.rain.sweep(pass, now, sweep, memo);
        if let Verdict::Swept { to, packet: Packet::Reject(reject), .. } = &mut verdict
            && let Some(spine) = self.uplink.linked(sweep.slice).filter(|spine| spine.at == *to)
        {
            reject.epoch = spine.epoch;
        }
        verdict
    }

    fn slice_state(&self, slice: usize) -> SliceState {
        self.rain.slice_state(slice)
    }

    fn worker_set(&mut self, worker: WorkerId, row: Option<&WorkerRow>) {
        let change = self.seats.set(worker, row);
        for pool in [change.left.map(|(seat, _)| seat), change.taken].into_iter().flatten() {
            let pool = SliceId(pool.slice);
            self.uplink.resize(pool, self.seats.of(pool), 0);
        }
    }

    fn waiting(&self) -> u32 {
        Scheduler::waiting(&self.rain)
    }

    fn parked(&self, slice: SliceId) -> Parked {
        Scheduler::parked(&self.rain, slice)
    }
}
