//! The list of idle nodes (Horus §3.3, Algorithm 1): a task takes the newest node, and any node may be
//! removed.
//!
//! `list` holds a pool's idle nodes without a gap, `count` says how many there are, and `index` says where
//! each of them stands. Adding and taking are one pass each. A removal closes the gap with the last node,
//! which takes a second pass: the first pass reads which node is the last, and is behind the list's stage
//! by then. Other packets pass between the two, so a lock lets in one removal at a time.
//!
//! As printed, the algorithm has holes. The second pass may overwrite an add that came between the passes.
//! A take between them may get the node that is being removed, and lose the last one. A node that is added
//! twice is listed twice, and a node that is removed twice takes another node with it. At a leaf, an entry
//! counts only if its node's index points at it (this module). A spine knows whether a rack has an entry
//! before it touches the list (module [`racks`]).
//!
//! At a leaf:
//!
//! - A node that is added while it is listed stays where it is. The pass has written a second entry before
//!   it could know. That entry is *stale*, and a task that takes it is told so and takes again. This
//!   happens whenever a worker told that it holds nothing while a task was on its way to it.
//! - A node that finds the list full, which then has stale entries, is *owed* a place. A second list behind
//!   the first holds it, once, and the next task that takes a node brings it back in a second pass.
//! - The first pass of a removal clears the index, and from then on the node is not idle, whatever the
//!   second pass does, and even if the lock was taken.
//! - The second pass closes the gap only if no node was added or taken meanwhile. It sees that from
//!   `count`, whose upper half counts adds. Otherwise the gap becomes a stale entry.

pub(super) mod racks;

use crate::pipeline::{Layout, Pass, Register};

/// The index of a node that is not listed. For a listed node the index is its place plus one.
const NONE: u16 = 0;
/// The index of a node that is owed a place.
const OWED: u16 = u16::MAX;
/// Places of a leaf's list for each node. Those beyond one per node are for stale entries.
const STALE_ROOM: u16 = 4;
/// Added to `count`: one entry in the lower half, and one add in the upper half.
const ADDED: u32 = 1 << 16 | 1;

/// The stages of the arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleStages {
    pub(super) lock: u8,
    pub(super) count: u8,
    pub(super) list: u8,
    pub(super) index: u8,
}

/// The stages of the list of nodes that are owed a place, behind all other arrays that such a node's pass
/// touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwedStages {
    pub(super) count: u8,
    pub(super) list: u8,
}

/// Nodes that found their pool's list full; each is here at most once.
#[derive(Debug)]
struct OwedEntries {
    count: Register<u16>,
    list: Register<u16>,
}

/// The lists of all pools.
#[derive(Debug)]
pub(super) struct IdleList {
    /// Nodes that a pool may have.
    nodes: u16,
    /// Places of a pool's list.
    places: u16,
    as_published: bool,
    /// Whether a removal is between its passes.
    lock: Register<bool>,
    /// Entries in the lower half, adds in the upper one.
    count: Register<u32>,
    list: Register<u16>,
    index: Register<u16>,
    /// The nodes that are owed a place; `None` if the list is as printed, or at a spine.
    owed: Option<OwedEntries>,
}

/// The result of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Vacancy {
    /// This node, which is no longer listed.
    Node(u16),
    /// No node: the entry was stale. Other entries may still count.
    Stale,
    /// No node: the list is empty.
    Nobody,
}

/// The result of an add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Added {
    /// Entries that the list has now.
    pub(super) entries: u16,
    /// The list was full, and the node is owed a place: [`IdleList::owe`] has to follow in the same pass.
    pub(super) is_owed: bool,
}

/// The most nodes for which a removal fits its memo: see [`Removal::memo`].
pub(super) const NODES_ROUND_MAX: u16 = (1 << 12) - 1;
/// The bits of `count` that the second pass of a removal compares: all entries, and the adds modulo 4,096.
/// Far fewer adds come while a packet recirculates.
const COMPARED: u32 = 0x0fff_ffff;

