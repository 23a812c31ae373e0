//! Workers: how they join, renew, move, leave and die. The module `change` writes a change to the switch.

use alloc::string::ToString;
use alloc::vec::Vec;

use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::serving::Labels;
use sluice_wire::tables::{Feed, WorkerRow};
use sluice_wire::{Generation, Key, Nanos, SliceId, WorkerId};

use crate::controller::{Controller, SOON, too_many, wait};
use crate::message::{Action, Answer, CallId, Refusal, Waiting, WorkerGrant, WorkerHello};
use crate::name::check_name;
use crate::plan::WORKER_TYPES_MAX;
use crate::registration::{Fate, NameConflict, Waiter, Wants};
use crate::tier::Tier;
use crate::worker::{Step, Worker};

/// An index whose generation reached this one is not given away again in this epoch.
const GENERATION_MAX: Generation = Generation(u32::MAX - 16);

impl Controller {
    pub(crate) fn worker_hello(
        &mut self,
        now: Nanos,
        call: CallId,
        hello: WorkerHello,
        out: &mut Vec<Action>,
    ) {
        let checked = check_hello(&hello, self.quota_max()).and_then(|()| check_tier(self.plan.tier, &hello));
        if let Err(why) = checked {
            out.push(Action::Answer { call, answer: Answer::Refused { why } });
            return;
        }
        let index = self.find_worker(&hello);
        let answer = match index.and_then(|i| Some((i, self.workers.get(i)?.registration.life))) {
            Some((index, life)) if life == hello.life => self.renew_worker(now, call, index, &hello, out),
            Some((index, _)) => Some(self.contest_worker(now, index, &hello)),
            None => self.join_worker(now, call, hello, out),
        };
        if let Some(answer) = answer {
            self.hasten_sweeps(now, &answer);
            out.push(Action::Answer { call, answer });
        }
    }

    pub(crate) fn worker_leave(
        &mut self,
        now: Nanos,
        call: CallId,
        name: &str,
        life: u64,
        out: &mut Vec<Action>,
    ) {
        if let Some(answer) = self.unreachable() {
            out.push(Action::Answer { call, answer });
            return;
        }
        let held = |i: &u16| self.workers.get(*i).is_some_and(|w| w.registration.life == life);
        let nameless = || self.nameless_worker(|w| w.registration.life == life);
        let Some(index) = self.workers.by_name(name).filter(held).or_else(nameless) else {
            let final_sent = self.departed.iter().rev().find(|d| d.0 == life).and_then(|d| d.1);
            out.push(Action::Answer { call, answer: Answer::Left { final_sent } });
            return;
        };
        if let Some(worker) = self.workers.get_mut(index) {
            worker.fate = Fate::Leaves;
        }
        self.let_worker_wait(index, Waiter { call, wants: Wants::Left }, out);
        self.settle_worker(now, WorkerId(index), out);
    }

    pub(crate) fn move_worker(
        &mut self,
        now: Nanos,
        call: CallId,
        name: &str,
        slice: &str,
        out: &mut Vec<Action>,
    ) {
        if self.plan.tier == Tier::Spine {
            out.push(Action::Answer { call, answer: Answer::Refused { why: Refusal::FixedAbove } });
            return;
        }
        let admitted = self.admit_move(name, slice).and_then(|(index, slice)| {
            self.let_slice_empty(now, index, slice)?;
            Ok((index, slice))
        });
        match admitted {
            Ok((index, slice)) => {
                if let Some(worker) = self.workers.get_mut(index) {
                    worker.slice = slice;
                }
                self.let_worker_wait(index, Waiter { call, wants: Wants::Moved }, out);
                self.settle_worker(now, WorkerId(index), out);
            }
            Err(answer) => {
                self.hasten_sweeps(now, &answer);
                out.push(Action::Answer { call, answer });
            }
        }
    }

