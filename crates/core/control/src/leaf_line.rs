//! A leaf's line to the controller above its rack's (Horus §3.2, A.3): it says how many workers each pool
//! has in the rack, and brings home under which number the spine knows the leaf there.
//!
//! A leaf registers once for each pool that has workers in its rack, as a worker that stands for so many:
//! number, generation and lease are a worker's, and so is what happens when the leaf dies (its lease ends,
//! and the spine forgets it) and comes back (the name is its own again, in another generation). A pool
//! whose last worker goes leaves, once nothing waits in the rack: a spine hears nobody that it does not
//! know, and its clients have to be told of what waited. Tasks that are still under way end there, so that
//! the leaf keeps its spine.
//!
//! Each answer is handed on to the leaf's switch, whether or not it is new: the switch then tells the spine
//! how the rack stands, so that a word that was lost is said again within a renewal.
//!
//! A pool is below one spine at a time. Which one is its driver's affair: a grant of another one is taken
//! as any other.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::SpineRow;
use sluice_wire::{Endpoint, SliceId, TaskType};

use crate::message::WorkerHello;
use crate::recent::RecentWork;

/// What a rack has of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolSize {
    /// Its name, the same at the spine.
    pub name: String,
    /// The types of its tasks.
    pub types: Vec<TaskType>,
    /// Workers that serve it now.
    pub workers: u16,
    /// Whether tasks may still wait that none of them is there for.
    pub waits: bool,
    pub quotas: u32,
    /// How many tasks they serve per second, all together; 0 while unknown.
    pub capacity: u32,
    /// What they did over the last seconds.
    pub recent: RecentWork,
}

/// What a leaf is to do for its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafAction {
    /// Register the pool, or say this from now on.
    Say {
        pool: SliceId,
        /// What is said of it.
        hello: WorkerHello,
        /// Whether at once, rather than with the next renewal.
        at_once: bool,
    },
    /// End the pool's registration, and say when it has ended.
    Leave(SliceId),
    /// Hand this to the leaf's switch.
    Link(SliceId, SpineRow),
}

/// The line of one leaf in one life.
#[derive(Debug)]
pub struct LeafLine {
    name: String,
    at: Endpoint,
    quota_max: u8,
    /// Whose registrations follow: each has a life of its own.
    life: u64,
    pools: Vec<Pool>,
}

/// A pool of the rack.
#[derive(Debug, Default)]
struct Pool {
    size: PoolSize,
    stands: Stands,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stands {
    #[default]
    Out,
    /// Registered, or about to be, in this life.
    In(u64),
    Leaving,
}

impl LeafLine {
    /// A leaf of this name, where spines reach it, whose registrations begin with this life: 64 random bits.
    /// A quota is at most `quota_max`.
    pub const fn new(name: String, at: Endpoint, life: u64, quota_max: u8) -> Self {
        Self { name, at, quota_max, life, pools: Vec::new() }
    }

    /// The rack's pools, by their indices, are these now.
    pub fn sized(&mut self, sizes: Vec<PoolSize>, out: &mut Vec<LeafAction>) {
        self.pools.resize_with(sizes.len(), Pool::default);
        for (pool, size) in sizes.into_iter().enumerate() {
            let before = core::mem::replace(&mut self.pools[pool].size, size);
            self.settle(pool, &before, out);
        }
    }

    /// The controller above has let a pool in, or lets it stay.
    pub fn granted(&self, pool: SliceId, grant: &WorkerRegistration, out: &mut Vec<LeafAction>) {
        let is_in = |pool: &Pool| matches!(pool.stands, Stands::In(_));
        if !self.pools.get(usize::from(pool.0)).is_some_and(is_in) {
            return;
        }
        let WorkerRegistration { switch: at, epoch, worker: leaf, generation, start, .. } = *grant;
        out.push(LeafAction::Link(pool, SpineRow { at, epoch, leaf, generation, start }));
    }

    /// A pool's registration has ended, as was asked for.
    pub fn left(&mut self, pool: SliceId, out: &mut Vec<LeafAction>) {
        let index = usize::from(pool.0);
        let Some(known) = self.pools.get_mut(index) else { return };
        known.stands = Stands::Out;
        self.settle(index, &PoolSize::default(), out);
    }

    /// Brings a pool to where it should be.
    fn settle(&mut self, index: usize, before: &PoolSize, out: &mut Vec<LeafAction>) {
        let Pool { size, stands } = &self.pools[index];
        let pool = SliceId(index as u16);
        match (*stands, size.workers) {
            (Stands::Out, 1..) => {
                self.life = self.life.wrapping_add(1);
                self.pools[index].stands = Stands::In(self.life);
                out.push(self.say(index, self.life, true));
            }
            (Stands::In(_), 0) if !size.waits => {
                self.pools[index].stands = Stands::Leaving;
                out.push(LeafAction::Leave(pool));
            }
            (Stands::In(life), 1..) if size != before => {
                out.push(self.say(index, life, size.workers != before.workers));
            }
            (Stands::In(_) | Stands::Out | Stands::Leaving, _) => {}
        }
    }

    fn say(&self, index: usize, life: u64, at_once: bool) -> LeafAction {
        let PoolSize { name, types, workers, quotas, capacity, recent, .. } = &self.pools[index].size;
        let quota = u8::try_from(*quotas).unwrap_or(u8::MAX).clamp(1, self.quota_max);
        let hello = WorkerHello {
            name: format!("{}/{name}", self.name),
            life,
            at: self.at,
            slice: name.clone(),
            types: types.clone(),
            labels: Vec::new(),
            quota,
            capacity: *capacity,
            recent: *recent,
            server: String::new(),
            rejoins: 0,
            workers: *workers,
            held: None,
        };
        LeafAction::Say { pool: SliceId(index as u16), hello, at_once }
    }
}
