//! Whose tokens may enter the switch's queues, as the controllers wrote it: a book beside the switch's own
//! tables.
//!
//! A worker's registration changes in steps, and the first closes the way in: from then on no token of it is
//! let in, also none that a sweep carries, and what the worker hears of its counters is not final. All later
//! steps rest on that.

use std::collections::BTreeMap;

use sluice_wire::tables::TableOp;
use sluice_wire::{Generation, WorkerId};

pub(super) type Bearer = (WorkerId, Generation);

/// The generation of each worker whose tokens are let in.
#[derive(Debug, Default)]
pub(super) struct Gate {
    open: BTreeMap<WorkerId, Generation>,
}

impl Gate {
    /// The switch carried out what a controller wrote.
    pub(super) fn written(&mut self, op: &TableOp) {
        let TableOp::SetWorker(worker, row) = op else { return };
        match row.filter(|row| row.open) {
            Some(row) => self.open.insert(*worker, row.generation),
            None => self.open.remove(worker),
        };
    }

    /// The worker of this registration, if none of its tokens may come in.
    pub(super) fn turns_away(&self, (worker, generation): Bearer) -> Option<WorkerId> {
        (self.open.get(&worker) != Some(&generation)).then_some(worker)
    }
}