    /// Ends the leases that were not renewed; returns the end of the next lease.
    pub(crate) fn end_worker_leases(&mut self, now: Nanos, out: &mut Vec<Action>) -> Option<Nanos> {
        let lease = self.plan.lease;
        let mut next: Option<Nanos> = None;
        let mut ended = Vec::new();
        for (index, worker) in self.workers.iter_mut().filter(|(_, w)| w.fate == Fate::Stays) {
            let ends = worker.registration.ends(lease);
            if ends <= now {
                worker.fate = Fate::Dies;
                ended.push(WorkerId(index));
            } else {
                next = Some(next.map_or(ends, |n| n.min(ends)));
            }
        }
        for worker in ended {
            self.settle_worker(now, worker, out);
        }
        next
    }

    /// Answers the calls that wait for a worker, if the worker is now as they asked.
    pub(crate) fn answer_worker(&mut self, id: WorkerId, out: &mut Vec<Action>) {
        let Some(worker) = self.workers.get_mut(id.0) else { return };
        let waiters = worker.registration.take_waiters();
        for Waiter { call, wants } in waiters {
            if let Some(worker) = self.workers.get(id.0) {
                let answer = wants.settled(|| Answer::Worker(self.worker_grant(id, worker)));
                out.push(Action::Answer { call, answer });
            }
        }
    }

    /// A worker's key and generation; `None` while they are being changed.
    pub fn settled(&self, worker: WorkerId) -> Option<(Key, Generation)> {
        let worker = self.workers.get(worker.0).filter(|worker| worker.is_settled())?;
        Some((worker.row.key, worker.row.generation))
    }

    /// A worker's name, if the index is taken and the name is known.
    pub fn worker_name(&self, worker: WorkerId) -> Option<&str> {
        self.workers.get(worker.0)?.registration.name.as_deref()
    }

    /// The index of the name's holder, or of a row without a name that this worker proves to be its own.
    fn find_worker(&mut self, hello: &WorkerHello) -> Option<u16> {
        if let Some(index) = self.workers.by_name(&hello.name) {
            return Some(index);
        }
        let index = self.nameless_worker(|w| w.registration.life == hello.life)?;
        let held = |(id, key, _): (WorkerId, _, Generation)| {
            self.workers.get(id.0).is_some_and(|w| w.registration.name.is_none() && w.row.key == key)
        };
        let index = hello.held.filter(|h| held(*h)).map_or(index, |(id, _, _)| id.0);
        self.workers.name(index, &hello.name);
        Some(index)
    }

    fn nameless_worker(&self, fit: impl Fn(&Worker) -> bool) -> Option<u16> {
        self.workers.iter().find(|(_, w)| w.registration.name.is_none() && fit(w)).map(|(i, _)| i)
    }

    fn renew_worker(
        &mut self,
        now: Nanos,
        call: CallId,
        index: u16,
        hello: &WorkerHello,
        out: &mut Vec<Action>,
    ) -> Option<Answer> {
        let worker = self.workers.get(index)?;
        if worker.fate != Fate::Stays {
            return Some(wait(Waiting::Leaving, SOON));
        }
        let slice = worker.slice;
        let labels = match self.labels(&hello.labels) {
            Ok(labels) => labels,
            Err(why) => return Some(Answer::Refused { why }),
        };
        if worker.types != hello.types || worker.labels != labels {
            if let Err(why) = self.check_served(&hello.name, &hello.types, labels, slice) {
                return Some(Answer::Refused { why });
            }
            // A worker without types was read back and calls for the first time; it was admitted before.
            if !worker.types.is_empty()
                && let Err(answer) = self.check_former(&hello.types, labels, slice)
            {
                return Some(answer);
            }
        }
        self.count_late(index, hello.refused_late);
        let worker = self.workers.get_mut(index)?;
        worker.registration.renewed = now;
        worker.server.clone_from(&hello.server);
        worker.rejoin_if_lost(hello.rejoins);
        (worker.at, worker.workers) = (hello.at, hello.workers);
        worker.types.clone_from(&hello.types);
        worker.labels = labels;
        self.rejoin_if_other_kind(WorkerId(index));
        let worker = self.workers.get_mut(index)?;
        let has_moved = worker.is_settled() && hello.held.is_some_and(|held| held.2 == worker.row.generation);
        worker.start_quota = worker.start_quota.filter(|_| !has_moved);
        let quota = worker.start_quota.unwrap_or(hello.quota);
        let counts = (worker.quota, worker.capacity) != (quota, hello.capacity);
        (worker.quota, worker.capacity, worker.recent) = (quota, hello.capacity, hello.recent);
        let (settled, serves) = (worker.is_settled(), worker.serves);
        let unreachable = self.unreachable();
        if settled && self.unknowing().is_none() {
            if let Some(slice) = serves.filter(|_| counts) {
                self.refresh_slice(now, slice, out);
            }
            let worker = self.workers.get(index)?;
            return Some(Answer::Worker(self.worker_grant(WorkerId(index), worker)));
        }
        if unreachable.is_some() {
            return unreachable;
        }
        if self.workers.get(index).is_some_and(|worker| worker.step == Some(Step::Sweeping)) {
            return Some(wait(Waiting::Sweeping, SOON));
        }
        self.let_worker_wait(index, Waiter { call, wants: Wants::Grant }, out);
        self.settle_worker(now, WorkerId(index), out);
        None
    }

