//! Which racks a spine's pools have, and what one task adds to the average of each (Horus A.2).

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use sluice_wire::tables::WorkerRow;
use sluice_wire::{Endpoint, SliceId};

use super::Average;
use crate::config::Config;
use crate::pipeline::Layout;

/// Every pool's racks. The spine's own control software keeps them.
#[derive(Debug)]
pub(super) struct Racks {
    leaves: usize,
    /// By pool and leaf; none where the leaf has no workers of the pool.
    shares: Box<[Option<Average>]>,
    /// Leaves whose rows are open.
    open: Box<[bool]>,
    at: Box<[Option<Endpoint>]>,
    /// All of these once, in order.
    known: Vec<Endpoint>,
    /// By pool: open leaves with workers of it, in order.
    there: Box<[Vec<u16>]>,
}

impl Racks {
    /// No pool has any.
    pub(super) fn new(config: &Config) -> Self {
        let (leaves, pools) = (config.workers as usize, config.slices as usize);
        Self {
            leaves,
            shares: vec![None; leaves * pools].into_boxed_slice(),
            open: vec![false; leaves].into_boxed_slice(),
            at: vec![None; leaves].into_boxed_slice(),
            known: Vec::new(),
            there: vec![Vec::new(); pools].into_boxed_slice(),
        }
    }

    /// The match tables: a pool's racks once for each sample in `samples`, shares in `shares`.
    pub(super) fn tables(layout: &mut Layout, samples: u8, shares: u8, config: &Config) {
        let rows = config.workers as usize * config.slices as usize;
        layout.table("racks of samples 0", samples, 16, rows);
        layout.table("racks of samples 1", samples, 16, rows);
        layout.table("shares of averages", shares, 32, rows);
    }

    const fn cell(&self, pool: SliceId, leaf: u16) -> usize {
        pool.0 as usize * self.leaves + leaf as usize
    }

    /// Leaves of a pool that tasks may go to.
    pub(super) fn of(&self, pool: SliceId) -> &[u16] {
        &self.there[pool.0 as usize]
    }

    /// What a task adds at this leaf, if tasks may go there.
    pub(super) fn share(&self, pool: SliceId, leaf: u16) -> Option<Average> {
        self.shares[self.cell(pool, leaf)].filter(|_| self.open[leaf as usize])
    }

    /// The leaf has workers of the pool, or none.
    pub(super) fn set_share(&mut self, pool: SliceId, leaf: u16, share: Option<Average>) {
        self.shares[self.cell(pool, leaf)] = share;
        self.list(pool);
    }

    /// Whether a leaf sends from there.
    pub(super) fn is_leaf(&self, at: Endpoint) -> bool {
        self.known.binary_search(&at).is_ok()
    }

    /// Tasks may go to this leaf as its row says.
    pub(super) fn set_leaf(&mut self, leaf: u16, row: Option<&WorkerRow>) {
        self.open[leaf as usize] = row.is_some_and(|row| row.open);
        self.at[leaf as usize] = row.map(|row| row.at);
        self.known = self.at.iter().flatten().copied().collect();
        self.known.sort_unstable();
        self.known.dedup();
        (0..self.there.len() as u16).for_each(|pool| self.list(SliceId(pool)));
    }

    fn list(&mut self, pool: SliceId) {
        let there = (0..self.leaves as u16).filter(|leaf| self.share(pool, *leaf).is_some()).collect();
        self.there[pool.0 as usize] = there;
    }
}
