//! The rings of a worker's server: mapped into the worker's memory, and copied from when a DISPATCH names a
//! slot (Rain §3.2.2).
//!
//! The worker copies first and checks the copy: bytes that were checked in the ring could be overwritten
//! before they are copied.

use std::path::PathBuf;

use sluice_control::RingPlace;
use sluice_wire::{Dispatch, Nanos, Place, SLOT_HEAD_BYTES, SliceId, check_large, read_slot};

use crate::rdma::SharedMemory;
use crate::server::{PairLine, ring_file};

/// How long after a grant the worker asks for a missing ring.
const ASK_AFTER: Nanos = Nanos::from_millis(50);

/// Memory that a server of this machine registered.
#[derive(Clone, Debug)]
pub struct ServerMemory {
    pub server: String,
    /// The folder of the server's memory.
    pub folder: PathBuf,
}

/// A worker's view of its server's memory.
#[derive(Debug, Default)]
pub(super) struct Slots {
    memory: Option<ServerMemory>,
    ring: Option<Ring>,
    line: Option<PairLine>,
    /// How often the server's queue pair had failed at this worker's last check.
    failures: Option<u32>,
    copy: Vec<u8>,
    /// Whether a task was written ahead to a ring that is not mapped here.
    lacks_ring: bool,
    granted_at: Nanos,
    /// Tasks copied from a ring.
    pub(super) copied: u64,
    /// Tasks whose bytes were not in their slot.
    pub(super) missed: u64,
}

/// A ring, with its layout at the time of mapping.
#[derive(Debug)]
struct Ring {
    slice: SliceId,
    place: RingPlace,
    memory: SharedMemory,
}

impl Slots {
    pub(super) fn new(memory: Option<ServerMemory>) -> Self {
        Self { memory, ..Self::default() }
    }

    /// Maps the ring that the controller names for the worker's slice.
    pub(super) fn granted(&mut self, now: Nanos, slice: SliceId, place: Option<RingPlace>) {
        self.granted_at = now;
        self.lacks_ring = false;
        let known = self.ring.as_ref().map(|ring| (ring.slice, ring.place));
        let Some((memory, place)) = self.memory.as_ref().zip(place) else {
            self.ring = None;
            return;
        };
        if self.line.is_none() {
            self.line = PairLine::of_worker(&memory.folder).ok();
        }
        if known == Some((slice, place)) {
            return;
        }
        let needed = place.slots as usize * place.slot_bytes as usize;
        self.ring = match SharedMemory::open(&ring_file(&memory.folder, slice)) {
            Ok(mapped) if mapped.bytes() >= needed && place.slots.is_power_of_two() => {
                Some(Ring { slice, place, memory: mapped })
            }
            Ok(mapped) => {
                let (bytes, server) = (mapped.bytes(), &memory.server);
                sluice_log::log!(
                    RingTooSmall,
                    server,
                    "the ring of server {server} has {bytes} bytes and should have {needed}"
                );
                None
            }
            Err(why) => {
                sluice_log::log!(RingUnusable, %why, "{why}; tasks are asked for from their clients");
                None
            }
        };
    }

    /// A copy of the bytes that were written ahead for a DISPATCH: those of its packet, if they are in the
    /// slot and belong to its task.
    pub(super) fn copy(&mut self, dispatch: &Dispatch) -> Option<&[u8]> {
        let Place::Ahead { slice, ticket } = dispatch.place else { return None };
        let found = self.find(dispatch, slice, ticket);
        if found {
            self.copied += 1;
        } else {
            self.missed += 1;
        }
        found.then(|| &self.copy[SLOT_HEAD_BYTES..])
    }

    /// Whether to ask the controller now for a ring that the switch knows and this worker does not, because
    /// its server registered after the last grant. Asks rarely, since the ring may be another server's.
    pub(super) fn wants_grant(&mut self, now: Nanos) -> bool {
        let is_due = self.memory.is_some() && now.since(self.granted_at) > ASK_AFTER;
        is_due && std::mem::take(&mut self.lacks_ring)
    }

    /// How often the server's queue pair has failed, if it failed since the last check.
    pub(super) fn new_failure(&mut self) -> Option<u32> {
        let (failures, _) = self.line.as_ref()?.state();
        let known = self.failures.replace(failures);
        known.filter(|known| *known != failures).map(|_| failures)
    }

