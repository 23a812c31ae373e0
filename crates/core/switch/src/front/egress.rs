//! What leaves the switch.

use sluice_wire::tables::WorkerRow;
use sluice_wire::{
    Answer, Counters, Dispatch, Empty, Endpoint, Epoch, Nanos, Nonce, Notice, Packet, Payload, Place, Reject,
    RejectReason, Reply, Serial, Submit, WorkerId,
};

use super::{Front, Granted, Queued};
use crate::pipeline::Pass;
use crate::program::Verdict;
use crate::refusal::Refusal;

/// The address of a host that is no longer there.
static NOWHERE: Endpoint = Endpoint { ip: [0; 16], port: 0 };

impl Front {
    /// The task goes to the worker whole, as its client submitted it.
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

    /// The task goes to the worker, with its counters and what the queue was like (INT); its bytes are there.
    #[inline(always)]
    pub(crate) fn dispatch_from(
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
        let packet = Packet::Dispatch(Dispatch {
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
            occupancy: queued.occupancy,
            age: submit.age.plus(queued.wait),
            payload: Payload::EMPTY,
            place,
        });
        let mut verdict = Verdict::Send { to, packet };
        // Afterwards, so that it is copied to where it belongs as it was written.
        if let Verdict::Send { packet: Packet::Dispatch(dispatch), .. } = &mut verdict {
            dispatch.payload = submit.payload;
        }
        verdict
    }

    /// The task goes to a worker of the slice that was not asked for a token, or whose token was counted
    /// only.
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

    /// Nothing waits for this token: it is spent, and its number with it.
    pub(crate) fn send_empty(&mut self, pass: &mut Pass, granted: Granted) -> Verdict {
        let to = self.tables.worker(granted.worker).map_or(NOWHERE, |row| row.at);
        let (sent, seen) = self.number(pass, granted);
        let Granted { worker, generation, .. } = granted;
        let empty = Empty { epoch: self.config.epoch, worker, generation, sent, seen };
        Verdict::Send { to, packet: Packet::Empty(empty) }
    }

    /// The client hears that its task was not taken.
    pub(crate) fn reject(&self, submit: &Submit, reason: RejectReason) -> Verdict {
        self.turn_away(submit, reason, None)
    }

    /// The same, through the spine that the task came from if this leaf does not know the client. Apart, so
    /// that tasks that are taken do not pay for it.
    #[inline(never)]
    pub(crate) fn turn_away(
        &self,
        submit: &Submit,
        reason: RejectReason,
        spine: Option<Endpoint>,
    ) -> Verdict {
        match self.submitter(submit, spine) {
            Some(to) => Verdict::Send { to, packet: self.refusal_of(submit, reason) },
            None => Verdict::Drop(Refusal::UnknownSource),
        }
    }

    /// Where a task's client is told of it.
    fn submitter(&self, submit: &Submit, spine: Option<Endpoint>) -> Option<Endpoint> {
        let pool = self.tables.slice_of(submit).map(|(pool, _)| pool);
        let above = || spine.as_ref().or_else(|| self.tables.above(pool?));
        self.tables.towards(submit.client, above).copied()
    }

    /// A REPLY goes on. A client of spines knows its spine's life and nothing of leaves', so that it names
    /// none below them.
    #[inline]
    pub(crate) fn hand_on(&self, to: Endpoint, reply: &Reply) -> Verdict {
        let mut verdict = Verdict::Send { to, packet: Packet::Reply(Reply::default()) };
        // Afterwards, so that it is copied to where it belongs, and whole.
        if let Verdict::Send { packet: Packet::Reply(told), .. } = &mut verdict {
            *told = *reply;
            if self.below_spines {
                told.epoch = Epoch(0);
            }
        }
        verdict
    }

    /// A task that waited is not taken after all; its client may be gone.
    pub(crate) fn sweep_out(&self, submit: &Submit) -> Verdict {
        Verdict::Swept {
            to: self.submitter(submit, None).unwrap_or_default(),
            packet: self.refusal_of(submit, RejectReason::NoWorkers),
            payload: submit.payload.handle,
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

    /// The next number of what is sent to a worker, and how many of its tokens were granted.
    #[inline(always)]
    fn number(&mut self, pass: &mut Pass, granted: Granted) -> (Serial, Serial) {
        let worker = granted.worker.0 as usize;
        let sent = self.memory.sent.update(pass, worker, |sent| sent.wrapping_add(1)).wrapping_add(1);
        let fresh = granted.seen;
        let seen_out = self.memory.seen_out.update(pass, worker, |seen| fresh.unwrap_or(seen));
        (Serial(sent), Serial(fresh.unwrap_or(seen_out)))
    }

    pub(crate) fn refusal_of(&self, submit: &Submit, reason: RejectReason) -> Packet {
        let retry_after = self.tables.slice_of(submit).map_or(Nanos::default(), |(_, row)| row.retry_after);
        Packet::Reject(Reject {
            epoch: if self.below_spines { submit.epoch } else { self.config.epoch },
            client: submit.client,
            task: submit.task,
            attempt: submit.attempt,
            task_type: submit.task_type,
            reason,
            behind: 0,
            retry_after_ns: retry_after.saturated(),
        })
    }
}
