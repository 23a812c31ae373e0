//! The client: it keeps each task until the task has its one outcome (Rain §3.2.2; the protocol's "The
//! client").
//!
//! Each task ends exactly once: as Reply, as Refused (no attempt can have run) or as Unknown (an attempt
//! may have run).
//!
//! A client retries a task after a timeout, which doubles each time; after the time that a REJECT names;
//! and once when the client is registered anew. Retries are paid from a budget, which is
//! [`ClientSettings::retry_budget_percent`] of the tasks sent. Once the budget is spent, a rejected task is
//! refused. An unanswered task is still retried after each doubled timeout, since such retries are few. A
//! task whose type no slice takes is refused at its first REJECT. A retry waits while the client tries more
//! tasks than its share allows, as after a grant that shrank the share. No attempt leaves once workers may
//! have forgotten the task ([`ClientRegistration::retry_for`]), however late its deadline is. A client that
//! knows its registration to be dead sends nothing until it has a new one.
//!
//! A worker that lacks bytes of a task asks the client for them (NEED). The client sends them (PART) as
//! long as the task has no outcome.
//!
//! A reply longer than one packet is fetched from its worker in the same way before the task ends.

mod before;
mod budget;
mod bundle;
mod fetches;
mod fetching;
mod pace;
mod rejects;
mod renewal;
mod shares;
mod slots;
mod timers;
mod types;
mod words;

use alloc::vec::Vec;
use core::mem;

use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{
    Age, Attempt, Budget, BytesOf, Endpoint, Epoch, Handle, Incarnation, Nanos, Need, Notice, Packet, Part,
    Payload, Reply, ReplyStatus, Serial, Submit, TASK_BYTES_MAX, TaskId,
};

pub use types::{
    Action, Busy, ClientSettings, ClientStats, CutOff, Outcome, RefusedWhy, Submission, UnknownWhy, Urgency,
};

pub use before::still_counts;
pub use bundle::Bundle;

use budget::RetryBudget;
use fetches::Fetches;
use renewal::Renewal;
use shares::Shares;
use slots::{END_OF_TIME, NextTry, Slot, Slots};
use timers::Timers;

/// After so many timeouts in a row without any packet, the client asks the controller for its registration.
const SILENT_TIMEOUTS: u32 = 3;
/// How far new sequence numbers may run ahead of the oldest outstanding task's: a quarter of all serial
/// numbers.
const WINDOW: i32 = 1 << 30;

/// One client's state. Allocates nothing until it is used.
#[derive(Debug)]
pub struct Client {
    incarnation: Incarnation,
    next: Serial,
    /// A sequence number at or before the oldest outstanding task's.
    oldest: Serial,
    granted: Option<ClientRegistration>,
    /// The newest epoch heard of. A registration for an older epoch is dead.
    newest: Epoch,
    /// Until when the workers of a switch that restarted may still be missing.
    workers_return_by: Nanos,
    slots: Slots,
    shares: Shares,
    timers: Timers,
    budget: RetryBudget,
    renewal: Renewal,
    fetches: Fetches,
    silent: u32,
    stats: ClientStats,
}

impl Client {
    /// A client without a registration. Its first task has the number `first_sequence`.
    pub fn new(incarnation: Incarnation, first_sequence: Serial) -> Self {
        Self {
            incarnation,
            next: first_sequence,
            oldest: first_sequence,
            granted: None,
            newest: Epoch(0),
            workers_return_by: Nanos(0),
            slots: Slots::default(),
            shares: Shares::default(),
            timers: Timers::default(),
            budget: RetryBudget::default(),
            renewal: Renewal::default(),
            fetches: Fetches::default(),
            silent: 0,
            stats: ClientStats::default(),
        }
    }

