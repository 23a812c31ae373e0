//! The packets that leave the switch.

use sluice_wire::tables::WorkerRow;
use sluice_wire::{
    Answer, Counters, Dispatch, Empty, Endpoint, Epoch, Nanos, Nonce, Notice, Packet, Place, Reject,
    RejectReason, Reply, Serial, SliceId, SliceLoad, Submit, WorkerId,
};

use super::{Front, Granted, Queued};
use crate::entry::WaitingTask;
use crate::pipeline::Pass;
use crate::program::Verdict;
use crate::refusal::Refusal;

/// The address of a host that is no longer registered.
static NOWHERE: Endpoint = Endpoint { ip: [0; 16], port: 0 };

impl Front {
    /// Sends the task to the worker whole, as its client submitted it.
    #[inline(always)]
    pub(crate) fn dispatch(
        &mut self,
        pass: &mut Pass,
        submit: &Submit,
        granted: Granted,
        queued: Queued,
    ) -> Verdict {
        self.dispatch_from(pass, submit, Place::Here, granted, queued)
    }

    /// The task of an entry, as its client submitted it. The upper half of its incarnation is that of the
    /// client's row: zero if the client has left, another client's if its index was given away. Whoever
    /// still waits for the task is registered. A rack below spines has no rows of clients, and a column for
    /// that half.
    #[inline(always)]
    pub(crate) fn whole(&self, task: &WaitingTask) -> Submit {
        let high = if self.below_spines {
            task.incarnation_high()
        } else {
            self.tables.client(task.client()).map_or(0, |row| row.incarnation.high())
        };
        task.submit(high)
    }

    /// Sends a task that has waited to the worker.
    #[inline(always)]
    pub(crate) fn dispatch_waiting(
        &mut self,
        pass: &mut Pass,
        task: &WaitingTask,
        place: Place,
        granted: Granted,
        queued: Queued,
    ) -> Verdict {
        let submit = self.whole(task);
        self.dispatch_from(pass, &submit, place, granted, queued)
    }

    /// Sends the task to the worker, with the worker's counters and the state of the queue (in-band
    /// telemetry). `place` says where the task's bytes are.
    #[inline(always)]
    fn dispatch_from(
        &mut self,
        pass: &mut Pass,
        submit: &Submit,
        place: Place,
        granted: Granted,
        queued: Queued,
    ) -> Verdict {
        let to = self.tables.worker(granted.worker).map(|row| &row.at);
        let to = *to.unwrap_or(&NOWHERE);
        let (sent, seen) = self.number(pass, granted);
        let client_at = self.tables.client(submit.client).map(|row| &row.at);
        let dispatch = Dispatch {
            epoch: self.config.epoch,
            worker: granted.worker,
            generation: granted.generation,
            sent,
            seen,
            client: submit.client,
            client_at: *client_at.unwrap_or(&NOWHERE),
            task: submit.task,
            attempt: submit.attempt,
            task_type: submit.task_type,
            priority: submit.priority,
            constraints: submit.constraints,
            wait_ns: queued.wait.saturated(),
            occupancy: if queued.occupancy < u16::MAX.into() { queued.occupancy as u16 } else { u16::MAX },
            budget: submit.budget.after(queued.wait),
            age: submit.age.plus(queued.wait),
            payload: submit.payload,
            place,
        };
        // The packet has no name of its own: it would be written, and copied from there.
        Verdict::Send { to, packet: Packet::Dispatch(dispatch) }
    }

    /// Sends the task to a worker of the slice that did not send a token, or whose token was only counted.
    #[inline]
    pub(crate) fn push(
        &mut self,
        pass: &mut Pass,
        submit: &Submit,
        worker: WorkerId,
        queued: Queued,
    ) -> Verdict {
        let Some(generation) = self.tables.worker(worker).map(|row| row.generation) else {
            return self.reject(submit, RejectReason::NoWorkers);
        };
        self.dispatch(pass, submit, Granted { worker, generation, seen: None }, queued)
    }

    /// Answers a token for which no task waits: the token is spent.
    pub(crate) fn send_empty(&mut self, pass: &mut Pass, granted: Granted) -> Verdict {
        let to = self.tables.worker(granted.worker).map_or(NOWHERE, |row| row.at);
        let (sent, seen) = self.number(pass, granted);
        let Granted { worker, generation, .. } = granted;
        let empty = Empty { epoch: self.config.epoch, worker, generation, sent, seen };
        Verdict::Send { to, packet: Packet::Empty(empty) }
    }

    /// Counts a poll as answered whose pass sends another packet. Its worker hears of the number that it
    /// misses when it asks for its counters, writes the number off, and polls again.
    pub(crate) fn leave_unanswered(&mut self, pass: &mut Pass, granted: Granted) {
        self.number(pass, granted);
    }

    /// Tells the client that its task was not taken.
    pub(crate) fn reject(&self, submit: &Submit, reason: RejectReason) -> Verdict {
        self.turn_away(submit, reason, None)
    }

