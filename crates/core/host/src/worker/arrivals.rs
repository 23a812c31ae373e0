//! How the worker handles each kind of packet.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sluice_wire::{
    Answer, Counters, Dispatch, Empty, Epoch, Generation, Nanos, Nonce, Serial, TaskId, WorkerId,
};

use super::fetching::missing;
use super::types::{Action, WorkerSettings};
use super::window::Arrival;
use super::work::Work;
use super::{Phase, Worker, release};

impl Worker {
    #[inline]
    pub(super) fn dispatch(
        &mut self,
        now: Nanos,
        received: Nanos,
        settings: &WorkerSettings,
        dispatch: &Dispatch,
        out: &mut Vec<Action>,
    ) {
        let arrival = self.arrive(now, received, settings, dispatch, out);
        self.settle((now, received), settings, dispatch, arrival, out);
    }

    /// Takes the counters of a DISPATCH. Returns what it says about this worker's tokens; `None` if the
    /// DISPATCH is for another worker.
    #[expect(clippy::inline_always, reason = "each task pays for a call that stays one")]
    #[inline(always)]
    pub(super) fn arrive(
        &mut self,
        now: Nanos,
        received: Nanos,
        settings: &WorkerSettings,
        dispatch: &Dispatch,
        out: &mut Vec<Action>,
    ) -> Option<Arrival> {
        let life = (dispatch.epoch, dispatch.generation);
        let counters = Counters { seen: dispatch.seen, sent: dispatch.sent };
        match self.origin(life, dispatch.worker, counters) {
            Origin::Foreign => None,
            Origin::Older => Some(Arrival::Late),
            Origin::Present => {
                self.hear(now, received, settings, counters, None, out);
                self.waiting = dispatch.occupancy.min(u8::MAX.into()) as u8;
                let arrival = self.window.take(dispatch.sent);
                self.time_task(received, settings, dispatch);
                self.window.time_gap(now);
                self.probing.heard(now, settings);
                Some(arrival)
            }
        }
    }

    /// Takes the task of an arrived DISPATCH, unless the task came before.
    #[expect(clippy::inline_always, reason = "each task pays for a call that stays one")]
    #[inline(always)]
    pub(super) fn settle(
        &mut self,
        (now, received): (Nanos, Nanos),
        settings: &WorkerSettings,
        dispatch: &Dispatch,
        arrival: Option<Arrival>,
        out: &mut Vec<Action>,
    ) {
        if arrival.is_some_and(|arrival| self.take_task(received, settings, dispatch, arrival, out)) {
            self.fetch_newest(now, settings, out);
            self.run_next(now, settings, out);
        } else {
            self.dropped += u32::from(arrival.is_none());
            release(dispatch.payload.handle, out);
        }
        self.send_tokens(now, settings, out);
    }

    /// Leaves the task of an arrived DISPATCH to another lane, which answers it.
    pub(super) fn leave_it(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        dispatch: &Dispatch,
        out: &mut Vec<Action>,
    ) {
        release(dispatch.payload.handle, out);
        self.send_tokens(now, settings, out);
    }

    /// Answers a task that came over another lane and was held, finished or perhaps forgotten here.
    pub(super) fn answer_repeat(
        &mut self,
        received: Nanos,
        settings: &WorkerSettings,
        dispatch: &Dispatch,
        out: &mut Vec<Action>,
    ) {
        let sender = self.sender();
        if let Some(work) = &mut self.work
            && !work.repeat(dispatch, sender, out)
        {
            work.too_old(received, settings, dispatch, sender, out);
        }
    }

    /// Whether a task may have been finished here and forgotten since.
    pub(super) fn may_have_forgotten(
        &self,
        received: Nanos,
        settings: &WorkerSettings,
        dispatch: &Dispatch,
    ) -> bool {
        self.work.as_ref().is_some_and(|work| work.may_have_forgotten(received, settings, dispatch))
    }

    /// Whether a task is held here or has been finished.
    pub(super) fn knows(&self, task: TaskId) -> bool {
        self.work.as_ref().is_some_and(|work| work.knows(task))
    }

    /// Whether a packet is for this worker's present registration; if `life` is `None`, whether it is for
    /// this worker's index.
    pub(super) fn is_for(&self, worker: WorkerId, life: Option<(Epoch, Generation)>) -> bool {
        self.phase != Phase::New && self.at.worker == worker && life.is_none_or(|life| life == self.at.life())
    }

    /// An EMPTY: the switch had no task for a poll. The poll's token is spent.
    pub(super) fn empty(
        &mut self,
        now: Nanos,
        received: Nanos,
        settings: &WorkerSettings,
        empty: &Empty,
        out: &mut Vec<Action>,
    ) {
        let counters = Counters { seen: empty.seen, sent: empty.sent };
        match self.origin((empty.epoch, empty.generation), empty.worker, counters) {
            Origin::Foreign => self.dropped += 1,
            Origin::Older => {}
            Origin::Present => {
                self.hear(now, received, settings, counters, None, out);
                if self.window.take(empty.sent) == Arrival::Fresh {
                    self.feeding.found_nothing(received);
                }
                self.window.time_gap(now);
                self.probing.heard(now, settings);
                self.send_tokens(now, settings, out);
            }
        }
    }

