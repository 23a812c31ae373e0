//! The spine's program, whose nodes are leaves (Horus §3.3, §3.4, A.2, A.3).
//!
//! Clients submit to a spine as to any switch. The spine hands each task to one of its leaves, numbered, as
//! a DISPATCH, and that leaf chooses the worker. Leaves tell the spine when their racks become idle or
//! busy, and the mean queue of their workers. An idle rack gets tasks and stays on the list: only its
//! leaf's word takes it off. If no rack is idle, the better of two random racks gets the task. The spine
//! compares their means in fixed point, and a task adds one worker's share to a mean.
//!
//! The published weaknesses are kept: an idle rack gets all tasks until its leaf's word that it is busy has
//! arrived, and every word is as old as its way. Ours: each rack stands on the list of idle racks once, the
//! shared front handles loss, and a leaf's word counts only in the leaf's present generation.
//!
//! The stages, beside the front's 0 and 1: the racks' last words (0), the lock (1), the count of idle racks
//! and the tables of samples (2), the idle list (3), the idle index and both loads (4), the comparison of
//! loads and the shares (5), the drifts (6 and 7), `sent` and `seen_out` (8), the affinity table if there
//! is one (9).

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
/// The queue of a leaf that was taken from the list of idle racks.
const SELECTED: u32 = u32::MAX;
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

/// The memo of a recirculating task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memo {
    /// The leaf that the task chose, and the queue before it there.
    Chosen { leaf: u16, queue: u32 },
    /// The leaf that got the try before.
    Kept { leaf: u16 },
    /// The task has to choose a leaf anew.
    Anew,
}

impl Memo {
    /// In the upper half of a memo stands a leaf, or one of these two bits above it.
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
    /// An empty spine, with room for `config.workers` leaves and `config.slices` pools.
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

    /// Sets how many workers of a pool a leaf has, or `None`. Set the leaf's row first: a number that was
    /// given anew names another leaf.
    ///
    /// # Errors
    /// [`HorusError::UnknownPool`], [`HorusError::UnknownLeaf`], [`HorusError::StaleLeaf`];
    /// [`RackSize::new`] refuses weights of zero.
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

    /// The mean queue of a rack as the spine knows it: what its leaf told, plus what was sent there since.
    pub fn known_load(&self, pool: SliceId, leaf: WorkerId) -> Average {
        Average::from_bits(self.loads.queue(pool.0, leaf.0))
    }

    /// The leaves of a pool to which tasks may go.
    pub fn racks(&self, pool: SliceId) -> &[u16] {
        self.racks.of(pool)
    }

    /// Whether this leaf's rack stands on the pool's list of idle racks.
    pub fn takes_for_idle(&self, pool: SliceId, leaf: WorkerId) -> bool {
        self.idle.is_listed(pool.0, leaf.0)
    }

    /// How many entries a pool's list of idle racks has.
    pub fn idle_racks(&self, pool: SliceId) -> u16 {
        self.idle.entries(pool.0)
    }

    /// Forgets all that is known of a rack.
    fn forget(&mut self, pool: SliceId, leaf: u16) {
        self.idle.forget(Self::NAME, pool.0, leaf);
        self.loads.clear(pool.0, leaf);
    }

    fn sample(&self, pool: SliceId, leaf: u16) -> Option<Candidate> {
        self.racks.share(pool, leaf).map(|share| Candidate { node: leaf, adds: share.bits() })
    }

    /// Draws two racks of a pool; different ones if it has two or more. `None` if it has none.
    fn samples(&mut self, pool: SliceId) -> Option<[Candidate; 2]> {
        let count = self.racks.of(pool).len() as u16;
        let random = &mut self.random[usize::from(pool.0)];
        let first = random.below(count);
        let second = if count > 1 { (first + 1 + random.below(count - 1)) % count } else { first };
        let [first, second] = [first, second].map(|at| self.racks.of(pool)[usize::from(at)]);
        Some([self.sample(pool, first)?, self.sample(pool, second)?])
    }

    /// Chooses the rack for a task of a pool that has racks.
    fn choose(&mut self, pass: &mut Pass, pool: SliceId) -> Choice {
        if let Some(sample) = self.look(pass, pool).and_then(|leaf| self.sample(pool, leaf)) {
            if !self.reading.idle_uncounted {
                self.loads.drift(pass, pool.0, sample);
            }
            return Choice::Leaf { leaf: sample.node, queue: SELECTED };
        }
        match self.samples(pool) {
            Some(samples) => self.choose_busy(pass, pool, samples),
            None => Choice::Nobody,
        }
    }