    /// Takes an answer of the controller; the driver passes on unchanged answers too. If the epoch is
    /// newer, or the key or the index differs, each outstanding task is retried once at once, at most once
    /// per epoch and outside the budget. A change of the switch has the same effect; each switch counts
    /// epochs of its own.
    pub fn grant(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        grant: ClientRegistration,
        out: &mut Vec<Action>,
    ) {
        if self.switch().is_some_and(|at| at != grant.switch) {
            self.move_over();
        } else if grant.epoch < self.newest {
            self.ask_renewal(now, settings, out);
            return;
        }
        self.newest = grant.epoch;
        if self.granted.as_ref().is_none_or(|held| held.epoch < grant.epoch) {
            self.forget_waiting();
            if self.granted.is_some() {
                self.workers_return_by = now + settings.return_time;
            }
        }
        self.renewal.settle();
        self.slots.allow(grant.replay_cells, settings.outstanding_max);
        let held = self.granted.as_ref();
        let fresh = held
            .is_none_or(|held| (held.epoch, held.key, held.client) != (grant.epoch, grant.key, grant.client));
        let differs = |held: &ClientRegistration| {
            held.shares != grant.shares || held.slices != grant.slices || held.sizes != grant.sizes
        };
        if held.is_none_or(differs) {
            self.share_out(&grant, settings);
        }
        self.granted = Some(grant);
        if fresh {
            self.silent = 0;
            self.keep_all_back(now);
        }
        self.send_kept_back(now, settings, out);
    }

    /// The switch restarted: no earlier attempt waits in it any more.
    fn forget_waiting(&mut self) {
        self.shares.forget_repeats();
        let ids: Vec<u32> = self.slots.ids().collect();
        for id in ids {
            self.slots.get(id).waiting = 0;
        }
    }

    /// The client moves to another switch. Each switch counts its own epochs, so everything heard from the
    /// old switch is void.
    fn move_over(&mut self) {
        self.granted = None;
        let ids: Vec<u32> = self.slots.ids().collect();
        for id in ids {
            self.slots.get(id).freed_in = Epoch(0);
        }
    }

    /// Takes a task, which later ends in exactly one [`Action::Done`].
    ///
    /// # Errors
    /// [`Busy`] says why the task was not taken; the application may offer it again later.
    pub fn submit(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        submission: Submission,
        out: &mut Vec<Action>,
    ) -> Result<TaskId, Busy> {
        let admitted = self.admit(now, settings, &submission, out);
        match admitted {
            Ok(_) => self.stats.submitted += 1,
            Err(_) => self.stats.pushed_back += 1,
        }
        admitted
    }

    /// Takes a task that the driver cannot send, and ends it at once as refused.
    pub fn refuse(&mut self, submission: &Submission, why: RefusedWhy, out: &mut Vec<Action>) -> TaskId {
        self.stats.submitted += 1;
        self.end_unsent(submission, why, out)
    }

    /// Takes a packet. The driver needs the bytes of a REPLY or PART only if one of the actions that this
    /// call pushes names them.
    pub fn packet(&mut self, now: Nanos, settings: &ClientSettings, packet: &Packet, out: &mut Vec<Action>) {
        match packet {
            Packet::Reply(reply) => self.on_reply(now, settings, reply, out),
            Packet::Reject(reject) => self.on_reject(now, settings, reject, out),
            Packet::Notice(Notice { epoch, task, .. }) => {
                self.hear(now, settings, *task, *epoch, out);
            }
            Packet::Need(need) if need.of == BytesOf::Task => self.on_need(need, out),
            Packet::Part(part) if part.of == BytesOf::Reply => self.on_part(now, settings, part, out),
            _ => self.stats.foreign += 1,
        }
        self.send_kept_back(now, settings, out);
    }

    /// Takes the switch's epoch from a heartbeat.
    pub fn epoch(&mut self, now: Nanos, settings: &ClientSettings, epoch: Epoch, out: &mut Vec<Action>) {
        if epoch > self.newest {
            self.newest = epoch;
            if self.granted.is_some() {
                self.ask_renewal(now, settings, out);
            }
        }
    }

