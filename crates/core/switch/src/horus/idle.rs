//! The nodes that are idle (Horus §3.3, Algorithm 1): the newest is taken first, and any may be removed.
//!
//! `list` holds a pool's idle nodes without a gap, `count` says how many, `index` where each of them
//! stands. Adding and taking are one pass each. A removal closes the gap with the last node, which takes a
//! second pass: the first reads who the last one is, and has gone past the list then. Between the two come
//! others, so a lock lets one removal in at a time.
//!
//! As printed that has holes. An add between the passes may be overwritten by the second one, a take there
//! may get the node that is being removed and lose the last one, and who is added or removed twice is there
//! twice or takes another node with it. At a leaf an entry counts only if its node's index points at it
//! (here); a spine knows whether a rack has an entry before it touches the list (module [`racks`]).
//!
//! At a leaf:
//!
//! - whoever is added while it is listed stays where it is; the entry that the pass has written before it
//!   could know is *stale*, and whoever takes it is told so and takes again. It happens whenever a worker
//!   has told that it holds nothing while a task was on its way to it;
//! - who finds the list full, which then has stale entries, is *owed* a place: a second list behind the
//!   first has it, once, and the next task that takes brings it back in a second pass;
//! - the first pass of a removal clears the index, and with that the node is no longer idle, whatever comes
//!   of the second, also if the lock was taken;
//! - the second pass closes the gap only if no node was added or taken meanwhile, which it sees from
//!   `count`, whose upper half counts adds; else the gap is a stale entry.

pub(super) mod racks;

use crate::pipeline::{Layout, Pass, Register};

/// An index of a node that is not listed; of others it is their place plus one.
const NONE: u16 = 0;
/// An index of a node that waits for a place.
const OWED: u16 = u16::MAX;
/// Places of a leaf's list for each node, as far as they can be told apart: the others are for stale entries.
const STALE_ROOM: u16 = 4;
/// A node more, and an add more in the upper half.
const ADDED: u32 = 1 << 16 | 1;

/// The stages of the arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleStages {
    pub(super) lock: u8,
    pub(super) count: u8,
    pub(super) list: u8,
    pub(super) index: u8,
}

/// The stages of the list of nodes that are owed a place, behind all others that a pass of theirs touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwedStages {
    pub(super) count: u8,
    pub(super) list: u8,
}

/// Nodes that found their pool's list full; none is here twice.
#[derive(Debug)]
struct OwedEntries {
    count: Register<u16>,
    list: Register<u16>,
}

/// Every pool's list.
#[derive(Debug)]
pub(super) struct IdleList {
    /// Nodes that a pool may have.
    nodes: u16,
    /// Places of its list.
    places: u16,
    as_published: bool,
    /// Whether a removal is between its passes.
    lock: Register<bool>,
    /// Entries in the lower half, adds in the upper one.
    count: Register<u32>,
    list: Register<u16>,
    index: Register<u16>,
    /// At a leaf, unless its list is as printed.
    owed: Option<OwedEntries>,
}

/// Who was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Vacancy {
    /// This node, which is no longer listed.
    Node(u16),
    /// Nobody: the entry did not count. There may be others.
    Stale,
    /// Nobody is listed.
    Nobody,
}

/// What an add came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Added {
    /// Entries that the list has now.
    pub(super) entries: u16,
    /// The list was full, and the node waits for a place: [`IdleList::owe`] has to follow in the same pass.
    pub(super) is_owed: bool,
}

/// The most nodes whose removal fits what a packet carries round: see [`Removal::memo`].
pub(super) const NODES_ROUND_MAX: u16 = (1 << 12) - 1;
/// What of `count` is compared with what it was: all entries, and the adds modulo 4,096, far more than come
/// while a packet goes round.
const COMPARED: u32 = 0x0fff_ffff;

/// What a removal carries into its second pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Removal {
    pool: u16,
    /// Where the removed node stood, as `index` has it.
    held: u16,
    /// The last node.
    last: u16,
    /// `count`, as the first pass found it, where it is compared.
    count: u32,
}

impl Removal {
    /// In 64 bits, where a list has at most [`NODES_ROUND_MAX`] nodes.
    pub(super) const fn memo(self) -> u64 {
        let Self { pool, held, last, count } = self;
        let (adds, entries) = (count >> 16, entries(count));
        (pool as u64) << 48 | (held as u64) << 36 | (last as u64) << 24 | (adds as u64) << 12 | entries as u64
    }

    pub(super) fn of(memo: u64) -> Self {
        let part = |shift: u32| (memo >> shift) as u16 & NODES_ROUND_MAX;
        let count = u32::from(part(12)) << 16 | u32::from(part(0));
        Self { pool: (memo >> 48) as u16, held: part(36), last: part(24), count }
    }
}

