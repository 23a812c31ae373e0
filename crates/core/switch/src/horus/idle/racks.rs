//! A spine's lists of idle racks. Tasks look at a list and take no rack off: only a leaf's word does that.
//!
//! As printed ([`IdleList`]), each word that a rack is idle adds an entry, a removal that finds the lock
//! taken is dropped, and a removal overwrites an add that came between its two passes. A leaf repeats its
//! words: with each renewal, with each reply that leaves all of a rack's workers idle, and after each task
//! whose spine had another view. So the list of a quiet datacenter fills, and a rack that becomes idle then
//! is lost.
//!
//! Here each rack has a word of its own, in a stage before the list: whether the rack was idle by its
//! leaf's last word, whether it has an entry, and whether that entry is being removed. Only a rack without
//! an entry is appended, so a list needs one place for each rack. The first pass of a removal takes the
//! last entry off, and the second pass puts it into the gap, so that adds between the two change nothing.
//! While another removal has the lock, a removal recirculates, at most one for each rack. If its rack is
//! idle again by then, the entry stays. No entry is ever stale, so no task recirculates for one.

use alloc::vec::Vec;

use super::{IdleList, IdleStages, NODES_ROUND_MAX, NONE, Removal};
use crate::pipeline::{Layout, Pass, Register};

/// Bit of a rack's word: the rack is idle by its leaf's last word.
const IDLE: u16 = 1;
/// Bit of a rack's word: the rack has an entry.
const ENTRY: u16 = 1 << 1;
/// Bit of a rack's word: a removal of its entry is under way.
const LEAVING: u16 = 1 << 2;
/// The other bits of the word count the rack's removals; this is the lowest of them.
const NUMBERED: u16 = 1 << 3;
/// How many bits of that count a removal carries.
const NUMBERS: u32 = 11;
const NUMBER_MAX: u16 = (1 << NUMBERS) - 1;

/// The lists of idle racks of all pools.
#[derive(Debug)]
pub(crate) struct IdleRacks(RackList);

#[derive(Debug)]
enum RackList {
    Exact(ExactList),
    AsPublished(IdleList),
}

#[derive(Debug)]
struct ExactList {
    nodes: u16,
    words: Register<u16>,
    /// Whether a removal is between its passes.
    lock: Register<bool>,
    count: Register<u16>,
    list: Register<u16>,
    index: Register<u16>,
}

/// What a removal does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RemovalStep {
    /// Nothing yet: another removal has the lock.
    Waits,
    /// It fills the gap at `held` (as `index` counts) with the rack that was last.
    Closes { last: u16, held: u16 },
}

/// A removal under way: its rack and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RackRemoval {
    pool: u16,
    node: u16,
    number: u16,
    going: RemovalStep,
}

impl RackRemoval {
    /// Packs the removal into 64 bits: pool (16), number (11), whether it waits (1), rack, last rack and
    /// gap (12 each).
    fn memo(self) -> u64 {
        let Self { pool, node, number, going } = self;
        let (waits, last, held) = match going {
            RemovalStep::Waits => (true, 0, 0),
            RemovalStep::Closes { last, held } => (false, last, held),
        };
        let racks = [node, last, held].into_iter().fold(0, |bits, part| bits << 12 | u64::from(part));
        u64::from(pool) << 48 | u64::from(number) << 37 | u64::from(waits) << 36 | racks
    }

    fn of(memo: u64) -> Self {
        let part = |shift: u32| (memo >> shift) as u16 & NODES_ROUND_MAX;
        let closes = RemovalStep::Closes { last: part(12), held: part(0) };
        Self {
            pool: (memo >> 48) as u16,
            node: part(24),
            number: (memo >> 37) as u16 & NUMBER_MAX,
            going: if memo >> 36 & 1 == 1 { RemovalStep::Waits } else { closes },
        }
    }
}

const fn number(word: u16) -> u16 {
    (word / NUMBERED) & NUMBER_MAX
}