    /// The kernel reported that the switch's address refused a packet (ECONNREFUSED).
    pub fn refused(&mut self, now: Nanos, settings: &ClientSettings, out: &mut Vec<Action>) {
        self.ask_renewal(now, settings, out);
    }

    /// Handles all timers that are due. At `Nanos(u64::MAX)` this ends every outstanding task that has a
    /// deadline.
    pub fn tick(&mut self, now: Nanos, settings: &ClientSettings, out: &mut Vec<Action>) {
        if self.renewal.due().is_some_and(|due| due <= now) {
            self.ask_renewal(now, settings, out);
        }
        while let Some((_, id)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.fire(now, settings, id, out);
        }
        self.send_kept_back(now, settings, out);
    }

    /// The time at which [`Client::tick`] has to be called next.
    pub fn deadline(&self) -> Option<Nanos> {
        let timer = self.timers.first().map(|(at, _)| at);
        [timer, self.renewal.due()].into_iter().flatten().min()
    }

    /// The oldest outstanding sequence number, or the next one if none is outstanding. A new registration's
    /// replay cells start at this number.
    pub fn floor(&self) -> Serial {
        self.slots.oldest(self.next)
    }

    /// How many tasks have no outcome yet.
    pub fn outstanding(&self) -> usize {
        self.slots.len()
    }

    /// How many tasks the switch accepts in one submission; 1 if each task must be sent alone. See
    /// [`Bundle`].
    pub fn jobs(&self) -> u8 {
        self.granted.as_ref().map_or(1, |grant| grant.jobs)
    }

    /// The address of the switch that the last grant names.
    pub fn switch(&self) -> Option<Endpoint> {
        self.granted.as_ref().map(|grant| grant.switch)
    }

    /// Counters since the client's start.
    pub fn stats(&self) -> ClientStats {
        self.stats
    }

    #[inline]
    fn admit(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        submission: &Submission,
        out: &mut Vec<Action>,
    ) -> Result<TaskId, Busy> {
        if !self.window_is_open() {
            return Err(Busy::WindowSpent);
        }
        if submission.deadline <= now {
            return Ok(self.end_unsent(submission, RefusedWhy::NeverSent, out));
        }
        if let Some(why) = submission.begin_by.and_then(|by| out_of_range(by.since(now))) {
            return Ok(self.end_unsent(submission, why, out));
        }
        let payload = &submission.payload;
        if payload.handle != Handle::NONE && payload.total() > TASK_BYTES_MAX {
            return Ok(self.end_unsent(submission, RefusedWhy::TooLong, out));
        }
        let living = self.living().ok_or(Busy::NotRegistered)?;
        let (retry_for, classes) = (living.retry_for, living.classes);
        if let Urgency::Priority(priority) = submission.urgency
            && classes > 1
            && priority >= classes
        {
            return Ok(self.end_unsent(submission, RefusedWhy::NoClass { priority, classes }, out));
        }
        let share = self.shares.of(submission.task_type);
        if !self.shares.has_room(share, now) {
            return Err(Busy::ShareSpent);
        }
        let sequence = self.slots.claim(self.next).ok_or(Busy::CellsSpent)?;
        let class = self.class_of(share, submission.urgency, classes);
        if let Err(retry_after) = self.shares.keep_pace(share, now, (class, classes)) {
            self.stats.refused_here += 1;
            return Ok(self.end_unsent(submission, RefusedWhy::Busy { retry_after }, out));
        }
        self.next = sequence.plus(1);
        self.shares.charge(share);
        self.budget.earn(settings);
        let id = self.slots.insert(Slot { class, ..Slot::new(now, sequence, share, submission, retry_for) });
        self.send(now, settings, id, out);
        Ok(self.name(sequence))
    }

    #[inline]
    fn class_of(&self, share: u32, urgency: Urgency, classes: u8) -> u8 {
        match urgency {
            Urgency::Unstated => classes.saturating_sub(1),
            Urgency::Work(work) => self.shares.class_of(share, work),
            Urgency::Priority(priority) => priority,
        }
    }

