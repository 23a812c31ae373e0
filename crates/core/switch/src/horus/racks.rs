//! Which racks a spine's pools have, and what one task adds to the average of each (Horus A.2).

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use sluice_wire::tables::WorkerRow;
use sluice_wire::{Endpoint, SliceId};

use super::Average;
use crate::config::Config;
use crate::pipeline::Layout;

/// The racks of all pools, kept by the spine's own control software.
#[derive(Debug)]
pub(super) struct Racks {
    leaves: usize,
    /// The share of each leaf in each pool; `None` if the leaf has no workers of the pool.
    shares: Box<[Option<Average>]>,
    /// Leaves whose rows are open.
    open: Box<[bool]>,
    at: Box<[Option<Endpoint>]>,
    /// The addresses of all leaves without repetition, sorted.
    known: Vec<Endpoint>,
    /// For each pool its open leaves with workers, in order.
    there: Box<[Vec<u16>]>,
}

impl Racks {
    /// No pool has a rack.
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

    /// Accounts for the match tables: a pool's racks, once for each sample, in `samples`, and their shares
    /// in `shares`.
    pub(super) fn tables(layout: &mut Layout, samples: u8, shares: u8, config: &Config) {
        let rows = config.workers as usize * config.slices as usize;
        layout.table("racks of samples 0", samples, 16, rows);
        layout.table("racks of samples 1", samples, 16, rows);
        layout.table("shares of averages", shares, 32, rows);
    }

    const fn cell(&self, pool: SliceId, leaf: u16) -> usize {
        pool.0 as usize * self.leaves + leaf as usize
    }

    /// The leaves of a pool to which tasks may go.
    pub(super) fn of(&self, pool: SliceId) -> &[u16] {
        &self.there[pool.0 as usize]
    }

    /// The amount that a task adds at this leaf; `None` if no tasks may go there.
    pub(super) fn share(&self, pool: SliceId, leaf: u16) -> Option<Average> {
        self.shares[self.cell(pool, leaf)].filter(|_| self.open[leaf as usize])
    }

    /// Sets the leaf's share in the pool, or `None` if it has no workers of it.
    pub(super) fn set_share(&mut self, pool: SliceId, leaf: u16, share: Option<Average>) {
        self.shares[self.cell(pool, leaf)] = share;
        self.list(pool);
    }

    /// Whether this is the address of a leaf.
    pub(super) fn is_leaf(&self, at: Endpoint) -> bool {
        self.known.binary_search(&at).is_ok()
    }

    /// Takes a leaf's row, which says whether tasks may go to it and where it is.
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
