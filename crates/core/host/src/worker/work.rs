//! The tasks that a worker holds or has finished. Allocated with its first task.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sluice_wire::{
    Attempt, Budget, ClientId, Dispatch, Endpoint, Epoch, Handle, Nanos, Need, Payload, Reply, ReplyStatus,
    TaskId, TaskType, WorkerId,
};

use super::estimate::EndEstimate;
use super::finished::{Finished, KeptReply};
use super::types::{Action, WorkerSettings};
use crate::agent::Sample;
use crate::parts::Parts;

/// Where a task's reply goes: the sender of its newest attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) client: ClientId,
    pub(super) at: Endpoint,
    pub(super) attempt: Attempt,
}

impl Asker {
    const fn of(dispatch: &Dispatch) -> Self {
        Self { client: dispatch.client, at: dispatch.client_at, attempt: dispatch.attempt }
    }
}

/// A task that waits or runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) task: TaskId,
    task_type: TaskType,
    pub(super) payload: Payload,
    /// Whether all of the task's bytes are here; if not, it does not run.
    pub(super) is_whole: bool,
    /// The run that the task is in; 0 if it does not run.
    slot: u64,
    pub(super) asker: Asker,
    received: Nanos,
    /// What was left of the task's budget when it came.
    budget: Budget,
    switch_wait_ns: u32,
    occupancy: u16,
}

/// The missing bytes of a held task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) task: TaskId,
    pub(super) parts: Parts,
}

/// The sender of replies: this worker, and the newest epoch of the switch that it knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) worker: WorkerId,
    pub(super) epoch: Epoch,
    /// Whether replies go through the switch.
    pub(super) reports: bool,
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunEnd {
    pub(super) started: Nanos,
    pub(super) status: ReplyStatus,
    pub(super) payload: Payload,
}

/// Counts since the worker started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkCounts {
    pub(super) finished: u64,
    pub(super) duplicates: u64,
    pub(super) repeated_tasks: u64,
    pub(super) replies_gone: u64,
    pub(super) too_old: u64,
    pub(super) late: u64,
    pub(super) over_budget: u64,
    pub(super) fetches: u64,
    pub(super) fetches_failed: u64,
    pub(super) needs: u64,
}

/// The held and finished tasks. The first `running` tasks in `held` run.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) held: VecDeque<Held>,
    /// The missing bytes of held tasks.
    pub(super) fetches: Vec<Fetch>,
    finished: Finished,
    /// The number of the run that started last.
    slot: u64,
    running: usize,
    pub(super) counts: WorkCounts,
    pub(super) early: EndEstimate,
}

impl Work {
    /// How many tasks are held, including the running ones.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// How many held tasks run.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    /// The finished tasks.
    pub(super) const fn finished(&self) -> &Finished {
        &self.finished
    }

    /// The type of the task in run `slot`, if there is such a run.
    pub(super) fn running_type(&self, slot: u64) -> Option<TaskType> {
        self.place_of(slot).map(|place| self.held[place].task_type)
    }

    /// The waits of the first running task, and its service time if it ends now.
    pub(super) fn sample(&self, now: Nanos, started: Nanos) -> Option<Sample> {
        let held = self.held.front().filter(|_| self.running > 0)?;
        Some(Sample {
            switch_wait: Nanos(held.switch_wait_ns.into()),
            occupancy: held.occupancy.into(),
            worker_wait: started.since(held.received),
            service: now.since(started),
        })
    }

    /// How long the task in run `slot` waited at this worker before its service began.
    pub(super) fn waited(&self, slot: u64, started: Nanos) -> Nanos {
        self.place_of(slot).map_or(Nanos(0), |place| started.since(self.held[place].received))
    }

    /// Whether a task is held or has been finished.
    pub(super) fn knows(&self, task: TaskId) -> bool {
        let kept = task.kept();
        self.held.iter().any(|held| held.task.kept() == kept) || self.finished.find(task).is_some()
    }

    /// Drops tasks that finished longer ago than the retry horizon.
    pub(super) fn evict(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        self.finished.evict(now, settings, out);
    }