    /// Adds what a worker has refused since its last call to the slice that it is in. Whatever the worker
    /// tells, the sum ends at the largest number.
    fn count_late(&mut self, index: u16, late: u64) {
        let Some(worker) = self.workers.get_mut(index) else { return };
        let before = core::mem::replace(&mut worker.refused_late, late);
        let slice = usize::from(worker.row.slice.0);
        if let Some(slice) = self.slices.get_mut(slice) {
            slice.late_at_worker = slice.late_at_worker.saturating_add(late.saturating_sub(before));
        }
    }

    fn contest_worker(&mut self, now: Nanos, index: u16, hello: &WorkerHello) -> Answer {
        let lease = self.plan.lease;
        if let Some(answer) = self.unreachable() {
            return answer;
        }
        let Some(worker) = self.workers.get_mut(index) else { return wait(Waiting::Leaving, SOON) };
        if worker.fate != Fate::Stays {
            return wait(Waiting::Leaving, SOON);
        }
        match worker.registration.contest(hello.life, now, lease) {
            NameConflict::Wait => wait(Waiting::NameHeld, self.plan.renew_every),
            NameConflict::GiveUp => Answer::Refused { why: Refusal::NameHeld { name: hello.name.clone() } },
        }
    }

    fn join_worker(
        &mut self,
        now: Nanos,
        call: CallId,
        hello: WorkerHello,
        out: &mut Vec<Action>,
    ) -> Option<Answer> {
        let labels = match self.labels(&hello.labels) {
            Ok(labels) => labels,
            Err(why) => return Some(Answer::Refused { why }),
        };
        let (index, slice) = match self.admit(&hello, labels) {
            Ok(place) => place,
            Err(answer) => return Some(answer),
        };
        let key = self.new_key(Key(0));
        let (at, life, workers) = (hello.at, hello.life, hello.workers);
        let row = WorkerRow { key, at, slice, life, workers, ..WorkerRow::default() };
        self.workers.seat(index, Worker::joining(now, hello, labels, row));
        self.lease_started(now + self.plan.lease);
        self.let_worker_wait(index, Waiter { call, wants: Wants::Grant }, out);
        self.settle_worker(now, WorkerId(index), out);
        None
    }

    /// The index and slice of a new worker, or the answer if it cannot join.
    fn admit(&self, hello: &WorkerHello, labels: Labels) -> Result<(u16, SliceId), Answer> {
        if let Some(answer) = self.unreachable() {
            return Err(answer);
        }
        let slice = self.slice_for(hello, labels).map_err(|why| Answer::Refused { why })?;
        self.check_former(&hello.types, labels, slice)?;
        self.check_serving(slice)?;
        self.check_ring(&hello.name, &hello.server, slice).map_err(|why| Answer::Refused { why })?;
        if self.nameless_worker(|w| w.fate == Fate::Stays).is_some() {
            return Err(wait(Waiting::NamesUnknown, self.plan.renew_every));
        }
        self.check_room(slice)?;
        let swept = |i: u16| {
            let newest = self.generations[usize::from(i)];
            newest < GENERATION_MAX && !self.is_unswept(WorkerId(i), newest)
        };
        if let Some(index) = self.workers.vacant(swept) {
            return Ok((index, slice));
        }
        let leaving = self.workers.iter().any(|(_, w)| w.fate != Fate::Stays);
        if leaving || self.workers.vacant(|_| true).is_some() {
            return Err(wait(Waiting::Sweeping, SOON));
        }
        Err(Answer::Refused { why: Refusal::TableFull { limit: self.workers.len() } })
    }