    /// Whether a new sequence number could still be told from the oldest outstanding one.
    fn window_is_open(&mut self) -> bool {
        if self.next.since(self.oldest) >= WINDOW && self.slots.find(self.oldest).is_none() {
            self.oldest = self.floor();
        }
        self.next.since(self.oldest) < WINDOW
    }

    /// Ends a task that cannot be sent. The task uses up a sequence number, but no replay cell.
    fn end_unsent(&mut self, submission: &Submission, why: RefusedWhy, out: &mut Vec<Action>) -> TaskId {
        let task = self.name(self.next);
        self.next = self.next.plus(1);
        self.stats.count_refused(why);
        let outcome = Outcome::Refused(why);
        out.push(Action::Done { tag: submission.tag, task, attempts: 0, outcome });
        release(submission.payload.handle, out);
        task
    }

    #[inline]
    fn on_reply(&mut self, now: Nanos, settings: &ClientSettings, reply: &Reply, out: &mut Vec<Action>) {
        let Some(id) = self.hear(now, settings, reply.task, reply.epoch, out) else {
            return self.comes_late(reply.task, reply.task_type);
        };
        let attempts = self.slots.get(id).attempts;
        if !(1..=attempts).contains(&reply.attempt.0) {
            self.stats.foreign += 1;
            return;
        }
        if self.slots.get(id).fetching && self.fetches.is_of_another(id, reply) {
            self.stats.late += 1;
            return;
        }
        let share = self.slots.get(id).share;
        self.shares.waited(share, now, Nanos(reply.switch_wait_ns.into()));
        let outcome = match reply.status {
            ReplyStatus::Gone => Outcome::Unknown(UnknownWhy::ReplyGone),
            ReplyStatus::Old => Outcome::Unknown(UnknownWhy::TooOld),
            ReplyStatus::Late => return self.on_late(id, reply, out),
            _ if reply.payload.has_more() => return self.begin_fetch(now, settings, id, reply, out),
            ReplyStatus::Done | ReplyStatus::Failed => Outcome::Reply(*reply),
        };
        self.end(id, outcome, out);
    }

    /// A worker that holds a task asks for missing bytes of it.
    fn on_need(&mut self, need: &Need, out: &mut Vec<Action>) {
        if need.task.incarnation != self.incarnation {
            // The task belongs to an earlier process at this address, which will never answer.
            self.stats.foreign += 1;
            return gone(need, out);
        }
        if need.task.sequence.since(self.next) >= 0 {
            self.stats.foreign += 1;
            return;
        }
        let Some(id) = self.slots.find(need.task.sequence) else {
            self.stats.late += 1;
            return gone(need, out);
        };
        self.silent = 0;
        let slot = self.slots.get(id);
        if (1..=slot.attempts).contains(&need.attempt.0) {
            self.stats.needs += 1;
            out.push(Action::Parts { need: *need, payload: slot.payload });
        } else {
            self.stats.foreign += 1;
        }
    }

    /// What every packet says: the switch or a worker lives, and which epoch it is in. Returns the slot of
    /// the task that the packet names.
    #[expect(clippy::inline_always, reason = "each task pays for a call that stays one")]
    #[inline(always)]
    fn hear(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        task: TaskId,
        epoch: Epoch,
        out: &mut Vec<Action>,
    ) -> Option<u32> {
        if task.incarnation != self.incarnation {
            self.stats.foreign += 1;
            return None;
        }
        self.silent = 0;
        self.epoch(now, settings, epoch, out);
        let id = self.slots.find(task.sequence);
        self.stats.late += u64::from(id.is_none());
        id
    }

    /// A task's timer fired: its deadline passed, a rejected task's retry is due, or an attempt timed out.
    fn fire(&mut self, now: Nanos, settings: &ClientSettings, id: u32, out: &mut Vec<Action>) {
        let living = self.living().is_some();
        let slot = self.slots.get(id);
        if slot.deadline <= now {
            let refused = slot.refused().map(Outcome::Refused);
            self.end(id, refused.unwrap_or(Outcome::Unknown(UnknownWhy::Deadline)), out);
        } else if slot.fetching {
            self.fetch_due(now, settings, id, out);
        } else if !living {
            let deadline = slot.deadline;
            self.timers.set(id, deadline);
        } else if slot.due != NextTry::Timeout {
            self.try_rejected(now, settings, id, out);
        } else {
            self.time_out(now, settings, id, out);
        }
    }

