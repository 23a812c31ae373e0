//! The leaf's program, whose nodes are workers (Horus §3.3, §3.4, A.3): the switch of a rack alone, or of a
//! rack below spines.
//!
//! A REPLY passes the switch and tells how many tasks its worker still holds. A worker that holds none is
//! idle. A worker that registers is idle. A worker that leaves, moves or is drained is removed by the
//! switch's own control software, which runs both passes of the removal before it answers the controller.
//!
//! The published weaknesses are kept. A load does not count the tasks on their way, so a worker may be
//! listed as idle while a task comes to it. An idle worker whose DISPATCH or REPLY was lost is not known as
//! idle until a task is sent to it while no worker is idle. Ours: no entry of the list counts twice, and
//! the shared front handles loss and registration.
//!
//! In a fabric, tasks come from spines and are numbered, and a pass may send one UPDATE to a spine (module
//! `uplink`).
//!
//! The stages, behind the front's 0 and 1: the tables of samples and the lock (1), the count of idle nodes
//! and both loads (2), the idle list, where the loads are compared too (3), the idle index (4), the drifts
//! (5 and 6), `sent` and `seen_out` (7), idle workers that are owed a place (7 and 8), the affinity table
//! if there is one (8). In a fabric also the numbers of spines' tasks (1), the averages and what spines
//! were told (8 and 9).

use alloc::boxed::Box;

use sluice_wire::tables::{Feed, SliceState, SpineRow, TableAnswer, WorkerRow};
use sluice_wire::{Endpoint, Nanos, RejectReason, Reply, Serial, SliceId, Submit, WorkerId};

use super::affinity::{AffinityTable, FIRST_TRY};
use super::idle::{Added, IdleList, IdleStages, OwedStages, Vacancy};
use super::loads::{Better, Candidate, LoadStages, Loads};
use super::reading::{FabricReading, PolicyParts, Reading};
use super::updates::SpineLink;
use super::uplink::{SpineView, TellsOf, Uplink, UplinkStages, submitted};
use super::{Average, HorusError};
use crate::config::Config;
use crate::front::{BackStages, Entering, Front, HandedDown, Queued, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Mirror, Program, Verdict};
use crate::random::Random;
use crate::refusal::Refusal;
use crate::seats::{Seat, Seats};

const SAMPLES_STAGE: u8 = 1;
const IDLE: IdleStages = IdleStages { lock: 1, count: 2, list: 3, index: 4 };
const LOADS: LoadStages = LoadStages { loads: 2, drifts: [5, 6] };
const LAST_STAGE: u8 = 7;
const OWED: OwedStages = OwedStages { count: 7, list: 8 };
const AFFINITY_STAGE: u8 = 8;
/// The most tasks that a worker can hold where averages are kept: an average has 16 bits of tasks.
const LOAD_MAX: u32 = u16::MAX as u32;

/// Horus' leaf and its memory.
#[derive(Debug)]
pub struct Horus {
    front: Front,
    reading: Reading,
    seats: Seats,
    idle: IdleList,
    loads: Loads,
    random: Box<[Random]>,
    uplink: Option<Uplink>,
    affinity: Option<AffinityTable>,
}

/// The memo of a recirculating task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskMemo {
    /// The worker that the task chose, and how many tasks were before it there.
    Chosen { worker: WorkerId, queue: u32 },
    /// The worker that got the try before.
    Kept(WorkerId),
    /// The task has to choose a worker anew.
    Anew,
    /// The task gives a place on the idle list to the worker `owed`. `taken` is the worker that it took
    /// from the list, and how many tasks were before it there.
    Gives { owed: WorkerId, taken: Option<(WorkerId, u32)> },
}

impl TaskMemo {
    /// In the upper half of a memo stands a worker, or one of these two bits above it.
    const KEPT: u64 = 1 << 16;
    const ANEW: u64 = 1 << 17;
    const GIVES: u64 = 1 << 18;
    /// The memo of `Gives` has `owed` in its lowest 16 bits, then the bit that a worker was taken, then the
    /// queue.
    const TOOK: u64 = 1 << 16;
    const QUEUE_SHIFT: u32 = 17;
    const QUEUE_MAX: u32 = (1 << 15) - 1;