    /// Answers a repeat of a task that has ended, or notes the newest attempt of a held one. Returns
    /// whether the task was known.
    pub(super) fn repeat(&mut self, dispatch: &Dispatch, sender: Sender, out: &mut Vec<Action>) -> bool {
        let asker = Asker::of(dispatch);
        let kept = dispatch.task.kept();
        if let Some(held) = self.held.iter_mut().find(|held| held.task.kept() == kept) {
            // A held task that came with another incarnation answers under that one.
            if asker.attempt > held.asker.attempt && held.task == dispatch.task {
                held.asker = asker;
            }
        } else if let Some(kept) = self.finished.find(dispatch.task) {
            self.counts.replies_gone += u64::from(kept.status == ReplyStatus::Gone);
            let load = self.held.len();
            reply(sender, load, dispatch.task, dispatch.task_type, asker, &kept, out);
        } else {
            return false;
        }
        self.counts.repeated_tasks += 1;
        true
    }

    /// A client asks for bytes of a reply: sends them if the reply is kept; otherwise answers that it is
    /// gone.
    pub(super) fn need(&mut self, need: &Need, sender: Sender, out: &mut Vec<Action>) {
        let Some(kept) = self.finished.find(need.task) else { return };
        self.counts.needs += 1;
        if kept.payload.handle != Handle::NONE {
            out.push(Action::Parts { need: *need, payload: kept.payload });
        } else if kept.status == ReplyStatus::Gone {
            let asker = Asker { client: need.client, at: need.asker_at, attempt: need.attempt };
            self.counts.replies_gone += 1;
            reply(sender, self.held.len(), need.task, TaskType::default(), asker, &kept, out);
        }
    }

    /// Whether a task may have been finished here and forgotten since.
    pub(super) fn may_have_forgotten(
        &self,
        received: Nanos,
        settings: &WorkerSettings,
        dispatch: &Dispatch,
    ) -> bool {
        let oldest = dispatch.age.span().map(|age| received - (age + settings.transit));
        !self.finished.knows_all_since(oldest.unwrap_or_default())
    }

    /// Refuses a task that may have been finished here and forgotten since. Returns whether it did.
    pub(super) fn too_old(
        &mut self,
        received: Nanos,
        settings: &WorkerSettings,
        dispatch: &Dispatch,
        sender: Sender,
        out: &mut Vec<Action>,
    ) -> bool {
        if !self.may_have_forgotten(received, settings, dispatch) {
            return false;
        }
        self.counts.too_old += 1;
        let old = KeptReply { status: ReplyStatus::Old, ..KeptReply::GONE };
        let asker = Asker::of(dispatch);
        reply(sender, self.held.len(), dispatch.task, dispatch.task_type, asker, &old, out);
        true
    }

    /// Holds a task that was never here, and notes its missing bytes.
    #[inline]
    pub(super) fn hold(&mut self, received: Nanos, dispatch: &Dispatch, missing: Option<Parts>) {
        if let Some(parts) = missing {
            self.counts.fetches += 1;
            self.fetches.push(Fetch { task: dispatch.task, parts });
        }
        self.held.push_back(Held {
            task: dispatch.task,
            task_type: dispatch.task_type,
            payload: dispatch.payload,
            is_whole: missing.is_none(),
            slot: 0,
            asker: Asker::of(dispatch),
            received,
            budget: dispatch.budget,
            switch_wait_ns: dispatch.wait_ns,
            occupancy: dispatch.occupancy,
        });
    }

    /// Starts the first complete tasks, up to the number that may run at once. Refuses tasks whose budget
    /// is spent instead, and returns whether it refused any.
    #[expect(clippy::inline_always, reason = "each task pays for a call that stays one")]
    #[inline(always)]
    pub(super) fn run_next(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        sender: Sender,
        out: &mut Vec<Action>,
    ) -> bool {
        let mut has_refused = false;
        while self.running < settings.at_once {
            if !self.fetches.is_empty() {
                self.bring_whole_forward();
            }
            let Some(next) = self.held.get_mut(self.running).filter(|next| next.is_whole) else { break };
            if !next.budget.is_none() && next.budget.after(now.since(next.received)).is_spent() {
                has_refused = true;
                self.refuse_next(now, settings, sender, out);
                continue;
            }
            self.running += 1;
            self.slot += 1;
            next.slot = self.slot;
            let (task, task_type) = (next.task, next.task_type);
            let Payload { len, inline, handle } = next.payload;
            let payload = Payload { len, inline, handle };
            out.push(Action::Run { slot: self.slot, task, task_type, payload });
        }
        has_refused
    }