    fn admit_move(&self, name: &str, slice: &str) -> Result<(u16, SliceId), Answer> {
        if let Some(answer) = self.unreachable() {
            return Err(answer);
        }
        let slice = self.slice_called(slice).map_err(|why| Answer::Refused { why })?;
        let index = self.workers.by_name(name);
        let held = |i| Some((i, self.workers.get(i).filter(|w| w.fate == Fate::Stays)?));
        let Some((index, worker)) = index.and_then(held) else {
            if self.nameless_worker(|_| true).is_some() {
                return Err(wait(Waiting::NamesUnknown, self.plan.renew_every));
            }
            return Err(Answer::Refused { why: Refusal::UnknownWorker { name: name.to_string() } });
        };
        self.check_served(name, &worker.types, worker.labels, slice)
            .map_err(|why| Answer::Refused { why })?;
        self.check_ring(name, &worker.server, slice).map_err(|why| Answer::Refused { why })?;
        if worker.slice != slice {
            self.check_former(&worker.types, worker.labels, slice)?;
            self.check_serving(slice)?;
            self.check_not_last(index).map_err(|why| Answer::Refused { why })?;
        }
        if !worker.needs_room_in(slice) {
            self.check_room(slice)?;
        }
        Ok((index, slice))
    }

    fn let_worker_wait(&mut self, index: u16, waiter: Waiter, out: &mut Vec<Action>) {
        let Some(worker) = self.workers.get_mut(index) else { return };
        if let Some(oldest) = worker.registration.wait(waiter) {
            out.push(too_many(oldest.call));
        }
    }

    fn worker_grant(&self, id: WorkerId, worker: &Worker) -> WorkerGrant {
        let registration = WorkerRegistration {
            worker: id,
            key: worker.row.key,
            epoch: self.epoch(),
            generation: worker.row.generation,
            slice: worker.row.slice,
            quota: worker.quota,
            feed: self.shape.map_or_else(Feed::default, |shape| shape.feed),
            start: self.plan.counters_start,
            switch: self.plan.switch,
            below_spines: self.plan.tier == Tier::Leaf,
        };
        WorkerGrant {
            registration,
            ring: self.ring_of(&worker.server, worker.row.slice),
            final_sent: worker.final_sent,
            retry_horizon: self.plan.retry_horizon(),
            transit: self.plan.transit(),
            lease: self.plan.lease,
            renew_every: self.plan.renew_every,
        }
    }
}

fn check_hello(hello: &WorkerHello, most: u8) -> Result<(), Refusal> {
    check_name(&hello.name)?;
    if !hello.server.is_empty() {
        check_name(&hello.server)?;
    }
    if !(1..=most).contains(&hello.quota) {
        return Err(Refusal::BadQuota { most, quota: hello.quota });
    }
    if hello.types.len() > WORKER_TYPES_MAX {
        return Err(Refusal::TooManyTypes);
    }
    Ok(())
}

/// Checks that a worker registers below a rack's switch, and a leaf below a spine.
pub(crate) fn check_tier(tier: Tier, hello: &WorkerHello) -> Result<(), Refusal> {
    let name = || hello.name.clone();
    match (tier, hello.workers) {
        (Tier::Spine, 0) => Err(Refusal::NoLeaf { name: name() }),
        (Tier::Spine, _) | (Tier::Rack | Tier::Leaf, 0) => Ok(()),
        (Tier::Rack | Tier::Leaf, workers) => Err(Refusal::NoSpine { name: name(), workers }),
    }
}