    /// Tells the client that its task would wait for longer than the slice's target, and what clients share.
    #[cold]
    #[inline(never)]
    pub(crate) fn reject_busy(&self, submit: &Submit, room: u32, target: Nanos) -> Verdict {
        let (retry_after_ns, load) =
            (target.saturated(), SliceLoad { room, clients: self.tables.registered });
        match self.turn_away(submit, RejectReason::Busy, None) {
            Verdict::Send { to, packet: Packet::Reject(reject) } => {
                Verdict::Send { to, packet: Packet::Reject(Reject { retry_after_ns, load, ..reject }) }
            }
            unsent => unsent,
        }
    }

    /// Rejects a task. If this leaf does not know the client, the REJECT goes through the spine that the
    /// task came from. Kept apart from [`Self::reject`], so that tasks which are taken do not pay for it.
    #[inline(never)]
    pub(crate) fn turn_away(
        &self,
        submit: &Submit,
        reason: RejectReason,
        spine: Option<Endpoint>,
    ) -> Verdict {
        match self.submitter(submit, spine) {
            Some(to) => Verdict::Send { to, packet: Packet::Reject(self.refusal_of(submit, reason)) },
            None => Verdict::Drop(Refusal::UnknownSource),
        }
    }

    /// The address to which packets about a task go: its client's, or that of the spine it came from.
    fn submitter(&self, submit: &Submit, spine: Option<Endpoint>) -> Option<Endpoint> {
        let pool = self.tables.slice_of(submit).map(|(pool, _)| pool);
        let above = || spine.as_ref().or_else(|| self.tables.above(pool?));
        self.tables.towards(submit.client, above).copied()
    }

    /// Passes a REPLY on. A client of a spine knows the epoch of the spine and not the epochs of leaves, so
    /// the REPLY to such a client names none.
    #[inline]
    pub(crate) fn hand_on(&self, to: Endpoint, reply: &Reply) -> Verdict {
        let mut verdict = Verdict::Send { to, packet: Packet::Reply(Reply::default()) };
        // The reply is written last, so that the compiler copies it straight to its place, and whole.
        if let Verdict::Send { packet: Packet::Reply(told), .. } = &mut verdict {
            *told = *reply;
            if self.below_spines {
                told.epoch = Epoch(0);
            }
        }
        verdict
    }

    /// A sweep takes out a task that waited. Its client may no longer be registered.
    pub(crate) fn sweep_out(&self, submit: &Submit) -> Verdict {
        Verdict::Swept {
            to: self.submitter(submit, None).unwrap_or_default(),
            packet: Packet::Reject(self.refusal_of(submit, RejectReason::NoWorkers)),
            payload: submit.payload.handle,
        }
    }

    /// Tells the client that its task has nothing left of its budget.
    #[cold]
    #[inline(never)]
    pub(crate) fn reject_late(&mut self, submit: &Submit) -> Verdict {
        if let Some(slice) = self.tables.slice_of(submit).map(|(slice, _)| slice) {
            self.refused_late[usize::from(slice.0)] += 1;
        }
        self.reject(submit, RejectReason::Late)
    }

    /// A token takes a task of the slice whose budget is spent: refuses the task, and recirculates the token
    /// with this memo. The client may no longer be registered.
    pub(crate) fn late(&mut self, slice: SliceId, task: &WaitingTask, token: u64) -> Verdict {
        self.refused_late[usize::from(slice.0)] += 1;
        let submit = self.whole(task);
        Verdict::Late {
            to: self.submitter(&submit, None).unwrap_or_default(),
            reject: self.refusal_of(&submit, RejectReason::Late),
            payload: submit.payload.handle,
            token,
        }
    }

    pub(super) fn send_answer(
        &self,
        row: &WorkerRow,
        worker: WorkerId,
        nonce: Nonce,
        counters: Option<Counters>,
    ) -> Verdict {
        let answer = Answer { epoch: self.config.epoch, worker, generation: row.generation, nonce, counters };
        Verdict::Send { to: row.at, packet: Packet::Answer(answer) }
    }

    pub(super) fn notice(&self, submit: &Submit) -> Notice {
        Notice { epoch: self.config.epoch, client: submit.client, task: submit.task, attempt: submit.attempt }
    }

    /// Returns the number of the next packet to a worker, and how many tokens of the worker were granted.
    #[inline(always)]
    fn number(&mut self, pass: &mut Pass, granted: Granted) -> (Serial, Serial) {
        let worker = granted.worker.0 as usize;
        let sent = self.memory.sent.update(pass, worker, |sent| sent.wrapping_add(1)).wrapping_add(1);
        let fresh = granted.seen;
        let seen_out = self.memory.seen_out.update(pass, worker, |seen| fresh.unwrap_or(seen));
        (Serial(sent), Serial(fresh.unwrap_or(seen_out)))
    }

    pub(crate) fn refusal_of(&self, submit: &Submit, reason: RejectReason) -> Reject {
        let retry_after = self.tables.slice_of(submit).map_or(Nanos::default(), |(_, row)| row.retry_after);
        Reject {
            epoch: if self.below_spines { submit.epoch } else { self.config.epoch },
            client: submit.client,
            task: submit.task,
            attempt: submit.attempt,
            task_type: submit.task_type,
            reason,
            behind: 0,
            retry_after_ns: retry_after.saturated(),
            load: SliceLoad::default(),
        }
    }
}
