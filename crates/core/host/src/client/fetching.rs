//! Replies longer than one packet: the first packet does not end the task. The client asks the worker for
//! the rest (NEED), which arrives part by part (PART).
//!
//! During the fetch the task stays outstanding and is not retried: it has run, and its reply is ready. The
//! client repeats a NEED after a pause that doubles, and sends the next one at once when the last byte
//! asked for has arrived. The number of NEEDs in a row without an answer is bounded. After that many, the
//! task may be retried, as after a timeout; a living worker answers the retry with the same reply. A task
//! that may not be retried ends as Unknown. The memory for unfinished replies is bounded too: a reply
//! beyond the bound waits until there is room.

use alloc::vec::Vec;

use sluice_wire::{BytesOf, Endpoint, Handle, Nanos, Need, Part, Reply, TaskId};

use super::fetches::LongReply;
use super::{Action, Client, ClientSettings, Outcome, UnknownWhy};
use crate::parts::Parts;

/// NEEDs sent at once for one reply, at most, however many gaps it has.
const NEEDS_MAX: usize = 8;

impl Client {
    /// The driver has checked a reply's bytes after [`Action::Check`]: `is_right` says whether they match
    /// the worker's descriptor.
    pub fn checked(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        task: TaskId,
        is_right: bool,
        out: &mut Vec<Action>,
    ) {
        let Some(id) = self.slots.find(task.sequence) else { return };
        let Some(fetch) = self.fetches.find(id) else { return };
        if is_right {
            let mut reply = fetch.reply;
            reply.payload.handle = fetch.at();
            self.end(id, Outcome::Reply(reply), out);
        } else if self.give_up(now, id, out) {
            // The retry waits for a timeout: otherwise a worker that sends wrong bytes would be asked again
            // at once, for ever.
            self.set_timeout(now, settings, id);
        }
    }

    /// Starts to fetch a reply, of which the first packet has come. If two workers reply to one task, the
    /// client fetches the first worker's reply, unless that worker no longer answers.
    pub(super) fn begin_fetch(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        id: u32,
        reply: &Reply,
        out: &mut Vec<Action>,
    ) {
        let payload = reply.payload;
        let Ok(mut parts) = Parts::new(payload.total(), payload.len.into()) else {
            self.stats.foreign += 1;
            return;
        };
        if let Some(held) = self.fetches.find(id) {
            let (at, inline) = (held.reply.worker_at, held.reply.payload.inline);
            let is_same = (at, inline) == (reply.worker_at, payload.inline);
            if is_same || held.parts.tries < 2 {
                self.stats.late += 1;
                return;
            }
            self.fetches.drop(id, out);
        }
        let has_room = self.fetches.has_room(settings, payload.total());
        if has_room {
            out.push(Action::Begin { at: Handle(id), payload, have: payload.len });
        } else {
            parts.restart();
        }
        let fetch = LongReply { id, reply: *reply, parts, asked_to: 0, has_room };
        self.fetches.bytes += fetch.bytes();
        self.fetches.list.push(fetch);
        self.stats.long_replies += 1;
        self.stop_trying(id);
        self.ask(now, settings, id, out);
    }

    /// Takes bytes of a reply that the client asked for.
    pub(super) fn on_part(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        part: &Part,
        out: &mut Vec<Action>,
    ) {
        if part.task.incarnation != self.incarnation {
            self.stats.foreign += 1;
            return;
        }
        let id = self.slots.find(part.task.sequence);
        let Some((id, fetch)) = id.and_then(|id| self.fetches.find(id).map(|fetch| (id, fetch))) else {
            self.stats.late += 1;
            return;
        };
        self.silent = 0;
        let (payload, whole) = (part.payload, fetch.reply.payload);
        let is_of_it = part.worker == fetch.reply.worker
            && fetch.has_room
            && (!payload.is_large() || payload.inline == whole.inline);
        if !is_of_it || !fetch.parts.take(part.offset, payload.len.into()) {
            self.stats.late += 1;
            return;
        }
        fetch.parts.tries = 0;
        out.push(Action::Place { at: fetch.at(), offset: part.offset });
        if fetch.parts.is_whole() {
            out.push(Action::Check { task: part.task, at: fetch.at(), payload: whole });
        } else if part.offset + u32::from(payload.len) == fetch.asked_to {
            self.ask(now, settings, id, out);
        }
    }

    /// The bytes asked for have not arrived in time: asks again, or gives up.
    pub(super) fn fetch_due(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        id: u32,
        out: &mut Vec<Action>,
    ) {
        let Some(fetch) = self.fetches.find(id) else { return };
        if fetch.parts.tries < settings.need_tries {
            self.ask(now, settings, id, out);
        } else if self.give_up(now, id, out) {
            self.fire(now, settings, id, out);
        }
    }

    /// Sends one NEED for each run of missing bytes, if there is room for the reply.
    fn ask(&mut self, now: Nanos, settings: &ClientSettings, id: u32, out: &mut Vec<Action>) {
        self.make_room(settings, id, out);
        let Some(fetch) = self.fetches.find(id) else { return };
        let tries = fetch.parts.tries;
        if fetch.has_room {
            fetch.parts.tries = tries.saturating_add(1);
            let Reply { worker, worker_at, client, task, attempt, .. } = fetch.reply;
            for (offset, length) in fetch.parts.runs().take(NEEDS_MAX) {
                let (of, asker_at) = (BytesOf::Reply, Endpoint::default());
                let packet = Need { of, worker, asker_at, client, task, attempt, offset, length };
                out.push(Action::Need { to: worker_at, packet });
                fetch.asked_to = offset + length;
            }
        }
        let again = now + settings.need_wait(tries);
        let deadline = self.slots.get(id).deadline;
        self.timers.set(id, again.min(deadline));
    }

    /// Makes room for a reply that waits for memory, if there is enough now.
    fn make_room(&mut self, settings: &ClientSettings, id: u32, out: &mut Vec<Action>) {
        let Some(fetch) = self.fetches.find(id).filter(|fetch| !fetch.has_room) else { return };
        let payload = fetch.reply.payload;
        if !self.fetches.has_room(settings, payload.total()) {
            return;
        }
        self.fetches.bytes += payload.total() as usize;
        out.push(Action::Begin { at: Handle(id), payload, have: 0 });
        if let Some(fetch) = self.fetches.find(id) {
            fetch.has_room = true;
        }
    }

    /// Stops retries while the reply is fetched, and notes that the task has run, so that it is never
    /// refused.
    fn stop_trying(&mut self, id: u32) {
        let slot = self.slots.get(id);
        slot.fetching = true;
        slot.unanswered = true;
        if core::mem::take(&mut slot.kept_back) {
            self.shares.forget(slot.share, slot.sequence);
        }
    }

    /// Ends the fetch: the missing bytes cannot be had. Returns whether the task may be retried, as after a
    /// lost reply; if not, the task ends here.
    fn give_up(&mut self, now: Nanos, id: u32, out: &mut Vec<Action>) -> bool {
        self.stats.long_replies_lost += 1;
        self.fetches.drop(id, out);
        let slot = self.slots.get(id);
        slot.fetching = false;
        let goes_on = slot.may_retry(now);
        if !goes_on {
            self.end(id, Outcome::Unknown(UnknownWhy::ReplyGone), out);
        }
        goes_on
    }
}