    fn bits(self) -> u64 {
        match self {
            Self::Chosen { worker, queue } => u64::from(worker.0) << 32 | u64::from(queue),
            Self::Kept(worker) => (Self::KEPT | u64::from(worker.0)) << 32,
            Self::Anew => Self::ANEW << 32,
            Self::Gives { owed, taken } => {
                let took = taken.map_or(0, |(worker, queue)| {
                    let queue = u64::from(queue.min(Self::QUEUE_MAX)) << Self::QUEUE_SHIFT;
                    u64::from(worker.0) << 32 | queue | Self::TOOK
                });
                Self::GIVES << 32 | took | u64::from(owed.0)
            }
        }
    }

    fn of(bits: u64) -> Self {
        let (kind, worker) = (bits >> 32, WorkerId((bits >> 32) as u16));
        if kind & Self::GIVES != 0 {
            let taken = (bits & Self::TOOK != 0).then_some((worker, bits as u32 >> Self::QUEUE_SHIFT));
            Self::Gives { owed: WorkerId(bits as u16), taken }
        } else if kind & Self::ANEW != 0 {
            Self::Anew
        } else if kind & Self::KEPT != 0 {
            Self::Kept(worker)
        } else {
            Self::Chosen { worker, queue: bits as u32 }
        }
    }
}

impl Horus {
    pub(super) fn boxed(feed: Feed, reading: Reading, config: Config) -> Box<dyn Program> {
        Box::new(Self::alone(feed, reading, config))
    }

    /// A leaf of a fabric, with room for so many spines. Tasks come from these spines only; clients' rows
    /// say where replies and REJECTs go.
    pub fn in_fabric(reading: FabricReading, config: Config, spines: u16) -> Self {
        let mut leaf = Self::alone(Feed::Pushed { reports: true }, reading.of_a_rack(), config);
        leaf.front.below_spines = true;
        leaf.uplink =
            Some(Uplink::new(&mut leaf.front.layout, (reading, UplinkStages::PUSHED), spines, &config));
        leaf
    }

    /// Connects a spine, whose tasks are numbered from the one behind `sent` on, or removes it.
    ///
    /// # Errors
    /// [`HorusError::UnknownSpine`] beyond the room for spines.
    pub fn set_spine(&mut self, spine: u16, row: Option<(SpineLink, Serial)>) -> Result<(), HorusError> {
        let uplink = self.uplink.as_mut().ok_or(HorusError::UnknownSpine { spine, spines: 0 })?;
        uplink.set_spine(&mut self.front.tables.above, spine, row)
    }

    /// From now on this spine, or none, is told of a pool's workers. Returns the UPDATE that the spine has
    /// to get first.
    ///
    /// # Errors
    /// [`HorusError::UnknownSpine`], [`HorusError::UnknownPool`].
    pub fn link(&mut self, pool: SliceId, spine: Option<u16>) -> Result<Option<Mirror>, HorusError> {
        let unknown = HorusError::UnknownSpine { spine: spine.unwrap_or_default(), spines: 0 };
        let uplink = self.uplink.as_mut().ok_or(unknown)?;
        uplink.link(&mut self.front.tables.above, pool, spine)?;
        Ok(uplink.introduces(pool, self.idle.entries(pool.0)))
    }

    /// The mean queue of a pool's workers as the leaf computes it; `None` in a rack alone.
    pub fn average(&self, pool: SliceId) -> Option<Average> {
        self.uplink.as_ref().map(|uplink| uplink.average(pool))
    }

    /// How many entries a pool's list of idle workers has. With none the leaf takes all workers for busy.
    pub fn idle_entries(&self, pool: SliceId) -> u16 {
        self.idle.entries(pool.0)
    }

