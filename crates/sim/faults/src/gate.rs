//! Which workers' tokens may enter the switch's queues, as the controllers wrote it: a record beside the
//! switch's own tables.
//!
//! A worker's registration changes in steps, and the first step closes the worker's row. From then on no
//! token of the worker is admitted, not even one that a sweep carries, and the counters that the worker is
//! told are not final. All later steps rely on that.

use std::collections::BTreeMap;

use sluice_wire::tables::TableOp;
use sluice_wire::{Generation, WorkerId};

pub(super) type Bearer = (WorkerId, Generation);

/// The generation of each worker whose tokens are admitted.
#[derive(Debug, Default)]
pub(super) struct Gate {
    open: BTreeMap<WorkerId, Generation>,
}

impl Gate {
    /// The switch carried out an operation of a controller.
    pub(super) fn written(&mut self, op: &TableOp) {
        let TableOp::SetWorker(worker, row) = op else { return };
        match row.filter(|row| row.open) {
            Some(row) => self.open.insert(*worker, row.generation),
            None => self.open.remove(worker),
        };
    }

    /// The worker of this registration, if none of its tokens may be admitted.
    pub(super) fn refuses(&self, (worker, generation): Bearer) -> Option<WorkerId> {
        (self.open.get(&worker) != Some(&generation)).then_some(worker)
    }
}