const fn entries(count: u32) -> u16 {
    count as u16
}

impl IdleList {
    /// Nobody is idle. The list is as printed.
    pub(super) fn as_published(layout: &mut Layout, at: IdleStages, pools: u16, nodes: u16) -> Self {
        Self::new(layout, at, (pools, nodes, nodes), true)
    }

    /// The same of a leaf, healed.
    pub(super) fn of_leaf(
        layout: &mut Layout,
        at: IdleStages,
        owed: OwedStages,
        (pools, nodes): (u16, u16),
    ) -> Self {
        let places = nodes.saturating_mul(STALE_ROOM).min(OWED - 1);
        Self::with_room(layout, at, owed, (pools, nodes, places))
    }

    /// A leaf's, with so many places.
    fn with_room(
        layout: &mut Layout,
        at: IdleStages,
        owed: OwedStages,
        (pools, nodes, places): (u16, u16, u16),
    ) -> Self {
        let mut list = Self::new(layout, at, (pools, nodes, places), false);
        list.owed = Some(OwedEntries {
            count: Register::new(layout, "owed count", owed.count, 16, pools.into(), 0),
            list: Register::new(layout, "owed list", owed.list, 16, pools as usize * nodes as usize, 0),
        });
        list
    }

    fn new(
        layout: &mut Layout,
        at: IdleStages,
        (pools, nodes, places): (u16, u16, u16),
        as_published: bool,
    ) -> Self {
        let of_pools = pools as usize;
        Self {
            nodes,
            places,
            as_published,
            lock: Register::new(layout, "idle lock", at.lock, 1, of_pools, false),
            count: Register::new(layout, "idle count", at.count, 32, of_pools, 0),
            list: Register::new(layout, "idle list", at.list, 16, of_pools * places as usize, 0),
            index: Register::new(layout, "idle index", at.index, 16, of_pools * nodes as usize, NONE),
            owed: None,
        }
    }

    /// The index' cell of a node.
    const fn cell(&self, pool: u16, node: u16) -> usize {
        pool as usize * self.nodes as usize + node as usize
    }

    /// The list's cell of a place.
    const fn place(&self, pool: u16, at: u16) -> usize {
        pool as usize * self.places as usize + at as usize
    }

    /// A node says that it is idle. One that is owed a place waits on for it, so that it is owed one only.
    pub(super) fn add(&mut self, pass: &mut Pass, pool: u16, node: u16) -> Added {
        let as_published = self.as_published;
        self.add_if(pass, (pool, node), |held| as_published || held == NONE, NONE)
    }

    /// A node that is owed a place gets one, unless it has left or found one meanwhile.
    pub(super) fn give(&mut self, pass: &mut Pass, pool: u16, node: u16) -> Added {
        self.add_if(pass, (pool, node), |held| held == OWED, OWED)
    }

    /// The entry counts if the node's index `is_new`. Where there is no room, a node of this index is owed
    /// it.
    fn add_if(
        &mut self,
        pass: &mut Pass,
        (pool, node): (u16, u16),
        is_new: impl Fn(u16) -> bool,
        unplaced: u16,
    ) -> Added {
        let (places, cell) = (self.places, self.cell(pool, node));
        let has_room = |count: u32| entries(count) < places;
        let count = self.count.branch(pass, pool.into(), has_room, |count| count.wrapping_add(ADDED), |c| c);
        if !has_room(count) {
            if self.owed.is_none() {
                return Added { entries: places, is_owed: false };
            }
            let is_owed = |held: u16| held == unplaced;
            let held = self.index.branch(pass, cell, is_owed, |_| OWED, |held| held);
            return Added { entries: places, is_owed: is_owed(held) };
        }
        let place = entries(count);
        self.list.write(pass, self.place(pool, place), node);
        self.index.branch(pass, cell, is_new, |_| place + 1, |held| held);
        Added { entries: place + 1, is_owed: false }
    }

    /// The node of an add that is owed a place waits for it.
    #[cold]
    pub(super) fn owe(&mut self, pass: &mut Pass, pool: u16, node: u16) {
        let nodes = usize::from(self.nodes);
        let Some(owed) = &mut self.owed else { return };
        let has_room = |count: u16| usize::from(count) < nodes;
        let count = owed.count.branch(pass, pool.into(), has_room, |count| count + 1, |count| count);
        if has_room(count) {
            owed.list.write(pass, usize::from(pool) * nodes + usize::from(count), node);
        }
    }