    /// How many tasks the leaf believes to be before all workers of a pool together.
    pub fn known_tasks(&self, pool: SliceId) -> u32 {
        let workers =
            (0..self.seats.of(pool)).map(|position| self.seats.worker(Seat { slice: pool.0, position }));
        workers.map(|worker| self.loads.queue(pool.0, worker.0)).fold(0, u32::saturating_add)
    }

    fn alone(feed: Feed, reading: Reading, config: Config) -> Self {
        let back = BackStages { gen_out: LAST_STAGE, sent: LAST_STAGE };
        let mut front = Front::new(Self::NAME, feed, config, back);
        let (layout, pools, nodes) = (&mut front.layout, config.slices, config.workers);
        let rows = pools as usize * nodes as usize;
        layout.table("seats of workers", 0, 16, nodes.into());
        layout.table("workers of samples 0", SAMPLES_STAGE, 16, rows);
        layout.table("workers of samples 1", SAMPLES_STAGE, 16, rows);
        let idle = if reading.as_published {
            IdleList::as_published(layout, IDLE, pools, nodes)
        } else {
            IdleList::of_leaf(layout, IDLE, OWED, (pools, nodes))
        };
        let loads = Loads::new(layout, LOADS, pools, nodes, reading.writes);
        let affinity = reading.affinity.map(|keeps| AffinityTable::new(layout, AFFINITY_STAGE, keeps));
        Self {
            front,
            reading,
            seats: Seats::new(&config),
            idle,
            loads,
            random: Random::of_pools(config.seed, pools),
            uplink: None,
            affinity,
        }
    }

    /// Draws two workers of a slice that has some; different ones if it has two or more.
    fn sample(&mut self, slice: SliceId, seats: u16) -> [u16; 2] {
        let random = &mut self.random[usize::from(slice.0)];
        let first = random.below(seats);
        let second = if seats > 1 { (first + 1 + random.below(seats - 1)) % seats } else { first };
        [first, second].map(|position| self.seats.worker(Seat { slice: slice.0, position }).0)
    }

    /// The node of a worker in a slice, if the worker serves the slice.
    fn node(&self, worker: WorkerId, slice: SliceId) -> Option<u16> {
        self.seats.seat(worker).filter(|seat| seat.slice == slice.0).map(|_| worker.0)
    }

    /// Chooses the worker for a task of a slice that has workers.
    fn choose(&mut self, pass: &mut Pass, slice: SliceId, seats: u16) -> Pick {
        let looks = self.reading.parts.looks_for_idle();
        let (vacancy, left) = if looks { self.idle.take(pass, slice.0) } else { (Vacancy::Nobody, 0) };
        let node = match vacancy {
            Vacancy::Nobody => {
                let (better, more) = self.choose_busy(pass, slice, seats);
                return Pick { goes: LeafRoute::of(better), left, more };
            }
            Vacancy::Stale => None,
            Vacancy::Node(node) => self.node(WorkerId(node), slice),
        };
        let counts = node.is_some() && !self.reading.uncounted;
        let queue = match node {
            Some(node) if counts => self.loads.drift(pass, slice.0, one_task(node)),
            _ => 0,
        };
        let goes = match (self.idle.owes(pass, slice.0), node) {
            (Some(owed), _) => {
                let taken = node.map(|node| (WorkerId(node), queue));
                LeafRoute::Round(TaskMemo::Gives { owed: WorkerId(owed), taken })
            }
            (None, Some(node)) => LeafRoute::Down { node, queue },
            (None, None) => LeafRoute::Round(TaskMemo::Anew),
        };
        Pick { goes, left, more: i64::from(counts) }
    }

    /// Chooses a worker while none is idle. Also returns by how many the tasks known to be before workers
    /// grow.
    fn choose_busy(&mut self, pass: &mut Pass, slice: SliceId, seats: u16) -> (Better, i64) {
        let nodes = self.sample(slice, seats).map(one_task);
        match self.reading.parts {
            PolicyParts::Both => {
                let better = self.loads.choose(pass, slice.0, nodes);
                (better, i64::from(!better.goes_round))
            }
            PolicyParts::IdleOnly => {
                let [any, _] = nodes;
                let queue = self.loads.drift(pass, slice.0, any);
                (Better { node: any.node, queue, goes_round: false }, 1)
            }
            PolicyParts::LoadsOnly => (self.loads.lesser(pass, slice.0, nodes), 0),
        }
    }