    /// Holds a task that was never here. Returns whether it did.
    #[inline]
    fn take_task(
        &mut self,
        received: Nanos,
        settings: &WorkerSettings,
        dispatch: &Dispatch,
        arrival: Arrival,
        out: &mut Vec<Action>,
    ) -> bool {
        let sender = self.sender();
        let work = self.work.get_or_insert_with(Box::default);
        let late = arrival == Arrival::Late;
        if arrival == Arrival::Duplicate {
            work.counts.duplicates += 1;
            return false;
        }
        let is_known = settings.repeats
            && (work.repeat(dispatch, sender, out)
                || work.too_old(received, settings, dispatch, sender, out));
        if is_known {
            return false;
        }
        if (late || self.feeding.is_pushed()) && !has_room_for_unasked(work, settings) {
            self.dropped += 1;
            return false;
        }
        let Ok(fetch) = missing(dispatch) else {
            self.dropped += 1;
            return false;
        };
        work.counts.late += u64::from(late);
        work.hold(received, dispatch, fetch);
        true
    }

    #[inline]
    fn origin(&self, life: (Epoch, Generation), worker: WorkerId, counters: Counters) -> Origin {
        let is_present = life == self.at.life() && worker == self.at.worker;
        // A worker's present life is never older than the one in which it joined.
        let is_of_time = || (self.joined..=self.at.life()).contains(&life);
        if self.phase == Phase::New || !(is_present || is_of_time()) {
            Origin::Foreign
        } else if !is_present {
            Origin::Older
        } else if self.are_possible(counters.seen, counters.sent) {
            Origin::Present
        } else {
            Origin::Foreign
        }
    }

    pub(super) fn answer(
        &mut self,
        now: Nanos,
        received: Nanos,
        settings: &WorkerSettings,
        answer: &Answer,
        out: &mut Vec<Action>,
    ) {
        let life = (answer.epoch, answer.generation);
        let is_ours = answer.worker == self.at.worker && self.probing.is_news(answer.nonce);
        if self.phase == Phase::New || !is_ours || life < self.at.life() {
            return;
        }
        self.newest = self.newest.max(answer.epoch);
        match answer.counters {
            Some(counters) if life == self.at.life() => {
                if self.are_possible(counters.seen, counters.sent) {
                    self.counters(now, received, settings, answer.nonce, counters, out);
                }
            }
            _ => self.closed(now, received, settings, answer.nonce, out),
        }
    }

    /// Takes an ANSWER: the switch's counters of this generation.
    fn counters(
        &mut self,
        now: Nanos,
        received: Nanos,
        settings: &WorkerSettings,
        nonce: Nonce,
        counters: Counters,
        out: &mut Vec<Action>,
    ) {
        if self.phase == Phase::Closed {
            self.phase = Phase::Serving;
        }
        let issued_before = self.probing.believe(received, nonce);
        self.hear(now, received, settings, counters, issued_before, out);
        self.window.time_gap(now);
        let settled = self.seen == self.issued && self.window.missing() == 0;
        self.probing.answered(now, settings, settled);
        self.send_tokens(now, settings, out);
    }

    /// A CLOSED packet: the registration is changing or has changed. The worker waits for the controller.
    fn closed(
        &mut self,
        now: Nanos,
        received: Nanos,
        settings: &WorkerSettings,
        nonce: Nonce,
        out: &mut Vec<Action>,
    ) {
        self.probing.believe(received, nonce);
        if self.is_leaving() {
            return;
        }
        self.phase = Phase::Closed;
        self.probing.answered(now, settings, false);
        self.renew(now, settings, out);
    }

    /// Takes the switch's counts of granted tokens and sent tasks. Sends again the TOKENs known to be lost:
    /// among all issued tokens if none can be on its way any more, otherwise among the first
    /// `issued_before`.
    #[expect(clippy::inline_always, reason = "each task pays for a call that stays one")]
    #[inline(always)]
    fn hear(
        &mut self,
        now: Nanos,
        received: Nanos,
        settings: &WorkerSettings,
        counters: Counters,
        issued_before: Option<Serial>,
        out: &mut Vec<Action>,
    ) {
        if self.feeding.is_pushed() {
            self.issued = self.issued.latest(counters.sent);
            self.seen = self.issued;
            self.written_off += self.window.hear(counters.sent);
            return;
        }
        self.seen = self.seen.latest(counters.seen);
        self.written_off += self.window.hear(counters.sent);
        let tells_of_all = self.probing.tells_of_all_tokens(received, settings);
        if let Some(arrived) = if tells_of_all { Some(self.issued) } else { issued_before } {
            self.repeat_tokens(now, settings, arrived.since(self.seen), out);
        }
    }

    /// Whether the counts are possible: a switch cannot grant more tokens than were issued, nor send more
    /// tasks, unless it pushes tasks.
    fn are_possible(&self, seen: Serial, sent: Serial) -> bool {
        self.feeding.is_pushed() || self.issued.since(seen) >= 0 && self.issued.since(sent) >= 0
    }
}

/// Which token brought a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Present,
    Older,
    Foreign,
}

/// Whether there is room for a late or pushed task. Such tasks come on top of the quota, so they need a
/// bound of their own.
fn has_room_for_unasked(work: &Work, settings: &WorkerSettings) -> bool {
    let kept = work.finished().len() + work.held();
    work.held() < settings.held_max && kept < settings.finished_max.saturating_add(settings.held_max)
}