    fn time_out(&mut self, now: Nanos, settings: &ClientSettings, id: u32, out: &mut Vec<Action>) {
        self.stats.timeouts += 1;
        self.silent += 1;
        if self.silent >= SILENT_TIMEOUTS && self.ask_renewal(now, settings, out) {
            self.silent = 0;
        }
        let slot = self.slots.get(id);
        let backed_off = slot.backoffs > 0;
        slot.backoffs = slot.backoffs.saturating_add(1);
        if !slot.may_retry(now) {
            self.set_timeout(now, settings, id);
        } else if self.is_beyond_share(id) {
            self.wait_for_room(now, settings, id);
        } else if self.budget.pay(settings) {
            self.stats.retries_paid += 1;
            self.send(now, settings, id, out);
        } else if backed_off {
            self.stats.retries_probing += 1;
            self.send(now, settings, id, out);
        } else {
            self.set_timeout(now, settings, id);
        }
    }

    /// Sends the task's next attempt. The caller has checked that the registration is not dead.
    #[inline]
    fn send(&mut self, now: Nanos, settings: &ClientSettings, id: u32, out: &mut Vec<Action>) {
        let Some(grant) = &self.granted else { return };
        let slot = self.slots.get(id);
        slot.unanswered |= slot.attempts > 0 && slot.rejected.is_none();
        slot.rejected = None;
        slot.due = NextTry::Timeout;
        slot.attempts += 1;
        slot.waiting += 1;
        if slot.waiting > 1 {
            self.shares.repeat(slot.share);
        }
        slot.sent_in = grant.epoch;
        let Payload { len, inline, handle } = slot.payload;
        out.push(Action::ToSwitch(Submit {
            epoch: grant.epoch,
            key: grant.key,
            client: grant.client,
            task: TaskId { incarnation: self.incarnation, sequence: slot.sequence },
            attempt: Attempt(slot.attempts),
            task_type: slot.task_type,
            priority: slot.class,
            constraints: slot.needs.0,
            age: Age::of(now.since(slot.first_sent)),
            budget: slot.budget(now),
            payload: Payload { len, inline, handle },
        }));
        self.stats.sent += 1;
        self.set_timeout(now, settings, id);
    }

    #[inline]
    fn set_timeout(&mut self, now: Nanos, settings: &ClientSettings, id: u32) {
        let slot = self.slots.get(id);
        let at = (now + settings.timeout(slot.backoffs)).min(slot.deadline);
        if at == END_OF_TIME {
            self.timers.clear(id);
        } else {
            self.timers.set(id, at);
        }
    }

    /// Marks each outstanding task for its free retry in this epoch, oldest first. Retries leave only as
    /// far as the shares have room: otherwise a restarted switch would reject tasks that its predecessor
    /// had room for.
    fn keep_all_back(&mut self, now: Nanos) {
        let epoch = self.newest;
        for id in self.ids_by_age() {
            let slot = self.slots.get(id);
            let waits = !slot.kept_back && !slot.fetching;
            if waits && slot.may_retry(now) && slot.freed_in != epoch {
                self.keep_back(id);
            }
        }
    }

    fn keep_back(&mut self, id: u32) {
        let slot = self.slots.get(id);
        slot.kept_back = true;
        let (share, sequence, deadline) = (slot.share, slot.sequence, slot.deadline);
        self.shares.keep_back(share, sequence);
        self.timers.set(id, deadline);
    }

    /// Whether a task that is due for its next try has to wait for room: a new grant may shrink a share
    /// below what is outstanding.
    fn is_beyond_share(&mut self, id: u32) -> bool {
        self.shares.is_exceeded(self.slots.get(id).share)
    }

