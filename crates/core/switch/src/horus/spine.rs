//! The spine's program, whose nodes are leaves (Horus §3.3, §3.4, A.2, A.3).
//!
//! Clients submit to a spine as to any switch, and it hands each task to one of its leaves, numbered, as a
//! DISPATCH; that leaf chooses the worker. Leaves tell it when their racks become idle or busy, and their
//! workers' mean queues. While a rack is idle it gets tasks without being taken off the list: only what its
//! leaf tells does that. Else the better of two random racks gets the task, by means in fixed point, to which
//! a task adds one worker's share.
//!
//! Its weaknesses are kept: whichever rack is taken while idle gets all tasks until its leaf's word that it
//! is idle no longer has come, and what was told is as old as its way. Ours: a list of idle racks with each
//! rack once, what the shared front does about loss, and a rack's word counts only in the generation that the
//! rack has now.
//!
//! The stages, beside the front's 0 and 1: racks' last words (0), the lock (1), the idle racks' count and
//! which racks samples are (2), the idle list (3), the idle index and both loads (4), where loads are
//! compared and shares looked up (5), the drifts (6 and 7), `sent` and `seen_out` (8), the affinity table if
//! there is one (9).

use alloc::boxed::Box;

use sluice_wire::tables::{Feed, SliceState, WorkerRow};
use sluice_wire::{
    ClientId, Endpoint, Generation, Nanos, Packet, RackNews, Reject, RejectReason, Reply, SliceId, Submit,
    Update, WorkerId,
};

use super::affinity::{AffinityTable, FIRST_TRY};
use super::idle::racks::IdleRacks;
use super::idle::{IdleStages, NODES_ROUND_MAX};
use super::loads::{Better, Candidate, LoadStages, Loads};
use super::racks::Racks;
use super::reading::{FabricReading, IdleRack, PolicyParts};
use super::updates::IDLE_SELECTED;
use super::{Average, HorusError, RackSize};
use crate::config::Config;
use crate::front::{BackStages, Entering, Front, Queued, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Verdict};
use crate::random::Random;
use crate::refusal::Refusal;

const SAMPLES_STAGE: u8 = 2;
const SHARES_STAGE: u8 = 5;
const WORDS_STAGE: u8 = 0;
const IDLE: IdleStages = IdleStages { lock: 1, count: 2, list: 3, index: 4 };
const LOADS: LoadStages = LoadStages { loads: 4, drifts: [6, 7] };
const LAST_STAGE: u8 = 8;
const AFFINITY_STAGE: u8 = 9;

/// Horus' spine and its memory.
#[derive(Debug)]
pub struct Spine {
    front: Front,
    reading: FabricReading,
    racks: Racks,
    idle: IdleRacks,
    loads: Loads,
    random: Box<[Random]>,
    affinity: Option<AffinityTable>,
}

/// What a task carries round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memo {
    /// Whom it chose, and how much was before that one.
    Chosen { leaf: u16, queue: u32 },
    /// Who has the try before.
    Kept { leaf: u16 },
    /// It chooses anew.
    Anew,
}

impl Memo {
    /// Above 32 bits: a leaf, or one of these.
    const ANEW: u64 = 1 << 17;
    const KEPT: u64 = 1 << 18;

    fn bits(self) -> u64 {
        let (kind, word) = match self {
            Self::Chosen { leaf, queue } => (leaf.into(), queue),
            Self::Kept { leaf } => (Self::KEPT, leaf.into()),
            Self::Anew => (Self::ANEW, 0),
        };
        kind << 32 | u64::from(word)
    }

    const fn of(bits: u64) -> Self {
        let word = bits as u32;
        match bits >> 32 {
            Self::ANEW => Self::Anew,
            Self::KEPT => Self::Kept { leaf: word as u16 },
            leaf => Self::Chosen { leaf: leaf as u16, queue: word },
        }
    }
}

