//! Large tasks: the memory that servers register, the WRITEs of the switch, and the bytes that workers copy
//! and ask for.
//!
//! No bytes are stored. A piece of a task has a number as its content, which follows from the task, and a
//! piece is right if its number is the one of its task.

use std::mem;

use sluice_events::Address;
use sluice_host::PART_BYTES;
use sluice_switch::{Cargo, Circulating};
use sluice_wire::{Dispatch, Handle, Nanos, Need, Packet, Part, Payload, Place, SliceId};

use crate::limits::PASS;
use crate::network::LONGEST_WAY;
use crate::pieces::{content, pieces, put};
use crate::rack::Rack;

/// With so many slots for each class no slot is written again while its task waits.
const AMPLE_SLOTS: u32 = 64;
/// The WRITE of a task that waited for longer than this, by the switch's clock, has arrived before the
/// task's DISPATCH. Of two passes the first may have read the clock early, so that a task that came and left
/// at once seems to have waited.
const OVERTAKEN_MAX_NS: u32 = (LONGEST_WAY.0 + PASS.0) as u32;

impl Rack<'_> {
    /// Keeps the content of a recirculating task, in a switch that keeps no bytes.
    pub(crate) fn keep_bytes(&mut self, round: &mut Circulating, context: Handle) {
        if let Cargo::Task(submit) = &mut round.cargo
            && submit.payload.is_large()
        {
            submit.payload = self.switch.slab.keep(Payload { handle: context, ..submit.payload });
        }
    }

    /// A packet has recirculated: takes its content out again.
    pub(crate) fn take_back(&mut self, round: &mut Circulating) -> Result<Handle, String> {
        match &mut round.cargo {
            Cargo::Task(submit) if submit.payload.is_large() => {
                let handle = mem::replace(&mut submit.payload.handle, Handle::NONE);
                Ok(self.switch.slab.give_back(handle)?.handle)
            }
            _ => Ok(Handle::NONE),
        }
    }

    /// The worker's driver copies a task's bytes, and tells the machine what it found; returns the pieces.
    pub(crate) fn copy(
        &mut self,
        worker: usize,
        received: Nanos,
        dispatch: &mut Dispatch,
    ) -> Result<Vec<Handle>, String> {
        let payload = dispatch.payload;
        if !payload.is_large() {
            return Ok(Vec::new());
        }
        let found = match dispatch.place {
            Place::Here => Some(payload.handle),
            Place::AtClient => None,
            Place::Ahead { slice, ticket } => self.look(worker, received, dispatch, slice, ticket)?,
        };
        let described = content(payload.inline);
        let found = found.filter(|found| payload.has_more() || *found == described);
        dispatch.place = if found.is_some() { Place::Here } else { Place::AtClient };
        Ok(pieces(&payload, found.unwrap_or(Handle::NONE), payload.len))
    }

    /// The content of the task's slot, if the slot holds the task.
    fn look(
        &self,
        worker: usize,
        received: Nanos,
        dispatch: &Dispatch,
        slice: SliceId,
        ticket: u32,
    ) -> Result<Option<Handle>, String> {
        let node = &self.workers[worker];
        let maps = node.ring.is_some() && node.grant.is_some_and(|grant| grant.slice == slice);
        let slot = self.servers.slot(worker, slice, ticket).filter(|_| maps);
        let found = slot.filter(|(task, _)| *task == dispatch.task).map(|(_, content)| content);
        let is_quiet = self.world.now >= self.scenario.settled
            && received == self.world.now
            && dispatch.wait_ns > OVERTAKEN_MAX_NS;
        let ample_slots = AMPLE_SLOTS * u32::from(self.scenario.program.traits().classes);
        let is_ample = self.scenario.copies == 0 && self.scenario.ring_slots >= ample_slots;
        let is_written = is_ample && maps && self.servers.takes(worker);
        if found.is_none() && is_quiet && is_written {
            return Err(format!(
                "task {} was not where its DISPATCH says, and nothing failed",
                dispatch.task
            ));
        }
        Ok(found)
    }

    /// Puts the pieces of a part in their places.
    pub(crate) fn place(
        &mut self,
        worker: usize,
        at: Handle,
        offset: u32,
        part: &Payload,
    ) -> Result<(), String> {
        let node = &mut self.workers[worker];
        let content = node.tasks.find(part.handle)?.handle;
        let pieces = node.pieces.get_mut(&at).ok_or("promise 5: a part of a task that is not there")?;
        put(pieces, offset, &Payload { handle: content, ..*part })
    }

    /// The host at `from` sends those bytes of `asked` that the other host lacks.
    pub(crate) fn send_parts(&mut self, from: Address, need: &Need, asked: &Payload) {
        let end = asked.total().min(need.offset.saturating_add(need.length));
        let mut offset = need.offset;
        while offset < end {
            let len = (end - offset).min(2 * PART_BYTES) as u16;
            let payload = Payload { len, inline: asked.inline, handle: content(asked.inline) };
            let Need { of, worker, client, task, attempt, .. } = *need;
            let part = Part { of, worker, client, task, attempt, offset, payload };
            self.send(from, Address::of(&need.asker_at), Packet::Part(part));
            offset += u32::from(len);
        }
    }
}
