//! A rack of Rain below Horus' spines (Rain §6 leaves racks under a light global layer as future work).
//!
//! As at Horus' leaf (`horus::uplink`), tasks come from spines and are numbered, each number is let in
//! once, and a pass may send one UPDATE to a spine. Tasks and tokens meet as in Rain. A worker counts as
//! idle if it has a parked token before which no task stands. With one token per worker that is every
//! parked token; with more it is those of the first rank. So an idle rack at the spine has a worker that
//! serves at once. The load is the backlog: the tasks that wait here and those that the workers hold,
//! divided by the number of workers. Both follow from the balance and the ranks that the pass has seen. So
//! the leaf keeps no average, and a lost packet shifts none.
//!
//! A leaf that knows no clients (as in a live rack) sends the REJECT of a task through the spine that the
//! pool's tasks come from.
//!
//! Left out: writing ahead, classes and labels.
//!
//! The stages are those of Rain with ranks, and an entry holds its whole incarnation: a leaf has no rows of
//! clients. Stages 10 and 11 hold what spines were told.

use sluice_wire::tables::{SliceState, SpineRow, TableAnswer, WorkerRow};
use sluice_wire::{Endpoint, Nanos, Packet, Rank, Reject, RejectReason, Serial, SliceId, Sweep, WorkerId};

use super::entry_table::LEAF;
use super::queue_limit::RowLimit;
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

/// The stages of what spines were told: behind a queue's entry.
const UPLINK: UplinkStages = UplinkStages { numbers: 1, idle: 10, told: 11, averages: false };

/// Rain's program and memory in a rack of a fabric, without servers.
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
    /// A leaf with room for so many spines, whose workers have `depth` tokens each. With more than one
    /// token, workers tell their ranks. The leaf uses two parts of `reading`: when a rack is idle, and when
    /// it tells its load.
    ///
    /// # Panics
    /// If a ring or cell count is not a power of two, or the memory does not fit the chip.
    pub fn in_fabric(depth: u8, reading: FabricReading, config: Config, spines: u16) -> Self {
        let kinds = Kinds { ranks: if depth > 1 { 2 } else { 1 }, classes: 1 };
        let mut rain = Rain::with_table(config, kinds, LEAF);
        (rain.front.below_spines, rain.front.servers) = (true, 0);
        let uplink = Uplink::new(&mut rain.front.layout, (reading, UPLINK), spines, &config);
        Self { rain, uplink, depth, seats: Seats::new(&config) }
    }

    /// Connects a spine, whose tasks are numbered from the one behind `sent` on, or removes it.
    ///
    /// # Errors
    /// [`HorusError::UnknownSpine`] beyond the room for spines.
    pub fn set_spine(&mut self, spine: u16, row: Option<(SpineLink, Serial)>) -> Result<(), HorusError> {
        self.uplink.set_spine(&mut self.rain.front.tables.above, spine, row)
    }

    /// From now on this spine, or none, is told of a pool's workers. Returns the UPDATE that the spine has
    /// to get first.
    ///
    /// # Errors
    /// [`HorusError::UnknownSpine`], [`HorusError::UnknownPool`].
    pub fn link(&mut self, pool: SliceId, spine: Option<u16>) -> Result<Option<Mirror>, HorusError> {
        self.uplink.link(&mut self.rain.front.tables.above, pool, spine)?;
        Ok(self.uplink.introduces(pool, self.idle(pool)))
    }

    /// Tasks before each of a pool's workers, on average.
    pub fn backlog(&self, pool: SliceId) -> Average {
        self.uplink.mean_of(pool, self.held(pool, self.rain.memory.balance.peek(pool.0.into())))
    }

    /// How many workers of a pool would serve a task at once.
    fn idle(&self, pool: SliceId) -> u16 {
        let balance = self.rain.memory.balance.peek(pool.0.into());
        let first = self.rain.memory.tokens.first(pool).unwrap_or(balance.max(0).unsigned_abs());
        self.idle_of(pool, first, self.held(pool, balance))
    }

    /// How many workers would serve a task at once if `first` tokens of the first rank are parked. If no
    /// task is left, all workers would, even one whose first-rank token was lost: the worker repeats it,
    /// and the repeat may be parked under another rank.
    fn idle_of(&self, pool: SliceId, first: u32, tasks: u32) -> u16 {
        let at_least = if tasks == 0 { self.seats.of(pool) } else { 0 };
        saturated(first).max(at_least)
    }

    /// Tasks that wait here or are at workers. A token or task on its way counts as a task at its worker.
    fn held(&self, pool: SliceId, balance: i32) -> u32 {
        let tokens = i64::from(self.seats.of(pool)) * i64::from(self.depth);
        u32::try_from(tokens - i64::from(balance)).unwrap_or(0)
    }

    /// After a pass that has seen the queue: tells the spine if it is time.
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

    /// An entry does not hold the epoch of its spine. A REJECT that goes through the pool's spine names the
    /// epoch of that spine, because a client ignores a REJECT of another epoch.
    fn name_epoch(&self, pool: SliceId, to: Endpoint, reject: &mut Reject) {
        if let Some(spine) = self.uplink.linked(pool).filter(|spine| spine.at == to) {
            reject.epoch = spine.epoch;
        }
    }

    fn schedule(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>, seen: Seen) -> Verdict {
        let mut left = None;
        let verdict = self.rain.task_of(pass, now, task, &mut left, &mut RowLimit);
        if let Ok((pool, _)) = self.rain.front.open_slice(task.submit) {
            self.tells(pass, pool, left, seen);
        }
        verdict
    }
}

/// The packet of a pass.
#[derive(Clone, Copy)]
enum Seen {
    /// A task, and what its spine believes of the rack.
    Task(SpineView),
    /// A token. It may carry a load to the spine, as a reply does at Horus' leaf.
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
        let mut verdict =
            self.rain.token_of::<false>(pass, now, slice, (granted, rank), &mut left, &mut RowLimit);
        if let Verdict::Late { to, reject, .. } = &mut verdict {
            self.name_epoch(slice, *to, reject);
        }
        self.tells(pass, slice, left, Seen::Token);
        verdict
    }

    fn note(&mut self, pass: &mut Pass, now: Nanos, memo: u64) -> Verdict {
        match self.rain.returning(memo) {
            Ok((slice, granted, rank)) => self.token(pass, now, slice, granted, rank),
            Err(refusal) => Verdict::Drop(refusal),
        }
    }

    /// A task recirculates: new tasks come from spines, never from clients.
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
        // The pool may have another spine by now, which knows this client by no number.
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

    fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        let mut verdict = self.rain.sweep(pass, now, sweep, memo);
        if let Verdict::Swept { to, packet: Packet::Reject(reject), .. } = &mut verdict {
            self.name_epoch(sweep.slice, *to, reject);
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
