//! The payloads of a simulated worker or client. The state machine knows only handles, and the code that
//! drives it keeps the bytes. Each handle is given out once and given back once.

use std::collections::BTreeMap;

use sluice_wire::{Handle, Payload};

/// Payloads by the handles that the machine knows.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    kept: BTreeMap<Handle, Payload>,
    given: u32,
}

impl Bytes {
    /// How many payloads are kept.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Keeps a payload under a new handle; returns it with that handle.
    pub(super) fn keep(&mut self, payload: Payload) -> Payload {
        self.given += 1;
        let handle = Handle(self.given);
        self.kept.insert(handle, payload);
        Payload { handle, ..payload }
    }

    /// The payload that is kept under a handle.
    pub(super) fn find(&self, handle: Handle) -> Result<Payload, String> {
        self.kept
            .get(&handle)
            .copied()
            .ok_or_else(|| format!("promise 5: no bytes are kept under {handle:?}"))
    }

    /// Gives a handle back, for good.
    pub(super) fn give_back(&mut self, handle: Handle) -> Result<Payload, String> {
        self.kept
            .remove(&handle)
            .ok_or_else(|| format!("promise 5: {handle:?} came back twice, or was never given out"))
    }
}
