//! A leaf's line to the controller of its spine (Horus §3.2, A.3). It tells that controller how many
//! workers each pool has in the rack, and learns the number by which the spine knows the leaf.
//!
//! A leaf registers once for each pool that has workers in its rack, as a worker that stands for so many.
//! Number, generation and lease are those of a worker. When the leaf dies, its lease ends and the spine
//! forgets it. When it returns, it gets its name back, in another generation. A pool whose last worker left
//! leaves the spine only after no task waits in the rack: a spine ignores leaves that it does not know, and
//! the clients of waiting tasks have to be answered. Tasks that are under way end there, so the leaf keeps
//! its spine.
//!
//! Each grant is handed on to the leaf's switch, whether or not it is new. The switch then tells the spine
//! the rack's state, so an UPDATE that was lost is repeated within a renewal.
//!
//! A pool is below one spine at a time. The driver chooses that spine: a grant of another spine is taken
//! like any other.

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
    /// The pool's name, the same at the spine.
    pub name: String,
    /// The types of the pool's tasks.
    pub types: Vec<TaskType>,
    /// Workers that serve the pool now.
    pub workers: u16,
    /// Whether tasks may still wait that no worker is there for.
    pub waits: bool,
    pub quotas: u32,
    /// How many tasks the pool's workers serve per second, all together; 0 while unknown.
    pub capacity: u32,
    /// What the pool's workers did over the last seconds.
    pub recent: RecentWork,
    /// How many tasks the rack refused because their budget was spent, at its leaf and at the pool's workers.
    pub refused_late: u64,
}

/// What the driver has to do for a leaf's line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a leaf says a hello once a second: a box gains nothing")]
pub enum LeafAction {
    /// Register the pool, or renew it with this hello from now on.
    Say {
        pool: SliceId,
        /// The pool's registration as it should be.
        hello: WorkerHello,
        /// Whether to send the hello at once, rather than with the next renewal.
        at_once: bool,
    },
    /// End the pool's registration, and call [`LeafLine::left`] when it has ended.
    Leave(SliceId),
    /// Write this row to the leaf's switch.
    Link(SliceId, SpineRow),
}

/// The line of one leaf, for one life of the leaf.
#[derive(Debug)]
pub struct LeafLine {
    name: String,
    at: Endpoint,
    quota_max: u8,
    /// The life of the last registration: each registration of a pool takes the next number.
    life: u64,
    pools: Vec<Pool>,
    /// The leaf ends: no pool is registered again.
    ends: bool,
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
    /// Registered, or about to be, under this life.
    In(u64),
    Leaving,
}

impl LeafLine {
    /// A leaf of this name, at the address where spines reach it. `life` is 64 random bits; the lives of
    /// its registrations begin there. A quota is at most `quota_max`.
    pub const fn new(name: String, at: Endpoint, life: u64, quota_max: u8) -> Self {
        Self { name, at, quota_max, life, pools: Vec::new(), ends: false }
    }

    /// Sets what the rack has of each pool, by index.
    pub fn sized(&mut self, sizes: Vec<PoolSize>, out: &mut Vec<LeafAction>) {
        self.pools.resize_with(sizes.len(), Pool::default);
        for (pool, size) in sizes.into_iter().enumerate() {
            let before = core::mem::replace(&mut self.pools[pool].size, size);
            self.settle(pool, &before, out);
        }
    }

    /// The spine's controller has granted or renewed a pool's registration.
    pub fn granted(&self, pool: SliceId, grant: &WorkerRegistration, out: &mut Vec<LeafAction>) {
        let is_in = |pool: &Pool| matches!(pool.stands, Stands::In(_));
        if !self.pools.get(usize::from(pool.0)).is_some_and(is_in) {
            return;
        }
        let WorkerRegistration { switch: at, epoch, worker: leaf, generation, start, .. } = *grant;
        out.push(LeafAction::Link(pool, SpineRow { at, epoch, leaf, generation, start }));
    }

    /// A pool's registration has ended, as the leaf asked.
    pub fn left(&mut self, pool: SliceId, out: &mut Vec<LeafAction>) {
        let index = usize::from(pool.0);
        let Some(known) = self.pools.get_mut(index) else { return };
        known.stands = Stands::Out;
        self.settle(index, &PoolSize::default(), out);
    }

    /// The leaf is about to end: ends the registrations of all pools, so that the spine hands no more tasks
    /// down.
    pub fn end(&mut self, out: &mut Vec<LeafAction>) {
        self.ends = true;
        for (pool, known) in (0..).zip(&mut self.pools) {
            if matches!(known.stands, Stands::In(_)) {
                known.stands = Stands::Leaving;
                out.push(LeafAction::Leave(SliceId(pool)));
            }
        }
    }

    /// Whether the leaf ends and no pool is registered any more.
    pub fn has_ended(&self) -> bool {
        self.ends && self.pools.iter().all(|pool| pool.stands == Stands::Out)
    }

    /// Starts what a pool's registration needs.
    fn settle(&mut self, index: usize, before: &PoolSize, out: &mut Vec<LeafAction>) {
        let Pool { size, stands } = &self.pools[index];
        let pool = SliceId(index as u16);
        match (*stands, size.workers) {
            (Stands::Out, 1..) if !self.ends => {
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
        let PoolSize { name, types, workers, quotas, capacity, recent, refused_late, .. } =
            &self.pools[index].size;
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
            refused_late: *refused_late,
            server: String::new(),
            rejoins: 0,
            workers: *workers,
            held: None,
        };
        LeafAction::Say { pool: SliceId(index as u16), hello, at_once }
    }
}
