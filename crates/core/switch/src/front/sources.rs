//! Match tables: the data plane reads them and the controller writes them.

use alloc::boxed::Box;
use alloc::vec;

use sluice_wire::serving::Labels;
use sluice_wire::tables::{ClientRow, SliceRow, WorkerRow};
use sluice_wire::{ClientId, Endpoint, Key, SliceId, Submit, WorkerId};

use crate::config::Config;
use crate::pipeline::Layout;
use crate::refusal::Refusal;

/// The registered hosts, and which slice takes which type.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) workers: Box<[Option<WorkerRow>]>,
    pub(crate) clients: Box<[Option<ClientRow>]>,
    /// How many clients have a row.
    pub(crate) registered: u32,
    pub(crate) slices: Box<[SliceRow]>,
    pub(crate) types: Box<[Option<SliceId>]>,
    /// The labels that tasks of each type need, where workers are of several kinds.
    pub(crate) needs: Box<[Labels]>,
    /// The spine that each pool's tasks come from; `None` if clients submit to this switch themselves. A
    /// leaf's table of links holds the same and accounts for the room on the chip.
    pub(crate) above: Box<[Option<Endpoint>]>,
}

impl Tables {
    pub(super) fn new(layout: &mut Layout, config: &Config) -> Self {
        let (workers, clients) = (config.workers as usize, config.clients as usize);
        // The bits of a row: key, address and port, index; then slice, generation, open.
        layout.table("sources: workers", 0, 32 + 144 + 16 + 16 + 32 + 1, workers);
        layout.table("sources: clients", 0, 32 + 144 + 16, clients);
        layout.table("types", 0, 16 + 16, config.types as usize);
        layout.table("slices", 0, 1 + 32 + 32, config.slices as usize);
        Self {
            workers: vec![None; workers].into_boxed_slice(),
            clients: vec![None; clients].into_boxed_slice(),
            registered: 0,
            slices: vec![SliceRow::default(); config.slices as usize].into_boxed_slice(),
            types: vec![None; config.types as usize].into_boxed_slice(),
            needs: vec![Labels::NONE; config.types as usize].into_boxed_slice(),
            above: vec![None; config.slices as usize].into_boxed_slice(),
        }
    }

    #[inline]
    pub(crate) fn slice_of(&self, submit: &Submit) -> Option<(SliceId, &SliceRow)> {
        let slice = (*self.types.get(submit.task_type.0 as usize)?)?;
        Some((slice, &self.slices[slice.0 as usize]))
    }

    /// The labels that a task needs: those of its type and its own.
    pub(crate) fn needs_of(&self, submit: &Submit) -> Labels {
        let of_type = self.needs.get(submit.task_type.0 as usize).copied().unwrap_or_default();
        of_type.and(Labels(submit.constraints))
    }

    #[inline]
    pub(super) fn admit_worker(
        &self,
        from: Endpoint,
        worker: WorkerId,
        key: Key,
    ) -> Result<&WorkerRow, Refusal> {
        let row = self.worker(worker).ok_or(Refusal::UnknownSource)?;
        check_source(row.key, key, row.at, from)?;
        Ok(row)
    }

    #[inline]
    pub(super) fn admit_client(&self, from: Endpoint, client: ClientId, key: Key) -> Result<(), Refusal> {
        let row = self.client(client).ok_or(Refusal::UnknownSource)?;
        check_source(row.key, key, row.at, from)
    }

    #[inline]
    pub(crate) fn client(&self, client: ClientId) -> Option<&ClientRow> {
        self.clients.get(client.0 as usize).and_then(Option::as_ref)
    }

    /// The spine that a pool's tasks come from.
    pub(super) fn above(&self, pool: SliceId) -> Option<&Endpoint> {
        self.above.get(usize::from(pool.0))?.as_ref()
    }

    /// The address for packets to a client: its own, or the spine's if the client is not registered here.
    #[inline]
    pub(super) fn towards<'a>(
        &'a self,
        client: ClientId,
        spine: impl FnOnce() -> Option<&'a Endpoint>,
    ) -> Option<&'a Endpoint> {
        self.client(client).map(|row| &row.at).or_else(spine)
    }

    #[inline]
    pub(crate) fn worker(&self, worker: WorkerId) -> Option<&WorkerRow> {
        self.workers.get(worker.0 as usize).and_then(Option::as_ref)
    }
}

#[inline]
fn check_source(held: Key, shown: Key, at: Endpoint, from: Endpoint) -> Result<(), Refusal> {
    if held != shown {
        Err(Refusal::WrongKey)
    } else if at != from {
        Err(Refusal::WrongAddress)
    } else {
        Ok(())
    }
}
