//! Long replies that are still being fetched, and the memory that their bytes take.

use alloc::vec::Vec;

use sluice_wire::{Handle, Reply, ReplyStatus};

use super::types::{Action, ClientSettings};
use crate::parts::Parts;

/// The replies of which some bytes are missing.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    pub(super) list: Vec<LongReply>,
    /// Bytes for which the driver has made room ([`Action::Begin`]).
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct LongReply {
    pub(super) id: u32,
    /// The reply's first packet.
    pub(super) reply: Reply,
    pub(super) parts: Parts,
    /// The offset at which the newest NEED ends. When the part before this offset arrives, the client asks
    /// again.
    pub(super) asked_to: u32,
    /// Whether the driver has made room for the reply's bytes.
    pub(super) has_room: bool,
}

impl LongReply {
    pub(super) const fn bytes(&self) -> usize {
        if self.has_room { self.reply.payload.total() as usize } else { 0 }
    }

    /// The handle by which the driver knows the reply's bytes.
    pub(super) const fn at(&self) -> Handle {
        Handle(self.id)
    }
}

impl Fetches {
    pub(super) fn find(&mut self, id: u32) -> Option<&mut LongReply> {
        self.list.iter_mut().find(|fetch| fetch.id == id)
    }

    /// Whether a GONE or OLD reply comes from another worker than the one whose reply is being fetched.
    pub(super) fn is_of_another(&mut self, id: u32, reply: &Reply) -> bool {
        let ends = matches!(reply.status, ReplyStatus::Gone | ReplyStatus::Old);
        ends && self.find(id).is_some_and(|fetch| fetch.reply.worker != reply.worker)
    }

    pub(super) fn has_room(&self, settings: &ClientSettings, total: u32) -> bool {
        self.bytes + total as usize <= settings.reply_bytes_max
    }

    /// Ends the fetch of a reply and releases its bytes.
    pub(super) fn drop(&mut self, id: u32, out: &mut Vec<Action>) {
        let Some(index) = self.list.iter().position(|fetch| fetch.id == id) else { return };
        let fetch = self.list.swap_remove(index);
        self.bytes -= fetch.bytes();
        if fetch.has_room {
            out.push(Action::Forget(fetch.at()));
        }
    }
}