impl IdleRacks {
    /// Empty lists. `words` is the stage of the racks' words, before the stage of the lock.
    pub(crate) fn new(
        layout: &mut Layout,
        (words, at): (u8, IdleStages),
        (pools, nodes): (u16, u16),
        as_published: bool,
    ) -> Self {
        if as_published {
            return Self(RackList::AsPublished(IdleList::as_published(layout, at, pools, nodes)));
        }
        let (of_pools, cells) = (pools as usize, pools as usize * nodes as usize);
        Self(RackList::Exact(ExactList {
            nodes,
            words: Register::new(layout, "idle words", words, 16, cells, 0),
            lock: Register::new(layout, "idle lock", at.lock, 1, of_pools, false),
            count: Register::new(layout, "idle count", at.count, 16, of_pools, 0),
            list: Register::new(layout, "idle list", at.list, 16, cells, 0),
            index: Register::new(layout, "idle index", at.index, 16, cells, NONE),
        }))
    }

    /// A leaf says whether its rack is idle; returns the memo of a packet that has to recirculate.
    pub(crate) fn says(&mut self, pass: &mut Pass, pool: u16, node: u16, is_idle: bool) -> Option<u64> {
        match &mut self.0 {
            RackList::Exact(exact) => exact.says(pass, (pool, node), is_idle).map(RackRemoval::memo),
            RackList::AsPublished(printed) if is_idle => {
                printed.add(pass, pool, node);
                None
            }
            RackList::AsPublished(printed) => printed.remove(pass, pool, node).map(Removal::memo),
        }
    }

    /// A recirculating removal passes again; returns its next memo if it has to recirculate once more.
    pub(crate) fn goes_on(&mut self, pass: &mut Pass, memo: u64) -> Option<u64> {
        match &mut self.0 {
            RackList::Exact(exact) => exact.goes_on(pass, RackRemoval::of(memo)).map(RackRemoval::memo),
            RackList::AsPublished(printed) => {
                printed.close_gap(pass, Removal::of(memo));
                None
            }
        }
    }

    /// Returns a rack and leaves it listed: the newest, or the one that `place` chooses among so many
    /// entries.
    #[inline]
    pub(crate) fn look(&mut self, pass: &mut Pass, pool: u16, place: impl FnOnce(u16) -> u16) -> Option<u16> {
        match &mut self.0 {
            RackList::Exact(exact) => {
                let count = exact.count.read(pass, pool.into());
                (count > 0).then(|| exact.list.read(pass, exact.cell(pool, place(count))))
            }
            RackList::AsPublished(printed) => printed.look(pass, pool, place),
        }
    }

    /// Whether a rack is listed.
    pub(crate) fn has(&mut self, pass: &mut Pass, pool: u16, node: u16) -> bool {
        match &mut self.0 {
            RackList::Exact(exact) => exact.words.read(pass, exact.cell(pool, node)) & IDLE != 0,
            RackList::AsPublished(printed) => printed.has(pass, pool, node),
        }
    }

    /// Called by the control software: whether a rack has an entry.
    pub(crate) fn is_listed(&self, pool: u16, node: u16) -> bool {
        match &self.0 {
            RackList::Exact(exact) => exact.words.peek(exact.cell(pool, node)) & ENTRY != 0,
            RackList::AsPublished(printed) => printed.index.peek(printed.cell(pool, node)) != NONE,
        }
    }

    /// Called by the control software: how many entries a pool has.
    pub(crate) fn entries(&self, pool: u16) -> u16 {
        match &self.0 {
            RackList::Exact(exact) => exact.count.peek(pool.into()),
            RackList::AsPublished(printed) => printed.entries(pool),
        }
    }

    /// Called by the control software: forgets all that is known of a rack.
    pub(crate) fn forget(&mut self, name: &'static str, pool: u16, node: u16) {
        match &mut self.0 {
            RackList::Exact(exact) => exact.forget(pool, node),
            RackList::AsPublished(printed) => printed.forget(name, pool, node),
        }
    }
}

impl ExactList {
    const fn cell(&self, pool: u16, at: u16) -> usize {
        pool as usize * self.nodes as usize + at as usize
    }