    /// Refuses the next task: its budget is spent. The task is kept as one that has ended, so that no copy
    /// of its DISPATCH runs it here after its client was told.
    #[cold]
    fn refuse_next(&mut self, now: Nanos, settings: &WorkerSettings, sender: Sender, out: &mut Vec<Action>) {
        let Some(held) = self.held.remove(self.running) else { return };
        self.counts.over_budget += 1;
        let kept = KeptReply {
            status: ReplyStatus::Late,
            switch_wait_ns: held.switch_wait_ns,
            worker_wait_ns: now.since(held.received).saturated(),
            ..KeptReply::GONE
        };
        reply(sender, self.held.len(), held.task, held.task_type, held.asker, &kept, out);
        if settings.repeats {
            self.finished.add(now, settings, held.task, kept, out);
        }
        if held.payload.handle != Handle::NONE {
            out.push(Action::Release(held.payload.handle));
        }
    }

    #[cold]
    fn bring_whole_forward(&mut self) {
        let waiting = self.running..self.held.len();
        let whole = waiting.into_iter().find(|index| self.held[*index].is_whole);
        if let Some(whole) = whole.and_then(|index| self.held.remove(index)) {
            self.held.insert(self.running, whole);
        }
    }

    /// The index in `held` of the task in run `slot`.
    #[inline]
    fn place_of(&self, slot: u64) -> Option<usize> {
        // The common case: one task runs.
        if self.running > 0 && self.held.front().is_some_and(|first| first.slot == slot) {
            return Some(0);
        }
        self.held.iter().take(self.running).position(|held| held.slot == slot)
    }

    /// Ends a run: replies, keeps the reply, and gives the task's handle back. `None` if there is no such
    /// run.
    #[inline]
    pub(super) fn end(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        slot: u64,
        sender: Sender,
        end: RunEnd,
        out: &mut Vec<Action>,
    ) -> Option<Handle> {
        let place = self.place_of(slot)?;
        let held = self.held.get(place)?;
        self.running -= 1;
        self.counts.finished += 1;
        self.early.ended(held.task_type, now.since(end.started));
        let kept = KeptReply {
            status: end.status,
            switch_wait_ns: held.switch_wait_ns,
            worker_wait_ns: end.started.since(held.received).saturated(),
            service_ns: now.since(end.started).saturated(),
            payload: end.payload,
        };
        let (task, handle) = (held.task, held.payload.handle);
        // Reads the task in place instead of moving it: it is large.
        reply(sender, self.held.len() - 1, task, held.task_type, held.asker, &kept, out);
        self.let_go(place);
        if settings.repeats {
            self.finished.add(now, settings, task, kept, out);
        } else if kept.payload.handle != Handle::NONE {
            out.push(Action::Forget(kept.payload.handle));
        }
        Some(handle)
    }

    /// Removes a held task.
    #[inline]
    fn let_go(&mut self, place: usize) {
        if place == 0 {
            self.held.pop_front();
        } else {
            self.held.remove(place);
        }
    }
}

/// Builds the reply in place, in either list: it is the worker's largest action.
#[inline]
fn reply(
    sender: Sender,
    load: usize,
    task: TaskId,
    task_type: TaskType,
    asker: Asker,
    kept: &KeptReply,
    out: &mut Vec<Action>,
) {
    let packet = || Reply {
        epoch: sender.epoch,
        worker: sender.worker,
        client: asker.client,
        task,
        attempt: asker.attempt,
        task_type,
        status: kept.status,
        switch_wait_ns: kept.switch_wait_ns,
        worker_wait_ns: kept.worker_wait_ns,
        service_ns: kept.service_ns,
        load: load as u32,
        worker_at: Endpoint::default(),
        payload: kept.payload,
    };
    if sender.reports {
        out.push(Action::Report(packet()));
    } else {
        out.push(Action::Reply { to: asker.at, packet: packet() });
    }
}
