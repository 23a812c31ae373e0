//! A server's rings: a file and a registered region for each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_control::{RingNeed, RingOffer};
use sluice_host::rdma::RegionId;
use sluice_wire::tables::RingRow;
use sluice_wire::{Rkey, SliceId};

use crate::NetError;
use crate::rdma::{Receiver, SharedMemory};

/// The address of the first ring for writers; each further ring starts this much higher, so that a wrong
/// address hits no ring.
const ADDRESS_STEP: u64 = 1 << 40;

/// The path of a slice's ring file in the folder of a server's memory.
pub fn ring_file(memory: &Path, slice: SliceId) -> PathBuf {
    memory.join(format!("ring-{slice}"))
}

/// The rings, and where they are.
#[derive(Debug)]
pub(super) struct Rings {
    memory: PathBuf,
    slots: Option<u32>,
    kept: Vec<(RingOffer, RegionId)>,
}

impl Rings {
    /// No rings yet. Creates the folder if it does not exist.
    pub(super) fn new(memory: PathBuf, slots: Option<u32>) -> Result<Self, NetError> {
        std::fs::create_dir_all(&memory).map_err(|why| NetError::Memory {
            path: memory.clone(),
            doing: "make the folder",
            why,
        })?;
        Ok(Self { memory, slots, kept: Vec::new() })
    }

    /// The rings' descriptions for the controller.
    pub(super) fn offers(&self) -> Vec<RingOffer> {
        self.kept.iter().map(|(offer, _)| *offer).collect()
    }

    /// The memory of all rings, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.kept.iter().map(|(RingOffer { row, .. }, _)| bytes_of(row)).sum()
    }

    /// Creates and registers the rings that are needed and missing. Returns whether there were any.
    pub(super) fn fit(&mut self, needs: &[RingNeed], receiver: &mut Receiver) -> Result<bool, NetError> {
        let mut changed = false;
        for need in needs {
            let slots = self.slots.unwrap_or(need.slots);
            let is_fit = |row: &RingRow| row.slots >= slots && row.slot_bytes >= need.slot_bytes;
            let known = self.kept.iter().position(|(offer, _)| offer.slice == need.slice);
            match known {
                Some(at) if is_fit(&self.kept[at].0.row) => continue,
                Some(at) => receiver.deregister(self.kept.swap_remove(at).1),
                None => {}
            }
            let kept = self.register(need, slots, receiver)?;
            self.kept.push(kept);
            changed = true;
        }
        Ok(changed)
    }

    fn register(
        &self,
        need: &RingNeed,
        slots: u32,
        receiver: &mut Receiver,
    ) -> Result<(RingOffer, RegionId), NetError> {
        let rkey = Rkey(crate::identity::random_bits()? as u32);
        let address = (1 + u64::from(need.slice.0)) * ADDRESS_STEP;
        let row = RingRow { rkey, address, slots, slot_bytes: need.slot_bytes };
        let memory = self.memory_of(need.slice, bytes_of(&row) as usize)?;
        let region = receiver.register(rkey, address, Arc::new(memory))?;
        Ok((RingOffer { slice: need.slice, row }, region))
    }

    /// Opens the file that an earlier life left if it has the right length, since workers may still have it
    /// mapped; otherwise creates one.
    fn memory_of(&self, slice: SliceId, bytes: usize) -> Result<SharedMemory, NetError> {
        let file = ring_file(&self.memory, slice);
        match SharedMemory::open(&file) {
            Ok(memory) if memory.bytes() == bytes => Ok(memory),
            _ => SharedMemory::create(&file, bytes),
        }
    }
}

fn bytes_of(row: &RingRow) -> u64 {
    u64::from(row.slots) * u64::from(row.slot_bytes)
}
