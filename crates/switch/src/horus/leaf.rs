//! Horus in one rack: the leaf's program, whose nodes are workers (Horus §3.3, §3.4, A.3).
//!
//! A REPLY passes the switch and tells how much its worker still holds; nothing, and the worker is idle. A
//! worker that comes in is idle; one that leaves, moves or is drained is removed by the switch's own
//! control software, which sends that through both passes before it answers the controller.
//!
//! Its weaknesses are kept: a load says nothing of what is on its way, so a worker may be listed while a
//! task is coming to it, and an idle worker whose DISPATCH or REPLY is lost is not known as idle until it
//! is chosen while nobody is. Ours: no entry of the list counts twice, and what the shared front does about
//! loss and registration.
//!
//! The stages, behind the front's 0 and 1: who the samples are and the lock (1), the idle nodes' count and
//! both loads (2), the idle list (3), where the loads are compared too, the idle index (4), the drifts (5
//! and 6), `sent` and `seen_out` (7).

use alloc::boxed::Box;

use sluice_wire::tables::{Feed, SliceState, WorkerRow};
use sluice_wire::{Endpoint, Nanos, Packet, Rank, RejectReason, Reply, SliceId, Submit, WorkerId};

use super::idle::{IdleList, IdleStages, Vacancy};
use super::loads::{Better, LoadStages, Loads};
use super::reading::Reading;
use crate::config::Config;
use crate::front::{BackStages, Entering, Front, Granted, Queued, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Program, Verdict};
use crate::random::Random;
use crate::refusal::Refusal;
use crate::seats::{Seat, Seats};

const SAMPLES_STAGE: u8 = 1;
const IDLE: IdleStages = IdleStages { lock: 1, count: 2, list: 3, index: 4 };
const LOADS: LoadStages = LoadStages { loads: 2, drifts: [5, 6] };
const LAST_STAGE: u8 = 7;

/// Horus' leaf and its memory.
#[derive(Debug)]
pub struct Horus {
    front: Front,
    counts_idle: bool,
    seats: Seats,
    idle: IdleList,
    loads: Loads,
    random: Random,
}

/// What a task carries round: whom it chose, and how much was before that one; or that it has to choose anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chosen {
    worker: WorkerId,
    queue: u32,
}

/// The memo of a task that chooses anew.
const ANEW: u64 = u64::MAX;

impl Chosen {
    const fn memo(self) -> u64 {
        (self.worker.0 as u64) << 32 | self.queue as u64
    }

    const fn of(memo: u64) -> Option<Self> {
        if memo == ANEW {
            return None;
        }
        Some(Self { worker: WorkerId((memo >> 32) as u16), queue: memo as u32 })
    }
}

impl Horus {
    pub(super) fn boxed(feed: Feed, reading: Reading, config: Config) -> Box<dyn Program> {
        let back = BackStages { gen_out: LAST_STAGE, sent: LAST_STAGE };
        let mut front = Front::new(Self::NAME, feed, config, back);
        let (layout, pools, nodes) = (&mut front.layout, config.slices, config.workers);
        let rows = pools as usize * nodes as usize;
        layout.table("seats of workers", 0, 16, nodes.into());
        layout.table("workers of samples 0", SAMPLES_STAGE, 16, rows);
        layout.table("workers of samples 1", SAMPLES_STAGE, 16, rows);
        let idle = IdleList::new(layout, IDLE, pools, nodes, reading.as_published);
        let loads = Loads::new(layout, LOADS, pools, nodes, reading.writes);
        Box::new(Self {
            front,
            counts_idle: !reading.uncounted,
            seats: Seats::new(&config),
            idle,
            loads,
            random: Random::new(config.seed),
        })
    }

    /// Two random workers of a slice that has some, different ones if it has two.
    fn sample(&mut self, slice: SliceId, seats: u16) -> [u16; 2] {
        let first = self.random.below(seats);
        let second = if seats > 1 { (first + 1 + self.random.below(seats - 1)) % seats } else { first };
        [first, second].map(|position| self.seats.worker(Seat { slice: slice.0, position }).0)
    }