    /// Keeps a task back whose next try is due. Its repeats may still wait in the switch: they hold their
    /// places for another timeout, as if the task had ended.
    fn wait_for_room(&mut self, now: Nanos, settings: &ClientSettings, id: u32) {
        let slot = self.slots.get(id);
        let (share, repeats, until) = (slot.share, slot.repeats(), now + settings.timeout(slot.backoffs));
        slot.waiting = slot.waiting.min(1);
        self.shares.end_repeats(share, repeats);
        self.shares.leave_behind(share, repeats, until);
        self.keep_back(id);
    }

    /// Sends the tasks that were kept back, as far as their shares have room now.
    #[inline]
    fn send_kept_back(&mut self, now: Nanos, settings: &ClientSettings, out: &mut Vec<Action>) {
        if self.shares.keep_any_back() {
            self.try_kept_back(now, settings, out);
        }
    }

    fn try_kept_back(&mut self, now: Nanos, settings: &ClientSettings, out: &mut Vec<Action>) {
        while self.living().is_some()
            && let Some(sequence) = self.shares.next_kept_back()
        {
            let Some(id) = self.slots.find(sequence) else { continue };
            let epoch = self.newest;
            let slot = self.slots.get(id);
            slot.kept_back = false;
            if !slot.may_retry(now) {
                self.end_if_late(now, id, out);
                continue;
            }
            slot.freed_in = epoch;
            slot.backoffs = 0;
            self.stats.retries_free += 1;
            self.send(now, settings, id, out);
        }
    }

    fn ids_by_age(&mut self) -> Vec<u32> {
        let next = self.next;
        let mut ids: Vec<u32> = self.slots.ids().collect();
        ids.sort_unstable_by_key(|id| self.slots.get(*id).sequence.since(next));
        ids
    }

    /// Charges the outstanding tasks to the shares of a new grant.
    fn share_out(&mut self, grant: &ClientRegistration, settings: &ClientSettings) {
        let earlier = mem::replace(&mut self.shares, Shares::new(grant, settings.unmapped_share));
        self.shares.take_over(earlier);
        for id in self.ids_by_age() {
            let slot = self.slots.get(id);
            slot.share = self.shares.of(slot.task_type);
            self.shares.charge(slot.share);
            (0..slot.repeats()).for_each(|_| self.shares.repeat(slot.share));
            if slot.kept_back {
                self.shares.keep_back(slot.share, slot.sequence);
            }
        }
    }

    /// Asks the driver to contact the controller, and keeps asking while the registration is known to be
    /// dead. Returns whether it asked now.
    fn ask_renewal(&mut self, now: Nanos, settings: &ClientSettings, out: &mut Vec<Action>) -> bool {
        let asked = self.renewal.ask(now, settings, out);
        if asked {
            self.stats.renewals += 1;
            if self.living().is_none() {
                self.renewal.repeat(now, settings);
            }
        }
        asked
    }

    /// The registration, unless it is known to be dead.
    fn living(&self) -> Option<&ClientRegistration> {
        self.granted.as_ref().filter(|grant| grant.epoch >= self.newest)
    }

    /// Ends a task that was sent. No other function does.
    #[inline]
    fn end(&mut self, id: u32, outcome: Outcome, out: &mut Vec<Action>) {
        let slot = self.slots.remove(id);
        if slot.repeats() > 0 {
            self.leave_behind(id, &slot, &outcome);
        }
        self.timers.clear(id);
        if slot.kept_back {
            self.shares.forget(slot.share, slot.sequence);
        }
        self.shares.free(slot.share);
        match outcome {
            Outcome::Reply(_) => self.stats.replied += 1,
            Outcome::Refused(why) => self.stats.count_refused(why),
            Outcome::Unknown(_) => self.stats.unknown += 1,
        }
        let task = self.name(slot.sequence);
        // Two steps, so that the compiler writes the outcome directly into its place instead of moving it.
        let filler = Outcome::Refused(RefusedWhy::NeverSent);
        let done = Action::Done { tag: slot.tag, task, attempts: slot.attempts, outcome: filler };
        if let Action::Done { outcome: place, .. } = out.push_mut(done) {
            *place = outcome;
        }
        if slot.fetching {
            self.fetches.drop(id, out);
        }
        release(slot.payload.handle, out);
    }

