//! The replies over one packet that are not whole, and the room that their bytes take.

use alloc::vec::Vec;

use sluice_wire::{Handle, Reply, ReplyStatus};

use super::types::{Action, ClientSettings};
use crate::parts::Parts;

/// The replies that are not whole.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    pub(super) list: Vec<LongReply>,
    /// What was made room for.
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct LongReply {
    pub(super) id: u32,
    /// Its first packet.
    pub(super) reply: Reply,
    pub(super) parts: Parts,
    /// Where what was asked for last ends.
    pub(super) asked_to: u32,
    /// Whether there is room for its bytes.
    pub(super) has_room: bool,
}

impl LongReply {
    pub(super) const fn bytes(&self) -> usize {
        if self.has_room { self.reply.payload.total() as usize } else { 0 }
    }

    /// What the driver knows its bytes by.
    pub(super) const fn at(&self) -> Handle {
        Handle(self.id)
    }
}

impl Fetches {
    pub(super) fn find(&mut self, id: u32) -> Option<&mut LongReply> {
        self.list.iter_mut().find(|fetch| fetch.id == id)
    }

    /// Whether a reply says that something else than what is fetched is gone.
    pub(super) fn is_of_another(&mut self, id: u32, reply: &Reply) -> bool {
        let ends = matches!(reply.status, ReplyStatus::Gone | ReplyStatus::Old);
        ends && self.find(id).is_some_and(|fetch| fetch.reply.worker != reply.worker)
    }

    pub(super) fn has_room(&self, settings: &ClientSettings, total: u32) -> bool {
        self.bytes + total as usize <= settings.reply_bytes_max
    }

    /// Lets a reply's bytes go.
    pub(super) fn drop(&mut self, id: u32, out: &mut Vec<Action>) {
        let Some(index) = self.list.iter().position(|fetch| fetch.id == id) else { return };
        let fetch = self.list.swap_remove(index);
        self.bytes -= fetch.bytes();
        if fetch.has_room {
            out.push(Action::Forget(fetch.at()));
        }
    }
}
