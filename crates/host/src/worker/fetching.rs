//! Bytes that a DISPATCH did not bring: asked for at the client, part by part (the protocol's NEED and PART).
//!
//! The task keeps its place meanwhile, for a bounded time; others that are whole run before it. What came in parts runs
//! only after its bytes were checked against the descriptor that the client made.

use alloc::vec::Vec;

use sluice_wire::{BytesOf, Dispatch, Endpoint, Nanos, Need, Part, Place, TaskId, WorkerId};

use super::types::{Action, WorkerSettings};
use super::work::{Held, Work};
use super::{Worker, release};
use crate::parts::{Parts, TooLong};

impl Worker {
    /// Whether a task's bytes, after [`Action::Check`], are those that its client described.
    pub fn checked(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        task: TaskId,
        is_right: bool,
        out: &mut Vec<Action>,
    ) {
        let (first_wait, worker) = (self.probing.round_trip(settings), self.at.worker);
        let Some(work) = &mut self.work else { return };
        let Some(held) = work.fetching(task) else { return };
        if is_right {
            held.fetch = None;
            work.run_next(out);
        } else if let Some(parts) = &mut held.fetch {
            parts.restart();
            ask(now, settings, first_wait, worker, held, out);
        }
    }

    /// A part of a task that is held and not whole.
    pub(super) fn part(&mut self, part: &Part, out: &mut Vec<Action>) {
        let held = self.work.as_mut().and_then(|work| work.fetching(part.task));
        if let Some(held) = held.filter(|_| part.of == BytesOf::Task)
            && let Some(parts) = &mut held.fetch
            && parts.take(part.offset, part.payload.len.into())
        {
            out.push(Action::Place { at: held.payload.handle, offset: part.offset, part: part.payload });
            if parts.is_whole() {
                out.push(Action::Check { task: part.task, payload: held.payload });
            }
        }
        release(part.payload.handle, out);
    }

    /// Asks for what is missing of a task that has just come.
    pub(super) fn fetch(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        task: TaskId,
        out: &mut Vec<Action>,
    ) {
        let (first_wait, worker) = (self.probing.round_trip(settings), self.at.worker);
        if let Some(held) = self.work.as_mut().and_then(|work| work.fetching(task)) {
            ask(now, settings, first_wait, worker, held, out);
        }
    }

    /// Asks again for what has been missing for long, and gives up what was asked for often.
    pub(super) fn fetch_due(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        let (first_wait, worker) = (self.probing.round_trip(settings), self.at.worker);
        let Some(work) = &mut self.work else { return };
        let gave_up = |held: &Held| {
            held.fetch.is_some_and(|parts| parts.due <= now && parts.tries >= settings.need_tries)
        };
        for held in work.held.iter().filter(|held| gave_up(held)) {
            work.counts.fetches_failed += 1;
            release(held.payload.handle, out);
        }
        work.held.retain(|held| !gave_up(held));
        for held in &mut work.held {
            if held.fetch.is_some_and(|parts| parts.due <= now) {
                ask(now, settings, first_wait, worker, held, out);
            }
        }
    }
}

impl Work {
    fn fetching(&mut self, task: TaskId) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.task == task && held.fetch.is_some())
    }

    /// When something is to be asked for again.
    pub(super) fn fetch_deadline(&self) -> Option<Nanos> {
        self.held.iter().filter_map(|held| held.fetch.map(|parts| parts.due)).min()
    }
}

/// What is missing of a task's bytes, if anything is. A driver that keeps no bytes of large tasks fetches none.
pub(super) fn missing(dispatch: &Dispatch) -> Result<Option<Parts>, TooLong> {
    let payload = &dispatch.payload;
    let is_whole = dispatch.place == Place::Here && !payload.has_more();
    if is_whole || payload.handle == sluice_wire::Handle::NONE {
        return Ok(None);
    }
    let have = if dispatch.place == Place::Here { payload.len.into() } else { 0 };
    Parts::new(payload.total(), have).map(Some)
}

/// One NEED for each run of missing bytes.
fn ask(
    now: Nanos,
    settings: &WorkerSettings,
    first_wait: Nanos,
    worker: WorkerId,
    held: &mut Held,
    out: &mut Vec<Action>,
) {
    let Some(parts) = &mut held.fetch else { return };
    let wait = first_wait.times(1 << (parts.tries + 1).min(16)).min(settings.probe_max_busy);
    parts.due = now + wait.max(Nanos(1));
    parts.tries = parts.tries.saturating_add(1);
    for (offset, length) in parts.runs().take(NEEDS_MAX) {
        let asker_at = Endpoint::default();
        let (client, attempt) = (held.asker.client, held.asker.attempt);
        let (of, task) = (BytesOf::Task, held.task);
        let packet = Need { of, worker, asker_at, client, task, attempt, offset, length };
        out.push(Action::Need { to: held.asker.at, packet });
    }
}

/// NEEDs that leave at once for one task, however torn it is.
const NEEDS_MAX: usize = 8;