    fn find(&mut self, dispatch: &Dispatch, slice: SliceId, ticket: u32) -> bool {
        let Some(ring) = self.ring.as_ref().filter(|ring| ring.slice == slice) else {
            self.lacks_ring = true;
            return false;
        };
        let RingPlace { slots, slot_bytes, .. } = ring.place;
        let length = SLOT_HEAD_BYTES + usize::from(dispatch.payload.len);
        if length > slot_bytes as usize {
            return false;
        }
        self.copy.resize(length, 0);
        ring.memory.read((ticket & (slots - 1)) as usize * slot_bytes as usize, &mut self.copy);
        let payload = &dispatch.payload;
        // For a task of several packets the checksum covers all bytes: the first ones are accepted
        // unchecked until the rest has come.
        let is_right = |bytes: &[u8]| payload.has_more() || check_large(payload.inline, bytes);
        read_slot(&self.copy).is_some_and(|(task, bytes)| task == dispatch.task && is_right(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sluice_wire::{Handle, Incarnation, Payload, Serial, TaskId, large_descriptor, slot_head};

    use super::*;

    const PLACE: RingPlace = RingPlace { life: 1, slots: 4, slot_bytes: 64 };
    const SLICE: SliceId = SliceId(3);
    const BYTES: &[u8] = b"more than eight bytes";

    fn dispatch(sequence: u32, ticket: u32) -> Dispatch {
        let task = TaskId { incarnation: Incarnation(9), sequence: Serial(sequence) };
        let inline = large_descriptor(BYTES);
        let payload = Payload { len: BYTES.len() as u16, inline, handle: Handle::NONE };
        Dispatch { task, payload, place: Place::Ahead { slice: SLICE, ticket }, ..Dispatch::default() }
    }

    fn rack(folder: &Path) -> (SharedMemory, Slots) {
        let written = SharedMemory::create(&ring_file(folder, SLICE), 4 * 64).expect("there is room");
        let memory = ServerMemory { server: "s".to_owned(), folder: folder.to_owned() };
        let mut slots = Slots::new(Some(memory));
        slots.granted(Nanos(0), SLICE, Some(PLACE));
        (written, slots)
    }

    fn write(memory: &SharedMemory, slot: usize, task: TaskId, bytes: &[u8]) {
        memory.write(slot * 64, &[&slot_head(task)[..], bytes].concat());
    }

    #[test]
    fn a_task_is_copied_from_the_slot_that_its_ticket_names() {
        let folder = tempfile::tempdir().expect("there is room");
        let (memory, mut slots) = rack(folder.path());
        let asked = dispatch(7, 6);
        write(&memory, 2, asked.task, BYTES);
        assert_eq!(slots.copy(&asked), Some(BYTES));
        assert_eq!((slots.copied, slots.missed), (1, 0));
    }

    #[test]
    fn what_is_not_the_task_or_not_its_bytes_is_not_given_out() {
        let folder = tempfile::tempdir().expect("there is room");
        let (memory, mut slots) = rack(folder.path());
        let asked = dispatch(7, 6);
        assert_eq!(slots.copy(&asked), None, "nothing was written yet");
        write(&memory, 2, dispatch(8, 6).task, BYTES);
        assert_eq!(slots.copy(&asked), None, "another task's");
        write(&memory, 2, asked.task, b"more than eight BYTES");
        assert_eq!(slots.copy(&asked), None, "half written");
        let elsewhere = Dispatch { place: Place::Ahead { slice: SliceId(0), ticket: 6 }, ..asked };
        assert_eq!(slots.copy(&elsewhere), None, "another slice's ring");
        assert_eq!(slots.missed, 4);
    }

    #[test]
    fn a_ring_that_is_shorter_than_the_controller_says_is_not_used() {
        let folder = tempfile::tempdir().expect("there is room");
        let (memory, mut slots) = rack(folder.path());
        let asked = dispatch(7, 2);
        write(&memory, 2, asked.task, BYTES);
        slots.granted(Nanos(0), SLICE, Some(RingPlace { slots: 8, ..PLACE }));
        assert_eq!(slots.copy(&asked), None);
        assert!(!slots.wants_grant(ASK_AFTER) && slots.wants_grant(ASK_AFTER + Nanos(1)));
        assert!(!slots.wants_grant(ASK_AFTER.times(2)), "not before the next task that is missed");
    }
}