impl Spine {
    /// An empty spine: `config.workers` leaves and `config.slices` pools have room.
    ///
    /// # Errors
    /// [`HorusError::TooManyLeaves`].
    ///
    /// # Panics
    /// If a ring or cell count is not a power of two, or the memory does not fit the chip.
    pub fn new(reading: FabricReading, config: Config) -> Result<Self, HorusError> {
        let (pools, leaves, most) = (config.slices, config.workers, NODES_ROUND_MAX);
        if leaves > most {
            return Err(HorusError::TooManyLeaves { leaves, most });
        }
        let back = BackStages { gen_out: LAST_STAGE, sent: LAST_STAGE };
        let mut front = Front::new(Self::NAME, Feed::Pushed { reports: true }, config, back);
        let layout = &mut front.layout;
        Racks::tables(layout, SAMPLES_STAGE, SHARES_STAGE, &config);
        let idle = IdleRacks::new(layout, (WORDS_STAGE, IDLE), (pools, leaves), reading.as_published);
        let loads = Loads::new(layout, LOADS, pools, leaves, reading.resubmit_writes);
        let affinity = reading.affinity.map(|keeps| AffinityTable::new(layout, AFFINITY_STAGE, keeps));
        let (racks, random) = (Racks::new(&config), Random::of_pools(config.seed, pools));
        Ok(Self { front, reading, racks, idle, loads, random, affinity })
    }

    /// A leaf has so many workers of a pool, or none. Its row comes first: a number that was given anew names
    /// another leaf.
    ///
    /// # Errors
    /// [`HorusError::UnknownPool`], [`HorusError::UnknownLeaf`], [`HorusError::StaleLeaf`]; [`RackSize::new`]
    /// refuses weights of zero.
    pub fn set_workers(
        &mut self,
        pool: SliceId,
        leaf: (WorkerId, Generation),
        workers: Option<RackSize>,
    ) -> Result<(), HorusError> {
        let (leaf, said) = leaf;
        if pool.0 >= self.front.config.slices {
            return Err(HorusError::UnknownPool { pool, pools: self.front.config.slices });
        }
        let is = self.front.tables.worker(leaf).ok_or(HorusError::UnknownLeaf { leaf })?.generation;
        if is != said {
            return Err(HorusError::StaleLeaf { leaf, said, is });
        }
        self.racks.set_share(pool, leaf.0, workers.map(Average::share));
        if workers.is_none() {
            self.forget(pool, leaf.0);
        }
        Ok(())
    }

    /// What the spine knows of a rack's mean queue: what was told, and what was sent there since.
    pub fn known_load(&self, pool: SliceId, leaf: WorkerId) -> Average {
        Average::from_bits(self.loads.queue(pool.0, leaf.0))
    }

    /// Leaves of a pool that tasks may go to.
    pub fn racks(&self, pool: SliceId) -> &[u16] {
        self.racks.of(pool)
    }

    /// Whether a pool's list of idle racks has this leaf's.
    pub fn takes_for_idle(&self, pool: SliceId, leaf: WorkerId) -> bool {
        self.idle.is_listed(pool.0, leaf.0)
    }

    /// How many entries a pool's list of idle racks has.
    pub fn idle_racks(&self, pool: SliceId) -> u16 {
        self.idle.entries(pool.0)
    }

    /// Nothing is known of a rack any more.
    fn forget(&mut self, pool: SliceId, leaf: u16) {
        self.idle.forget(Self::NAME, pool.0, leaf);
        self.loads.clear(pool.0, leaf);
    }

    fn sample(&self, pool: SliceId, leaf: u16) -> Option<Candidate> {
        self.racks.share(pool, leaf).map(|share| Candidate { node: leaf, adds: share.bits() })
    }

    /// Two random racks of a pool that has some, different ones if it has two.
    fn samples(&mut self, pool: SliceId) -> Option<[Candidate; 2]> {
        let count = self.racks.of(pool).len() as u16;
        let random = &mut self.random[usize::from(pool.0)];
        let first = random.below(count);
        let second = if count > 1 { (first + 1 + random.below(count - 1)) % count } else { first };
        let [first, second] = [first, second].map(|at| self.racks.of(pool)[usize::from(at)]);
        Some([self.sample(pool, first)?, self.sample(pool, second)?])
    }

    /// Who gets the task, of a pool with racks.
    fn choose(&mut self, pass: &mut Pass, pool: SliceId) -> Choice {
        if let Some(sample) = self.look(pass, pool).and_then(|leaf| self.sample(pool, leaf)) {
            if !self.reading.idle_uncounted {
                self.loads.drift(pass, pool.0, sample);
            }
            return Choice::Leaf { leaf: sample.node, queue: IDLE_SELECTED };
        }
        match self.samples(pool) {
            Some(samples) => self.choose_busy(pass, pool, samples),
            None => Choice::Nobody,
        }
    }