    /// Where a worker serves a slice: its node there.
    fn node(&self, worker: WorkerId, slice: SliceId) -> Option<u16> {
        self.seats.seat(worker).filter(|seat| seat.slice == slice.0).map(|_| worker.0)
    }

    /// Who gets the task, of a slice with workers; `None`: it has to go round and choose anew.
    fn choose(&mut self, pass: &mut Pass, slice: SliceId, seats: u16) -> Option<Better> {
        let node = match self.idle.take(pass, slice.0) {
            Vacancy::Nobody => {
                let nodes = self.sample(slice, seats);
                return Some(self.loads.choose(pass, slice.0, nodes));
            }
            Vacancy::Stale => return None,
            Vacancy::Node(node) => self.node(WorkerId(node), slice)?,
        };
        let queue = if self.counts_idle { self.loads.drift(pass, slice.0, node) } else { 0 };
        Some(Better { node, queue, goes_round: false })
    }

    /// Both passes of a removal, one behind the other.
    fn remove(&mut self, slice: u16, worker: WorkerId) {
        if let Some(removal) = self.idle.remove(&mut Pass::begin(Self::NAME), slice, worker.0) {
            self.idle.close_gap(&mut Pass::begin(Self::NAME), removal);
        }
    }
}

fn round(submit: &Submit, arrived: Nanos, memo: u64) -> Verdict {
    Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo })
}

impl Scheduler for Horus {
    const NAME: &'static str = "horus";

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    /// Nobody was told to send tokens.
    fn token(&mut self, _: &mut Pass, _: Nanos, _: SliceId, _: Granted, _: Rank) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, memo } = task;
        let wait = now.since(arrived);
        let (slice, seats) = match self.front.open_slice(submit) {
            Ok((slice, _)) => (slice, self.seats.of(slice)),
            Err(reason) => return self.front.reject(submit, reason),
        };
        if let Some(Chosen { worker, queue: occupancy }) = memo.and_then(Chosen::of)
            && let Some(node) = self.node(worker, slice)
        {
            self.loads.note(pass, slice.0, node, occupancy);
            return self.front.push(pass, submit, worker, Queued { wait, occupancy });
        }
        if seats == 0 {
            return self.front.reject(submit, RejectReason::NoWorkers);
        }
        match self.choose(pass, slice, seats) {
            None => round(submit, arrived, ANEW),
            Some(Better { node, queue, goes_round: true }) => {
                round(submit, arrived, Chosen { worker: WorkerId(node), queue }.memo())
            }
            Some(Better { node, queue: occupancy, .. }) => {
                self.front.push(pass, submit, WorkerId(node), Queued { wait, occupancy })
            }
        }
    }

    /// A reply tells its worker's load, if it is of this life, and goes on to its client.
    fn reply(&mut self, pass: &mut Pass, from: Endpoint, reply: &Reply) -> Verdict {
        let to = match self.front.admit_reply(from, reply) {
            Ok(to) => to,
            Err(refusal) => return Verdict::Drop(refusal),
        };
        if let Some(Seat { slice, .. }) = self.seats.seat(reply.worker)
            && reply.epoch == self.front.config.epoch
        {
            let node = reply.worker.0;
            self.loads.told(pass, slice, node, reply.load);
            if reply.load == 0 {
                self.idle.add(pass, slice, node);
            }
            self.loads.settled(pass, slice, node);
        }
        Verdict::Send { to, packet: Packet::Reply(*reply) }
    }

    /// Nothing waits here.
    fn slice_state(&self, _: usize) -> SliceState {
        SliceState::default()
    }

    fn worker_set(&mut self, worker: WorkerId, row: Option<&WorkerRow>) {
        let change = self.seats.set(worker, row);
        if let Some((seat, _)) = change.left {
            self.remove(seat.slice, worker);
        }
        if let Some(seat) = change.taken {
            self.loads.clear(seat.slice, worker.0);
            self.idle.add(&mut Pass::begin(Self::NAME), seat.slice, worker.0);
        }
    }

    fn grants_ended(&mut self, worker: WorkerId) {
        if let Some(seat) = self.seats.seat(worker) {
            self.loads.clear(seat.slice, worker.0);
        }
    }
}