    /// Sends a task of this origin to a worker, recirculates it, or rejects it.
    fn schedule(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>, origin: Origin) -> Verdict {
        let Entering { submit, arrived, memo } = task;
        let wait = now.since(arrived);
        let (slice, seats) = match self.front.open_slice(submit) {
            Ok((slice, _)) => (slice, self.seats.of(slice)),
            Err(reason) => return self.front.turn_away(submit, reason, origin.spine),
        };
        let memo = memo.map(TaskMemo::of);
        let before = if memo.is_none() { self.look_back(pass, now, submit) } else { None };
        if let Some(before) = before {
            self.counted(pass, slice, Counted { more: 0, printed: 0, idle: None, above: origin.thought });
            return round(submit, arrived, before);
        }
        if let Some((node, occupancy, more)) = memo.and_then(|memo| self.carried(pass, slice, memo)) {
            let verdict = self.send(pass, now, submit, WorkerId(node), Queued { wait, occupancy });
            self.counted(pass, slice, Counted { more, printed: 1, idle: None, above: SpineView::Unknown });
            return verdict;
        }
        if matches!(memo, Some(TaskMemo::Gives { .. })) {
            return round(submit, arrived, TaskMemo::Anew);
        }
        if seats == 0 {
            return self.front.turn_away(submit, RejectReason::NoWorkers, origin.spine);
        }
        let Pick { goes, left, more } = self.choose(pass, slice, seats);
        let (verdict, printed) = match goes {
            LeafRoute::Round(memo) => (round(submit, arrived, memo), 0),
            LeafRoute::Down { node, queue: occupancy } => {
                (self.send(pass, now, submit, WorkerId(node), Queued { wait, occupancy }), 1)
            }
        };
        let idle = self.reading.parts.looks_for_idle().then_some((left, origin.thought));
        self.counted(pass, slice, Counted { more, printed, idle, above: origin.thought });
        verdict
    }

    /// The first pass of a later try, if there is an affinity table: the memo for its second pass.
    fn look_back(&mut self, pass: &mut Pass, now: Nanos, submit: &Submit) -> Option<TaskMemo> {
        let affinity = self.affinity.as_mut().filter(|_| submit.attempt > FIRST_TRY)?;
        let before = affinity.find(pass, now, submit.task);
        Some(before.map_or(TaskMemo::Anew, |worker| TaskMemo::Kept(WorkerId(worker))))
    }

    /// The second pass of a task whose first pass chose a worker. Returns the worker if it still serves the
    /// slice, how many tasks are known to be before it, and by how many the tasks known to be before
    /// workers grow.
    fn carried(&mut self, pass: &mut Pass, slice: SliceId, memo: TaskMemo) -> Option<(u16, u32, i64)> {
        match memo {
            TaskMemo::Chosen { worker, queue } => {
                let node = self.node(worker, slice)?;
                Some((node, queue, self.loads.note(pass, slice.0, one_task(node), queue)))
            }
            TaskMemo::Kept(worker) => {
                let node = self.node(worker, slice)?;
                Some((node, self.loads.drift(pass, slice.0, one_task(node)), 1))
            }
            TaskMemo::Gives { owed, taken } => {
                let added = self.idle.give(pass, slice.0, owed.0);
                self.waits(pass, slice.0, owed.0, added);
                let (taken, queue) = taken?;
                Some((self.node(taken, slice)?, queue, 0))
            }
            TaskMemo::Anew => None,
        }
    }

    /// Owes a place to an idle worker that found the list full. The next task that takes another worker
    /// brings it back.
    #[inline]
    fn waits(&mut self, pass: &mut Pass, slice: u16, node: u16, added: Added) {
        if added.is_owed {
            self.idle.owe(pass, slice, node);
        }
    }