    /// An idle rack, if idle racks are looked for.
    fn look(&mut self, pass: &mut Pass, pool: SliceId) -> Option<u16> {
        if !self.reading.parts.looks_for_idle() {
            return None;
        }
        let random = &mut self.random[usize::from(pool.0)];
        self.idle.look(pass, pool.0, |entries| match self.reading.idle_rack {
            IdleRack::Newest => entries - 1,
            IdleRack::Random => random.below(entries),
        })
    }

    /// Who gets the task while no rack is idle.
    fn choose_busy(&mut self, pass: &mut Pass, pool: SliceId, samples: [Candidate; 2]) -> Choice {
        let better = match self.reading.parts {
            PolicyParts::Both => self.loads.choose(pass, pool.0, samples),
            PolicyParts::IdleOnly => Better { node: samples[0].node, queue: 0, goes_round: false },
            PolicyParts::LoadsOnly => self.loads.lesser(pass, pool.0, samples),
        };
        match better {
            Better { node: leaf, queue, goes_round: true } => Choice::Round(Memo::Chosen { leaf, queue }),
            Better { node: leaf, queue, .. } => Choice::Leaf { leaf, queue },
        }
    }

    /// With an affinity table, the first pass of a later try: what it carries into its second one.
    fn look_back(&mut self, pass: &mut Pass, now: Nanos, submit: &Submit) -> Option<Memo> {
        let affinity = self.affinity.as_mut().filter(|_| submit.attempt > FIRST_TRY)?;
        let before = affinity.find(pass, now, submit.task);
        Some(before.map_or(Memo::Anew, |leaf| Memo::Kept { leaf }))
    }

    /// The second pass of a task that has its rack, if that one is still there: which it is, and what its
    /// leaf is told of what is before it.
    fn carried(&mut self, pass: &mut Pass, pool: SliceId, memo: Memo) -> Option<(u16, u32)> {
        match memo {
            Memo::Chosen { leaf, queue } => {
                let sample = self.sample(pool, leaf)?;
                self.loads.note(pass, pool.0, sample, queue);
                Some((leaf, queue))
            }
            Memo::Kept { leaf } => {
                let sample = self.sample(pool, leaf)?;
                let is_idle = self.idle.has(pass, pool.0, leaf);
                let drift = self.loads.drift(pass, pool.0, sample);
                Some((leaf, if is_idle { IDLE_SELECTED } else { drift }))
            }
            Memo::Anew => None,
        }
    }

    /// The task goes to its rack, and that is kept for its next try.
    fn send(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        submit: &Submit,
        leaf: WorkerId,
        queued: Queued,
    ) -> Verdict {
        let verdict = self.front.push(pass, submit, leaf, queued);
        if let Some(affinity) = &mut self.affinity {
            affinity.note(pass, now, submit.task, leaf.0);
        }
        verdict
    }

    /// Where the client is of whom a leaf's packet tells.
    fn client_of(&self, from: Endpoint, client: ClientId) -> Result<Endpoint, Refusal> {
        if !self.racks.is_leaf(from) {
            return Err(Refusal::UnknownSource);
        }
        self.front.tables.client(client).map(|row| row.at).ok_or(Refusal::UnknownSource)
    }

    /// Whether a leaf's word counts.
    fn admit(&self, from: Endpoint, update: &Update) -> Result<(), Refusal> {
        self.front.admit_update(from, update)?;
        let is_there = update.pool.0 < self.front.config.slices
            && self.racks.share(update.pool, update.leaf.0).is_some();
        is_there.then_some(()).ok_or(Refusal::UnknownSource)
    }
}

/// Where a task goes.
enum Choice {
    Leaf { leaf: u16, queue: u32 },
    Round(Memo),
    Nobody,
}

fn round(submit: &Submit, arrived: Nanos, memo: Memo) -> Verdict {
    Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo: memo.bits() })
}

/// What a removal has left to do goes round.
fn noted(memo: Option<u64>, now: Nanos) -> Verdict {
    memo.map_or(Verdict::Parked, |memo| {
        Verdict::Again(Circulating { cargo: Cargo::Note, arrived: now, memo })
    })
}