/// The state that a removal carries into its second pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Removal {
    pool: u16,
    /// The `index` of the removed node.
    held: u16,
    /// The last node.
    last: u16,
    /// The compared bits of `count`, as the first pass found them.
    count: u32,
}

impl Removal {
    /// Packs the removal into 64 bits, which fits lists of at most [`NODES_ROUND_MAX`] nodes.
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
    /// Empty lists, with the algorithm as printed.
    pub(super) fn as_published(layout: &mut Layout, at: IdleStages, pools: u16, nodes: u16) -> Self {
        Self::new(layout, at, (pools, nodes, nodes), true)
    }

    /// Empty lists of a leaf, with the printed holes closed.
    pub(super) fn of_leaf(
        layout: &mut Layout,
        at: IdleStages,
        owed: OwedStages,
        (pools, nodes): (u16, u16),
    ) -> Self {
        let places = nodes.saturating_mul(STALE_ROOM).min(OWED - 1);
        Self::with_room(layout, at, owed, (pools, nodes, places))
    }

    /// Empty lists of a leaf, with so many places each.
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

    /// The cell of a node in `index`.
    const fn cell(&self, pool: u16, node: u16) -> usize {
        pool as usize * self.nodes as usize + node as usize
    }

    /// The cell of a place in `list`.
    const fn place(&self, pool: u16, at: u16) -> usize {
        pool as usize * self.places as usize + at as usize
    }

    /// Adds a node that is idle. A node that is owed a place already stays so, and is not owed a second
    /// one.
    pub(super) fn add(&mut self, pass: &mut Pass, pool: u16, node: u16) -> Added {
        let as_published = self.as_published;
        self.add_if(pass, (pool, node), |held| as_published || held == NONE, NONE)
    }

    /// Gives a place to a node that is owed one, unless the node has left or found one meanwhile.
    pub(super) fn give(&mut self, pass: &mut Pass, pool: u16, node: u16) -> Added {
        self.add_if(pass, (pool, node), |held| held == OWED, OWED)
    }

    /// Adds an entry, which counts if `is_new` holds for the node's index. If the list is full, and the
    /// node's index is `unplaced`, the node becomes owed a place.
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

    /// Puts a node on the list of those that are owed a place.
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

    /// Takes a node that is owed a place. The caller gives it one in its next pass: [`IdleList::give`].
    #[inline]
    pub(super) fn owes(&mut self, pass: &mut Pass, pool: u16) -> Option<u16> {
        let nodes = usize::from(self.nodes);
        let owed = self.owed.as_mut()?;
        let count = owed.count.update(pass, pool.into(), |count| count.saturating_sub(1));
        (count > 0).then(|| owed.list.read(pass, usize::from(pool) * nodes + usize::from(count) - 1))
    }

    /// Takes the newest node; returns also how many entries are left.
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

    /// As printed: returns a node and leaves it listed. `place` gets the number of entries and chooses one.
    pub(super) fn look(&mut self, pass: &mut Pass, pool: u16, place: impl FnOnce(u16) -> u16) -> Option<u16> {
        let held = entries(self.count.read(pass, pool.into()));
        (held > 0).then(|| self.list.read(pass, self.place(pool, place(held))))
    }

    /// As printed: whether a node is listed.
    pub(super) fn has(&mut self, pass: &mut Pass, pool: u16, node: u16) -> bool {
        self.index.read(pass, self.cell(pool, node)) != NONE
    }

    /// First pass of a removal; `None` if no second pass is needed.
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

    /// Called by the control software: removes a node that has left. Both passes of the removal run one
    /// behind the other, and the node is owed no place any more.
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

    /// Called by the control software: how many entries a pool has.
    pub(super) fn entries(&self, pool: u16) -> u16 {
        entries(self.count.peek(pool.into()))
    }

    /// Removes the last entry, if there is one; returns the count before.
    fn drop_last(&mut self, pass: &mut Pass, pool: u16) -> u32 {
        self.count.branch(pass, pool.into(), |count| entries(count) > 0, |count| count - 1, |count| count)
    }
}

#[cfg(test)]
mod tests;