    /// Sends the task to its worker, and notes the worker for the task's next try.
    fn send(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        submit: &Submit,
        worker: WorkerId,
        queued: Queued,
    ) -> Verdict {
        let verdict = self.front.push(pass, submit, worker, queued);
        if let Some(affinity) = &mut self.affinity {
            affinity.note(pass, now, submit.task, worker.0);
        }
        verdict
    }

    /// In a fabric: counts what a pass has changed, and lets the uplink tell the spine if it is time.
    fn counted(&mut self, pass: &mut Pass, slice: SliceId, counted: Counted) {
        let Some(uplink) = &mut self.uplink else { return };
        let Counted { more, printed, idle, above } = counted;
        let more = if self.reading.as_published { printed } else { more };
        uplink.passed(pass, slice, more, TellsOf { idle, above, carries_load: printed < 0 });
    }

    /// The pool's workers, or what is known of them, have changed: computes the mean anew.
    fn resize(&mut self, slice: u16) {
        let pool = SliceId(slice);
        let (workers, tasks) = (self.seats.of(pool), self.known_tasks(pool));
        if let Some(uplink) = &mut self.uplink {
            uplink.resize(pool, workers, tasks);
        }
    }

    /// Takes the load that a worker told.
    fn heard(&mut self, pass: &mut Pass, slice: u16, node: u16, load: u32) {
        let known = self.loads.told(pass, slice, node, load);
        let is_listed = load == 0 && self.reading.parts.looks_for_idle();
        let added = is_listed.then(|| self.idle.add(pass, slice, node));
        let known = i64::from(known) + i64::from(self.loads.settled(pass, slice, node));
        if let Some(added) = added {
            self.waits(pass, slice, node, added);
        }
        let idle = added.map(|added| (added.entries, SpineView::Unknown));
        let more = i64::from(load) - known;
        self.counted(pass, SliceId(slice), Counted { more, printed: -1, idle, above: SpineView::Unknown });
    }
}

/// Where a task comes from.
#[derive(Clone, Copy)]
struct Origin {
    /// The spine's address, if the task comes from a spine and does not recirculate.
    spine: Option<Endpoint>,
    /// What that spine believes of this rack.
    thought: SpineView,
}

/// The chosen worker, or the reason to recirculate.
struct Pick {
    goes: LeafRoute,
    /// Entries that are left on the idle list.
    left: u16,
    /// By how many the tasks known to be before workers grow.
    more: i64,
}

/// Where the pass that chose sends a task.
enum LeafRoute {
    /// To this worker, which has so many tasks before it.
    Down {
        node: u16,
        queue: u32,
    },
    Round(TaskMemo),
}

impl LeafRoute {
    const fn of(better: Better) -> Self {
        let Better { node, queue, goes_round } = better;
        if goes_round {
            Self::Round(TaskMemo::Chosen { worker: WorkerId(node), queue })
        } else {
            Self::Down { node, queue }
        }
    }
}

/// What a pass has changed in a pool's counts.
#[derive(Clone, Copy)]
struct Counted {
    /// By how many the tasks known to be before workers grow.
    more: i64,
    /// The change as printed: +1 for a task, −1 for a reply.
    printed: i64,
    /// How many entries the idle list has, if the pass knows, and what the spine believes of this rack.
    idle: Option<(u16, SpineView)>,
    /// What the spine of this task believes of this rack; the spine has counted the task already.
    above: SpineView,
}

const fn one_task(node: u16) -> Candidate {
    Candidate { node, adds: 1 }
}

fn round(submit: &Submit, arrived: Nanos, memo: TaskMemo) -> Verdict {
    Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo: memo.bits() })
}