    /// Looks for an idle rack, if the policy does that.
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

    /// Chooses a rack while none is idle.
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

    /// The first pass of a later try, if there is an affinity table: the memo for its second pass.
    fn look_back(&mut self, pass: &mut Pass, now: Nanos, submit: &Submit) -> Option<Memo> {
        let affinity = self.affinity.as_mut().filter(|_| submit.attempt > FIRST_TRY)?;
        let before = affinity.find(pass, now, submit.task);
        Some(before.map_or(Memo::Anew, |leaf| Memo::Kept { leaf }))
    }

    /// The second pass of a task whose first pass chose a rack. Returns the rack if it is still there, and
    /// the queue before it, which the DISPATCH tells its leaf.
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
                Some((leaf, if is_idle { SELECTED } else { drift }))
            }
            Memo::Anew => None,
        }
    }

    /// Sends the task to its rack, and notes the rack for the task's next try.
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

    /// The address of the client that a leaf's packet names.
    fn client_of(&self, from: Endpoint, client: ClientId) -> Result<Endpoint, Refusal> {
        if !self.racks.is_leaf(from) {
            return Err(Refusal::UnknownSource);
        }
        self.front.tables.client(client).map(|row| row.at).ok_or(Refusal::UnknownSource)
    }

    /// Accepts a leaf's UPDATE, or returns the reason why it does not count.
    fn admit(&self, from: Endpoint, update: &Update) -> Result<(), Refusal> {
        self.front.admit_update(from, update)?;
        let is_there = update.pool.0 < self.front.config.slices
            && self.racks.share(update.pool, update.leaf.0).is_some();
        is_there.then_some(()).ok_or(Refusal::UnknownSource)
    }
}

/// The queue that a DISPATCH tells its leaf: whole bytes of the mean are cut off, so that it fits.
const fn told(queue: u32) -> u32 {
    let most = IDLE_SELECTED as u32 - 1;
    match queue {
        SELECTED => IDLE_SELECTED as u32,
        mean if mean >> 8 < most => mean >> 8,
        _ => most,
    }
}

/// Where a task goes from a pass in which it chose.
enum Choice {
    Leaf { leaf: u16, queue: u32 },
    Round(Memo),
    Nobody,
}

fn round(submit: &Submit, arrived: Nanos, memo: Memo) -> Verdict {
    Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo: memo.bits() })
}

/// Recirculates a removal with this memo, if it has more to do.
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
        if let Some((leaf, queue)) = self.carried(pass, pool, memo) {
            let queued = Queued { wait, occupancy: told(queue) };
            return self.send(pass, now, submit, WorkerId(leaf), queued);
        }
        if self.racks.of(pool).is_empty() {
            return self.front.reject(submit, RejectReason::NoWorkers);
        }
        match self.choose(pass, pool) {
            Choice::Leaf { leaf, queue } => {
                let queued = Queued { wait, occupancy: told(queue) };
                self.send(pass, now, submit, WorkerId(leaf), queued)
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

    /// Passes a REPLY on to a client that the leaf does not know. The REPLY then names this spine's epoch.
    fn reply(&mut self, _: &mut Pass, from: Endpoint, reply: &Reply) -> Verdict {
        match self.client_of(from, reply.client) {
            Ok(to) => {
                let epoch = self.front.config.epoch;
                Verdict::Send { to, packet: Packet::Reply(Reply { epoch, ..*reply }) }
            }
            Err(refusal) => Verdict::Drop(refusal),
        }
    }

    /// Passes a REJECT on. The task's next try does not go to the rack that refused it.
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

    /// The next pass of a removal.
    fn note(&mut self, pass: &mut Pass, now: Nanos, memo: u64) -> Verdict {
        noted(self.idle.goes_on(pass, memo), now)
    }

    /// No task waits in this program.
    fn slice_state(&self, _: usize) -> SliceState {
        SliceState::default()
    }

    /// A leaf registers, leaves or registers anew: forgets what was known of its racks. A row may also say
    /// how many workers of one pool the leaf has.
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
