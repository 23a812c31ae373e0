//! Early tokens (ours, beyond the paper). A worker that can predict the end of its task sends its next
//! token before that end, so that the next task arrives just as this one ends. So one token gives the
//! throughput of two, and no task waits behind a long one for more than a token's round trip.
//!
//! Two times must be known. *The end of the task*: the service states it ([`RemainingTime::Left`]), or it
//! follows from the time that earlier tasks of the type took for each unit of their declared size
//! ([`RemainingTime::Units`]). If these times differ too much, there is no estimate and no early token. *The
//! lead*, how long before the end the token must leave, is measured: the time from a token to its task in
//! cases where a task was already waiting.
//!
//! From the lead until the task's end, the worker may have N + 1 tokens instead of N. If the task ends
//! later than expected, the next task waits at the worker; if it ends sooner, the worker is idle, as it
//! would have been without early tokens.

use alloc::vec::Vec;

use sluice_wire::{Dispatch, Nanos};

use super::types::{Action, RemainingTime, WorkerSettings};
use super::{Phase, Worker};

impl Worker {
    /// Takes what the service or its driver knows about the remaining time of the run `slot`. A later call
    /// replaces an earlier one.
    pub fn expect(&mut self, now: Nanos, slot: u64, outlook: RemainingTime) {
        let Some(work) = &mut self.work else { return };
        if let Some(task_type) = work.running_type(slot) {
            work.early.expect(now, task_type, outlook);
        }
    }

    /// When [`Worker::early`] has to be called for the running task, as far as is known now.
    pub fn early_at(&self, settings: &WorkerSettings) -> Option<Nanos> {
        let from = self.work.as_ref()?.early.begins(settings.early?, self.probing.rtt())?;
        let allows = self.phase == Phase::Serving && self.feeding.is_counted();
        (allows && self.has_room_for_token(settings, self.quota_now(settings) + 1)).then_some(from)
    }

    /// Sends a PROBE to measure a first lead: a PROBE and its answer take as long as a token and its task.
    /// While tokens are parked, no task can tell this time.
    pub(super) fn ask_for_lead(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        if settings.early.is_some() && self.feeding.is_counted() && self.probing.rtt().is_none() {
            self.probe(now, settings, out);
        }
    }

    /// Sends the running task's early token if it is due. Unlike [`Worker::tick`], this may be called
    /// before the packets received meanwhile are handled.
    pub fn early(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        if self.early_at(settings).is_none_or(|from| now < from) {
            return;
        }
        // The running task will have ended when this token's task comes, so it does not count for the rank.
        let rank = self.rank(self.held().saturating_sub(1));
        self.issue_token(now, settings, rank, out);
        if let Some(work) = &mut self.work {
            work.early.sent += 1;
        }
    }

    /// Notes that a token left; `first` is false for a repeated one.
    pub(super) fn time_token(&mut self, now: Nanos, settings: &WorkerSettings, first: bool) {
        if settings.early.is_none() {
            return;
        }
        let issued = self.issued;
        if let Some(work) = &mut self.work {
            work.early.lead.token_left(now, issued, first);
        }
    }

    /// Measures the lead from a task that one of this generation's tokens brought.
    pub(super) fn time_task(&mut self, received: Nanos, settings: &WorkerSettings, dispatch: &Dispatch) {
        if settings.early.is_none() {
            return;
        }
        if let Some(work) = &mut self.work {
            work.early.lead.task_came(received, dispatch.sent, dispatch.wait_ns > 0);
        }
    }
}