impl Scheduler for Spine {
    const NAME: &'static str = "horus-spine";

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, memo } = task;
        let wait = now.since(arrived);
        let pool = match self.front.open_slice(submit) {
            Ok((pool, _)) => pool,
            Err(reason) => return self.front.reject(submit, reason),
        };
        let memo = memo.map(Memo::of);
        let before = if memo.is_none() { self.look_back(pass, now, submit) } else { None };
        if let Some(before) = before {
            return round(submit, arrived, before);
        }
        let memo = memo.unwrap_or(Memo::Anew);
        if let Some((leaf, occupancy)) = self.carried(pass, pool, memo) {
            return self.send(pass, now, submit, WorkerId(leaf), Queued { wait, occupancy });
        }
        if self.racks.of(pool).is_empty() {
            return self.front.reject(submit, RejectReason::NoWorkers);
        }
        match self.choose(pass, pool) {
            Choice::Leaf { leaf, queue: occupancy } => {
                self.send(pass, now, submit, WorkerId(leaf), Queued { wait, occupancy })
            }
            Choice::Round(memo) => round(submit, arrived, memo),
            Choice::Nobody => self.front.reject(submit, RejectReason::NoWorkers),
        }
    }

    fn update(&mut self, pass: &mut Pass, now: Nanos, from: Endpoint, update: &Update) -> Verdict {
        if let Err(refusal) = self.admit(from, update) {
            return Verdict::Drop(refusal);
        }
        let (pool, leaf) = (update.pool.0, update.leaf.0);
        match update.news {
            RackNews::Idle | RackNews::Busy => {
                let memo = self.idle.says(pass, pool, leaf, update.news == RackNews::Idle);
                if let Some(mean) = self.reading.implied(update.news) {
                    self.loads.told(pass, pool, leaf, mean.bits());
                    self.loads.settled(pass, pool, leaf);
                }
                noted(memo, now)
            }
            RackNews::Load(average) => {
                self.loads.told(pass, pool, leaf, average.0);
                self.loads.settled(pass, pool, leaf);
                Verdict::Parked
            }
        }
    }

    /// A leaf that does not know the client answers through its spine. What it says is of this spine's life.
    fn reply(&mut self, _: &mut Pass, from: Endpoint, reply: &Reply) -> Verdict {
        match self.client_of(from, reply.client) {
            Ok(to) => {
                let epoch = self.front.config.epoch;
                Verdict::Send { to, packet: Packet::Reply(Reply { epoch, ..*reply }) }
            }
            Err(refusal) => Verdict::Drop(refusal),
        }
    }

    /// A rack that refused a task does not get its next try.
    fn rejected(&mut self, pass: &mut Pass, from: Endpoint, reject: &Reject) -> Verdict {
        match self.client_of(from, reject.client) {
            Ok(to) => {
                if let Some(affinity) = &mut self.affinity {
                    affinity.forget(pass, reject.task);
                }
                Verdict::Send { to, packet: Packet::Reject(*reject) }
            }
            Err(refusal) => Verdict::Drop(refusal),
        }
    }

    /// A removal's next pass.
    fn note(&mut self, pass: &mut Pass, now: Nanos, memo: u64) -> Verdict {
        noted(self.idle.goes_on(pass, memo), now)
    }

    /// Nothing waits here.
    fn slice_state(&self, _: usize) -> SliceState {
        SliceState::default()
    }

    /// A leaf comes, goes, or comes in anew: what was known of its racks is no longer. A row may say of one
    /// pool how many workers it has there.
    fn worker_set(&mut self, leaf: WorkerId, row: Option<&WorkerRow>) {
        if leaf.0 >= self.front.config.workers {
            return;
        }
        self.racks.set_leaf(leaf.0, row);
        let size = row.and_then(|row| RackSize::new(row.workers.into()).ok());
        for pool in (0..self.front.config.slices).map(SliceId) {
            let is_its = row.is_some_and(|row| row.slice == pool);
            if row.is_none() || size.is_some() {
                self.racks.set_share(pool, leaf.0, size.filter(|_| is_its).map(Average::share));
            }
            self.forget(pool, leaf.0);
        }
    }

    fn grants_ended(&mut self, leaf: WorkerId) {
        (0..self.front.config.slices).for_each(|pool| self.forget(SliceId(pool), leaf.0));
    }
}
