//! Early tokens (ours, beyond the paper): a worker that can tell when its task will end sends its next token
//! before that, just so early that the next task arrives as this one ends. So one token does what two would
//! do for throughput, and no task sits behind a long one for longer than a token's round trip.
//!
//! Two things have to be known. *When the task ends*: the service says so ([`Outlook::Left`]), or it follows
//! from what tasks of the same type took before for each unit of their declared size ([`Outlook::Units`]).
//! Where they differ too much there is no estimate, and no early token. *How long before that the token has
//! to leave* is measured: the time from a token to its task, where a task was waiting already.
//!
//! From then on until the task ends, the worker may have N + 1 tokens instead of N. If the task ends later
//! than expected, the next one waits here meanwhile; if it ends sooner, the worker is idle as it would have
//! been without.

use alloc::vec::Vec;

use sluice_wire::{Dispatch, Nanos};

use super::types::{Action, Outlook, WorkerSettings};
use super::{Phase, Worker};

impl Worker {
    /// Learns what is known of how long the run `slot` will take from now on. A later word replaces an
    /// earlier one.
    pub fn expect(&mut self, now: Nanos, slot: u64, outlook: Outlook) {
        let Some(work) = &mut self.work else { return };
        if let Some(task_type) = work.running_type(slot) {
            work.early.expect(now, task_type, outlook);
        }
    }

    /// When [`Worker::early`] has to be called while a task runs, as far as is known now.
    pub fn early_at(&self, settings: &WorkerSettings) -> Option<Nanos> {
        let from = self.work.as_ref()?.early.begins(settings.early?, self.probing.rtt())?;
        let allows = self.phase == Phase::Serving && self.feeding.is_counted();
        (allows && self.has_room_for_token(settings, self.quota_now(settings) + 1)).then_some(from)
    }

    /// A PROBE's way is as long as a token's and its task's. While tokens park, nothing else tells how long.
    pub(super) fn ask_for_lead(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        if settings.early.is_some() && self.feeding.is_counted() && self.probing.rtt().is_none() {
            self.probe(now, settings, out);
        }
    }

    /// Sends the running task's early token, if it is time. Unlike [`Worker::tick`] it may be called before
    /// the packets that were received meanwhile are looked at.
    pub fn early(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        if self.early_at(settings).is_none_or(|from| now < from) {
            return;
        }
        // The running task will have ended when this one's comes.
        let rank = self.rank(self.held().saturating_sub(1));
        self.issue_token(now, settings, rank, out);
        if let Some(work) = &mut self.work {
            work.early.sent += 1;
        }
    }

    /// A token left, for the first time or not.
    pub(super) fn time_token(&mut self, now: Nanos, settings: &WorkerSettings, first: bool) {
        if settings.early.is_none() {
            return;
        }
        let issued = self.issued;
        if let Some(work) = &mut self.work {
            work.early.lead.token_left(now, issued, first);
        }
    }

    /// The task of one of this generation's tokens came.
    pub(super) fn time_task(&mut self, received: Nanos, settings: &WorkerSettings, dispatch: &Dispatch) {
        if settings.early.is_none() {
            return;
        }
        if let Some(work) = &mut self.work {
            work.early.lead.task_came(received, dispatch.sent, dispatch.wait_ns > 0);
        }
    }
}
