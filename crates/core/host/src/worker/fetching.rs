//! Task bytes that a DISPATCH did not bring: the worker asks the client for them, part by part (the
//! protocol's NEED and PART).
//!
//! Meanwhile the task keeps its place, for a bounded time; complete tasks behind it run first. A task whose
//! bytes came in parts runs only after the driver has checked them against the client's descriptor.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sluice_wire::{BytesOf, Dispatch, Endpoint, Handle, Nanos, Need, Part, Place, TaskId};

use super::types::{Action, WorkerSettings};
use super::work::{Asker, Fetch, Held, Work};
use super::{Worker, release};
use crate::parts::{Parts, TooLong};

impl Worker {
    /// The driver has checked a task's bytes after [`Action::Check`]: the argument says whether they match
    /// the client's descriptor.
    pub fn checked(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        task: TaskId,
        is_right: bool,
        out: &mut Vec<Action>,
    ) {
        let Some(work) = &mut self.work else { return };
        let Some((index, held)) = work.fetching(task) else { return };
        if is_right {
            held.is_whole = true;
            work.fetches.remove(index);
            self.run_next(now, settings, out);
        } else {
            work.fetches[index].parts.restart();
            self.ask(now, settings, index, out);
        }
    }

    /// Takes a part of a held task. A PART without bytes says that the task has ended elsewhere: then its
    /// place becomes free.
    pub(super) fn part(&mut self, now: Nanos, settings: &WorkerSettings, part: &Part, out: &mut Vec<Action>) {
        if part.of == BytesOf::Task
            && let Some(work) = &mut self.work
        {
            if part.payload.len > 0 {
                work.place(part, out);
            } else {
                work.ended_elsewhere(part, out);
                self.send_tokens(now, settings, out);
            }
        }
        release(part.payload.handle, out);
    }

    /// A client asks for missing bytes of a reply.
    pub(super) fn need(&mut self, need: &Need, out: &mut Vec<Action>) {
        let sender = self.sender();
        if need.of == BytesOf::Reply
            && let Some(work) = &mut self.work
        {
            work.need(need, sender, out);
        }
    }

    /// Asks for the missing bytes of the newest task. If the switch no longer knows the task's client,
    /// there is no one to ask, and the task gives up its place.
    pub(super) fn fetch_newest(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        let Some(work) = &mut self.work else { return };
        let newest = work.held.back().filter(|newest| !newest.is_whole);
        let (Some(newest), Some(last)) = (newest, work.fetches.len().checked_sub(1)) else { return };
        if newest.asker.at.port == 0 {
            return work.give_up_newest(out);
        }
        self.ask(now, settings, last, out);
    }

    /// Repeats requests that were not answered in time, and gives up tasks whose bytes were asked for too
    /// often.
    pub(super) fn fetch_due(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        let is_due = |work: &Work| work.fetch_deadline().is_some_and(|due| due <= now);
        let Some(work) = self.work.as_mut().filter(|work| is_due(work)) else { return };
        work.give_up(now, settings, out);
        for index in 0..work.fetches.len() {
            if self.work.as_ref().is_some_and(|work| work.fetches[index].parts.due <= now) {
                self.ask(now, settings, index, out);
            }
        }
    }

    /// Sends one NEED for each run of missing bytes.
    fn ask(&mut self, now: Nanos, settings: &WorkerSettings, index: usize, out: &mut Vec<Action>) {
        let (first_wait, worker) = (self.probing.round_trip(settings), self.at.worker);
        let Some(work) = &mut self.work else { return };
        let Fetch { task, parts } = &mut work.fetches[index];
        let Some(held) = work.held.iter().find(|held| held.task == *task) else { return };
        let wait = first_wait.times(1 << (parts.tries + 1).min(16)).min(settings.probe_max_busy);
        parts.due = now + wait.max(Nanos(1));
        parts.tries = parts.tries.saturating_add(1);
        let Asker { client, at, attempt } = held.asker;
        for (offset, length) in parts.runs().take(NEEDS_MAX) {
            let asker_at = Endpoint::default();
            let (of, task) = (BytesOf::Task, *task);
            let packet = Need { of, worker, asker_at, client, task, attempt, offset, length };
            out.push(Action::Need { to: at, packet });
        }
    }
}

impl Work {
    /// The index in `fetches` of this task's missing bytes, and the task; `None` if nothing is missing.
    fn fetching(&mut self, task: TaskId) -> Option<(usize, &mut Held)> {
        let index = self.fetches.iter().position(|fetch| fetch.task == task)?;
        self.held.iter_mut().find(|held| held.task == task).map(|held| (index, held))
    }

    fn place(&mut self, part: &Part, out: &mut Vec<Action>) {
        let Some((index, held)) = self.fetching(part.task) else { return };
        let payload = held.payload;
        let parts = &mut self.fetches[index].parts;
        if parts.take(part.offset, part.payload.len.into()) {
            out.push(Action::Place { at: payload.handle, offset: part.offset, part: part.payload });
            if parts.is_whole() {
                out.push(Action::Check { task: part.task, payload });
            }
        }
    }

    /// The client says that a task whose bytes are missing here has ended.
    fn ended_elsewhere(&mut self, part: &Part, out: &mut Vec<Action>) {
        let Some((index, held)) = self.fetching(part.task) else { return };
        if held.asker.attempt == part.attempt {
            self.fetches.remove(index);
            let_go(&mut self.held, part.task, out);
        }
    }

    /// Gives up the places of tasks whose bytes were asked for too often.
    fn give_up(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        let Self { held, fetches, counts, .. } = self;
        fetches.retain(|Fetch { task, parts }| {
            let gives_up = parts.due <= now && parts.tries >= settings.need_tries;
            if gives_up && let_go(held, *task, out) {
                counts.fetches_failed += 1;
            }
            !gives_up
        });
    }

    #[cold]
    fn give_up_newest(&mut self, out: &mut Vec<Action>) {
        if let Some(Fetch { task, .. }) = self.fetches.pop()
            && let_go(&mut self.held, task, out)
        {
            self.counts.fetches_failed += 1;
        }
    }

    /// When the next request must be repeated.
    pub(super) fn fetch_deadline(&self) -> Option<Nanos> {
        self.fetches.iter().map(|fetch| fetch.parts.due).min()
    }
}

/// Removes a task from its place. Returns whether it had one.
fn let_go(held: &mut VecDeque<Held>, task: TaskId, out: &mut Vec<Action>) -> bool {
    let place = held.iter().position(|held| held.task == task);
    let gone = place.and_then(|place| held.remove(place));
    gone.inspect(|held| release(held.payload.handle, out)).is_some()
}

/// The missing bytes of a task, if any. A driver that stores no bytes of large tasks fetches none.
#[inline]
pub(super) fn missing(dispatch: &Dispatch) -> Result<Option<Parts>, TooLong> {
    let payload = &dispatch.payload;
    let is_whole = dispatch.place == Place::Here && !payload.has_more();
    if is_whole || payload.handle == Handle::NONE {
        return Ok(None);
    }
    let have = if dispatch.place == Place::Here { payload.len.into() } else { 0 };
    Parts::new(payload.total(), have).map(Some)
}

/// NEEDs sent at once for one task, at most, however many gaps it has.
const NEEDS_MAX: usize = 8;