    fn name(&self, sequence: Serial) -> TaskId {
        TaskId { incarnation: self.incarnation, sequence }
    }
}

/// Why a task that may begin for so long cannot be sent, if it cannot.
fn out_of_range(left: Nanos) -> Option<RefusedWhy> {
    match left {
        left if left < Budget::SHORTEST => Some(RefusedWhy::Late(CutOff::Client)),
        left if left > Budget::LONGEST => Some(RefusedWhy::LongBudget),
        _ => None,
    }
}

/// Answers a NEED whose bytes no longer exist, so that the worker frees the task's place.
#[cold]
fn gone(need: &Need, out: &mut Vec<Action>) {
    let Need { of, worker, client, task, attempt, .. } = *need;
    let packet = Part { of, worker, client, task, attempt, offset: 0, payload: Payload::EMPTY };
    out.push(Action::Gone { to: need.asker_at, packet });
}

fn release(handle: Handle, out: &mut Vec<Action>) {
    if handle != Handle::NONE {
        out.push(Action::Release(handle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use sluice_wire::{ClientId, Key, SliceId, TaskType};

    #[test]
    fn one_task_that_stays_outstanding_for_a_quarter_of_all_numbers_holds_back_new_ones() {
        let (settings, mut out) = (ClientSettings::default(), Vec::new());
        let mut client = Client::new(Incarnation(1), Serial(u32::MAX));
        client.grant(Nanos(0), &settings, grant(), &mut out);
        let submit = |client: &mut Client, now: u64| {
            let submission = Submission { deadline: Nanos(9), retry: true, ..Submission::default() };
            client.submit(Nanos(now), &settings, submission, &mut Vec::new())
        };
        assert!(submit(&mut client, 1).is_ok());
        client.next = client.oldest.plus(WINDOW as u32 - 1);
        assert!(submit(&mut client, 1).is_ok());
        assert_eq!(submit(&mut client, 1), Err(Busy::WindowSpent));
        assert_eq!(submit(&mut client, 9), Err(Busy::WindowSpent), "also what would not be sent");
        client.tick(Nanos(9), &settings, &mut out);
        assert_eq!(client.outstanding(), 0);
        assert!(submit(&mut client, 1).is_ok());
    }

    #[test]
    fn a_task_that_may_take_for_ever_sets_no_timer() {
        let never = Nanos(u64::MAX);
        let settings =
            ClientSettings { first_timeout: never, timeout_max: never, ..ClientSettings::default() };
        let (mut client, mut out) = (Client::new(Incarnation(1), Serial(0)), Vec::new());
        client.grant(Nanos(0), &settings, grant(), &mut out);
        let submission = Submission { deadline: never, ..Submission::default() };
        let task = client.submit(Nanos(1), &settings, submission, &mut out).unwrap();
        assert_eq!(client.deadline(), None);
        let reply = Packet::Reply(Reply { task, attempt: Attempt(1), epoch: Epoch(1), ..Reply::default() });
        client.packet(Nanos(2), &settings, &reply, &mut out);
        assert_eq!((client.outstanding(), client.stats().replied), (0, 1));
    }

    fn grant() -> ClientRegistration {
        ClientRegistration {
            client: ClientId(0),
            key: Key(1),
            epoch: Epoch(1),
            switch: Endpoint::default(),
            replay_cells: 8,
            slices: vec![(TaskType(0), SliceId(0))],
            shares: vec![(SliceId(0), 8)],
            classes: 1,
            jobs: 1,
            sizes: Vec::new(),
            retry_for: Nanos(9),
        }
    }
}