    /// Somebody who is owed a place, for the next pass of whoever asks: [`IdleList::give`].
    #[inline]
    pub(super) fn owes(&mut self, pass: &mut Pass, pool: u16) -> Option<u16> {
        let nodes = usize::from(self.nodes);
        let owed = self.owed.as_mut()?;
        let count = owed.count.update(pass, pool.into(), |count| count.saturating_sub(1));
        (count > 0).then(|| owed.list.read(pass, usize::from(pool) * nodes + usize::from(count) - 1))
    }

    /// Takes the newest; gives how many entries are left.
    pub(super) fn take(&mut self, pass: &mut Pass, pool: u16) -> (Vacancy, u16) {
        let held = entries(self.drop_last(pass, pool));
        if held == 0 {
            return (Vacancy::Nobody, 0);
        }
        let node = self.list.read(pass, self.place(pool, held - 1));
        let as_published = self.as_published;
        let counts = |index: u16| as_published || index == held;
        let index = self.index.branch(pass, self.cell(pool, node), counts, |_| NONE, |index| index);
        (if counts(index) { Vacancy::Node(node) } else { Vacancy::Stale }, held - 1)
    }

    /// As printed: looks at one that stays, the newest, or the one that `place` chooses among so many.
    pub(super) fn look(&mut self, pass: &mut Pass, pool: u16, place: impl FnOnce(u16) -> u16) -> Option<u16> {
        let held = entries(self.count.read(pass, pool.into()));
        (held > 0).then(|| self.list.read(pass, self.place(pool, place(held))))
    }

    /// As printed: whether a node is listed.
    pub(super) fn has(&mut self, pass: &mut Pass, pool: u16, node: u16) -> bool {
        self.index.read(pass, self.cell(pool, node)) != NONE
    }

    /// First pass of a removal; `None` if there is no second one.
    pub(super) fn remove(&mut self, pass: &mut Pass, pool: u16, node: u16) -> Option<Removal> {
        let is_alone = !self.lock.update(pass, pool.into(), |_| true);
        if self.as_published && !is_alone {
            return None;
        }
        let count =
            if self.as_published { self.drop_last(pass, pool) } else { self.count.read(pass, pool.into()) };
        let last = self.list.read(pass, self.place(pool, entries(count).saturating_sub(1)));
        let as_published = self.as_published;
        let cell = self.cell(pool, node);
        let held = self.index.update(pass, cell, |held| if as_published { held } else { NONE });
        let held = if held == OWED { NONE } else { held };
        is_alone.then_some(Removal { pool, held, last, count: count & COMPARED })
    }

    /// Second pass of a removal.
    pub(super) fn close_gap(&mut self, pass: &mut Pass, removal: Removal) {
        let Removal { pool, held, last, count } = removal;
        self.lock.write(pass, pool.into(), false);
        let cell = self.cell(pool, last);
        if self.as_published {
            let place = held.saturating_sub(1);
            self.list.write(pass, self.place(pool, place), last);
            return self.index.write(pass, cell, place + 1);
        }
        if held == NONE {
            return;
        }
        let is_untouched = |now: u32| now & COMPARED == count;
        let now = self.count.branch(pass, pool.into(), is_untouched, |now| now - 1, |now| now);
        if !is_untouched(now) || held == entries(count) {
            return;
        }
        self.list.write(pass, self.place(pool, held - 1), last);
        let counts = |index: u16| index == entries(count);
        self.index.branch(pass, cell, counts, |_| held, |index| index);
    }

    /// The control software's write: a node has left. Both passes of a removal, one behind the other; and
    /// nothing is owed to it any more.
    pub(super) fn forget(&mut self, name: &'static str, pool: u16, node: u16) {
        if let Some(removal) = self.remove(&mut Pass::begin(name), pool, node) {
            self.close_gap(&mut Pass::begin(name), removal);
        }
        let first = usize::from(pool) * usize::from(self.nodes);
        let Some(owed) = &mut self.owed else { return };
        let mut kept = 0;
        for at in 0..usize::from(owed.count.peek(pool.into())) {
            let waits = owed.list.peek(first + at);
            if waits != node {
                owed.list.poke(first + usize::from(kept), waits);
                kept += 1;
            }
        }
        owed.count.poke(pool.into(), kept);
    }

    /// The control software's look: how many entries a pool has.
    pub(super) fn entries(&self, pool: u16) -> u16 {
        entries(self.count.peek(pool.into()))
    }

    /// One entry fewer, if there is one; gives the count before.
    fn drop_last(&mut self, pass: &mut Pass, pool: u16) -> u32 {
        self.count.branch(pass, pool.into(), |count| entries(count) > 0, |count| count - 1, |count| count)
    }
}

#[cfg(test)]
mod tests;