    fn says(&mut self, pass: &mut Pass, (pool, node): (u16, u16), is_idle: bool) -> Option<RackRemoval> {
        let begins = |word: u16| word & (ENTRY | LEAVING) == ENTRY;
        let cell = self.cell(pool, node);
        if is_idle {
            let word = self.words.update(pass, cell, |word| word | IDLE | ENTRY);
            if word & ENTRY == 0 {
                self.append(pass, pool, node);
            }
            return None;
        }
        let leaves = |word: u16| (word & !IDLE | LEAVING).wrapping_add(NUMBERED);
        let word = self.words.branch(pass, cell, begins, leaves, |word| word & !IDLE);
        begins(word).then(|| self.removes(pass, (pool, node), number(leaves(word))))
    }

    fn append(&mut self, pass: &mut Pass, pool: u16, node: u16) {
        let place = self.count.update(pass, pool.into(), |count| count + 1);
        self.list.write(pass, self.cell(pool, place), node);
        self.index.write(pass, self.cell(pool, node), place + 1);
    }

    /// The first pass of a removal. It waits if another removal is between its passes.
    fn removes(&mut self, pass: &mut Pass, (pool, node): (u16, u16), number: u16) -> RackRemoval {
        let is_taken = self.lock.update(pass, pool.into(), |_| true);
        let going = if is_taken {
            RemovalStep::Waits
        } else {
            let count = self.count.update(pass, pool.into(), |count| count - 1);
            let last = self.list.read(pass, self.cell(pool, count - 1));
            RemovalStep::Closes { last, held: self.index.read(pass, self.cell(pool, node)) }
        };
        RackRemoval { pool, node, number, going }
    }

    fn goes_on(&mut self, pass: &mut Pass, leaving: RackRemoval) -> Option<RackRemoval> {
        let RackRemoval { pool, node, number: its, going } = leaving;
        let cell = self.cell(pool, node);
        let is_its = |word: u16| word & LEAVING != 0 && number(word) == its;
        let is_due = |word: u16| is_its(word) && word & IDLE == 0;
        match going {
            RemovalStep::Waits => {
                let ends = |word: u16| is_its(word) && word & IDLE != 0;
                let word = self.words.branch(pass, cell, ends, |word| word & !LEAVING, |word| word);
                is_due(word).then(|| self.removes(pass, (pool, node), its))
            }
            RemovalStep::Closes { last, held } => {
                let gone = |word: u16| word & !(LEAVING | if is_due(word) { ENTRY } else { 0 });
                let word = self.words.branch(pass, cell, is_its, gone, |word| word);
                if !is_its(word) {
                    return None;
                }
                self.lock.write(pass, pool.into(), false);
                if !is_due(word) {
                    self.append(pass, pool, last);
                } else if last != node {
                    self.list.write(pass, self.cell(pool, held - 1), last);
                    self.index.write(pass, self.cell(pool, last), held);
                }
                None
            }
        }
    }

    /// Takes a rack off its list, and writes the list anew without gaps. A removal that recirculates then
    /// finds its rack not leaving, or leaving by a later removal.
    fn forget(&mut self, pool: u16, node: u16) {
        let cell = self.cell(pool, node);
        let word = self.words.peek(cell);
        if word & (IDLE | ENTRY | LEAVING) == 0 {
            return;
        }
        self.words.poke(cell, word & !IDLE);
        let listed = (0..self.count.peek(pool.into())).map(|at| self.list.peek(self.cell(pool, at)));
        // A removal between its passes may carry a rack that the list does not hold now.
        let racks: Vec<u16> = listed.chain(0..self.nodes).collect();
        for at in 0..self.nodes {
            let cell = self.cell(pool, at);
            let word = self.words.peek(cell);
            self.words.poke(cell, word & !(ENTRY | LEAVING));
        }
        self.lock.poke(pool.into(), false);
        let mut count = 0;
        for rack in racks {
            let cell = self.cell(pool, rack);
            let word = self.words.peek(cell);
            if word & (IDLE | ENTRY) == IDLE {
                self.words.poke(cell, word | ENTRY);
                self.list.poke(self.cell(pool, count), rack);
                count += 1;
                self.index.poke(cell, count);
            }
        }
        self.count.poke(pool.into(), count);
    }
}

#[cfg(test)]
mod tests;
