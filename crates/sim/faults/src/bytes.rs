//! The bytes that a driver keeps for its machine: each handle is given out once, and comes back once.

use std::collections::BTreeMap;

use sluice_wire::{Handle, Payload};

/// Payloads by the handles under which the machine knows them.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    kept: BTreeMap<Handle, Payload>,
    given: u32,
}

impl Bytes {
    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Keeps a payload, and gives it out under a new handle.
    pub(super) fn keep(&mut self, payload: Payload) -> Payload {
        self.given += 1;
        let handle = Handle(self.given);
        self.kept.insert(handle, payload);
        Payload { handle, ..payload }
    }

    /// What is kept under a handle.
    pub(super) fn find(&self, handle: Handle) -> Result<Payload, String> {
        self.kept
            .get(&handle)
            .copied()
            .ok_or_else(|| format!("promise 5: no bytes are kept under {handle:?}"))
    }

    /// Lets go of a handle, for good.
    pub(super) fn give_back(&mut self, handle: Handle) -> Result<Payload, String> {
        self.kept
            .remove(&handle)
            .ok_or_else(|| format!("promise 5: {handle:?} came back twice, or was never given out"))
    }
}