impl Scheduler for Horus {
    const NAME: &'static str = "horus";

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    /// A task comes from a client in a rack alone, from a spine in a fabric, or recirculates.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        if self.uplink.is_some() && task.memo.is_none() {
            return Verdict::Drop(Refusal::Unexpected);
        }
        self.schedule(pass, now, task, Origin { spine: None, thought: SpineView::Unknown })
    }

    fn forwarded(&mut self, pass: &mut Pass, now: Nanos, down: HandedDown<'_>) -> Verdict {
        let HandedDown { from, task, room } = down;
        let Some(uplink) = &mut self.uplink else { return Verdict::Drop(Refusal::Unexpected) };
        let spine = match uplink.admit(pass, from, task) {
            Ok(spine) => spine,
            Err(refusal) => return Verdict::Drop(refusal),
        };
        let submit = submitted(task);
        if !room {
            return self.front.turn_away(&submit, RejectReason::NoRoom, Some(from));
        }
        let pool = self.front.open_slice(&submit).map(|(pool, _)| pool);
        let thought = pool.map_or(SpineView::Unknown, |pool| uplink.thought(pool, spine, task.occupancy));
        let task = Entering { submit: &submit, arrived: now, memo: None };
        self.schedule(pass, now, task, Origin { spine: Some(from), thought })
    }

    fn mirrored(&mut self) -> Option<Mirror> {
        self.uplink.as_mut().and_then(Uplink::mirrored)
    }

    /// A reply tells its worker's load, if it is of this epoch, and goes on to its client.
    fn reply(&mut self, pass: &mut Pass, from: Endpoint, reply: &Reply) -> Verdict {
        let verdict = match self.front.admit_reply(from, reply) {
            Ok(to) => self.front.hand_on(*to, reply),
            Err(refusal) => return Verdict::Drop(refusal),
        };
        if let Some(Seat { slice, .. }) = self.seats.seat(reply.worker)
            && reply.epoch == self.front.config.epoch
        {
            if self.uplink.is_some() && reply.load > LOAD_MAX {
                self.front.refusals.add(Refusal::ImpossibleLoad);
            } else {
                self.heard(pass, slice, reply.worker.0, reply.load);
            }
        }
        verdict
    }

    fn spine_set(&mut self, pool: SliceId, row: SpineRow) -> Option<TableAnswer> {
        let uplink = self.uplink.as_mut()?;
        uplink.set_linked(&mut self.front.tables.above, pool, row).ok()?;
        uplink.tell_again(pool, self.idle.entries(pool.0), uplink.average(pool));
        Some(TableAnswer::Done)
    }

    /// No task waits in this program.
    fn slice_state(&self, _: usize) -> SliceState {
        SliceState::default()
    }

    fn worker_set(&mut self, worker: WorkerId, row: Option<&WorkerRow>) {
        let change = self.seats.set(worker, row);
        if let Some((seat, _)) = change.left {
            self.idle.forget(Self::NAME, seat.slice, worker.0);
            self.resize(seat.slice);
        }
        if let Some(seat) = change.taken {
            self.loads.clear(seat.slice, worker.0);
            let pass = &mut Pass::begin(Self::NAME);
            let added = self.idle.add(pass, seat.slice, worker.0);
            self.waits(pass, seat.slice, worker.0, added);
            self.resize(seat.slice);
        }
    }

    fn grants_ended(&mut self, worker: WorkerId) {
        if let Some(seat) = self.seats.seat(worker) {
            self.loads.clear(seat.slice, worker.0);
            self.resize(seat.slice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_carries_round_is_what_it_noted() {
        let (worker, owed) = (WorkerId(u16::MAX), WorkerId(u16::MAX - 1));
        for memo in [
            TaskMemo::Anew,
            TaskMemo::Kept(worker),
            TaskMemo::Chosen { worker, queue: u32::MAX },
            TaskMemo::Gives { owed, taken: None },
            TaskMemo::Gives { owed, taken: Some((worker, TaskMemo::QUEUE_MAX)) },
        ] {
            assert_eq!(TaskMemo::of(memo.bits()), memo);
        }
        let longer = TaskMemo::Gives { owed, taken: Some((worker, u32::MAX)) };
        let told = TaskMemo::Gives { owed, taken: Some((worker, TaskMemo::QUEUE_MAX)) };
        assert_eq!(TaskMemo::of(longer.bits()), told);
    }
}
