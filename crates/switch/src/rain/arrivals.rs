//! What each packet does on its pass, stage by stage.

use sluice_wire::tables::{SliceRow, WorkerRow};
use sluice_wire::{
    Answer, ClientId, Counters, Dispatch, Endpoint, Epoch, Generation, Key, Nanos, Notice, Packet, Payload,
    Probe, Reject, RejectReason, Serial, SliceId, Submit, Sweep, SweepOf, Token, WorkerId,
};

use super::count::Refusal;
use super::memory::{ParkedToken, Tables, WaitingTask, replay_word};
use super::{Arrival, ROUNDS_MAX, Rain, TOKENS_AHEAD_MAX, Verdict};
use crate::pipeline::Pass;

/// The address of a client that is no longer there.
static NOWHERE: Endpoint = Endpoint { ip: [0; 16], port: 0 };

impl Rain {
    #[inline]
    pub(super) fn arrive(&mut self, now: Nanos, arrival: Arrival) -> Verdict {
        let pass = &mut Pass::begin("rain");
        match arrival {
            Arrival::Wire { from, packet: Packet::Token(token), .. } => self.token(pass, now, from, &token),
            Arrival::Wire { from, packet: Packet::Submit(submit), room } => {
                self.submit(pass, now, from, &submit, room)
            }
            Arrival::Wire { from, packet: Packet::Probe(probe), .. } => self.probe(pass, from, &probe),
            Arrival::Round { packet: Packet::Submit(submit), round, arrived } => {
                self.task_again(pass, now, &submit, round, arrived)
            }
            Arrival::Round { packet: Packet::Sweep(sweep), .. } | Arrival::Control(Packet::Sweep(sweep)) => {
                self.sweep(pass, now, sweep)
            }
            _ => Verdict::Drop(Refusal::Unexpected),
        }
    }

    /// A worker is ready for one more task (Rain §3.2.1).
    #[inline]
    fn token(&mut self, pass: &mut Pass, now: Nanos, from: Endpoint, token: &Token) -> Verdict {
        let row = match self.tables.admit_worker(from, token.worker, token.key) {
            Ok(row) => row,
            Err(refusal) => return Verdict::Drop(refusal),
        };
        if let Some(stale) = self.out_of_date(row, token.epoch, token.generation) {
            self.refusals.add(stale);
            let row = *row;
            return self.answer(pass, &row, token.worker, token.nonce);
        }
        // One token a packet, however many were lost before it: the worker repeats until all are granted.
        let is_new = |seen: u32| token.issued.0.wrapping_sub(seen).wrapping_sub(1) < TOKENS_AHEAD_MAX;
        let worker = token.worker.0 as usize;
        let seen = self.memory.seen.branch(pass, worker, is_new, |seen| seen.wrapping_add(1), |seen| seen);
        if !is_new(seen) {
            let behind = token.issued.since(Serial(seen)) <= 0;
            self.refusals.add(if behind { Refusal::RepeatedToken } else { Refusal::ImpossibleCounter });
            let sent = self.memory.sent.read(pass, worker);
            let counters = Counters { seen: Serial(seen), sent: Serial(sent) };
            return self.send_answer(row, token.worker, token.nonce, Some(counters));
        }
        let (at, slice) = (row.at, row.slice);
        let granted =
            Granted { worker: token.worker, generation: token.generation, seen: Some(seen.wrapping_add(1)) };
        self.park_or_dispatch(pass, now, at, slice, granted)
    }

    /// A granted token meets a waiting task, or parks.
    #[inline]
    fn park_or_dispatch(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        worker_at: Endpoint,
        slice: SliceId,
        granted: Granted,
    ) -> Verdict {
        let s = slice.0 as usize;
        let cap = self.config.tokens_per_slice;
        let balance = self.memory.balance.branch(pass, s, |b| b < cap as i32, |b| b + 1, |b| b);
        if balance >= cap as i32 {
            debug_assert!(false, "rain: slice {slice} was given more tokens than its ring holds");
            return Verdict::Drop(Refusal::TokenRingFull);
        }
        if balance >= 0 {
            let ticket = self.memory.token_tail.update(pass, s, |tail| tail.wrapping_add(1));
            let token = ParkedToken { worker: granted.worker, generation: granted.generation };
            self.memory.tokens.write(pass, cell(slice, ticket, cap), token);
            if let Some(seen) = granted.seen {
                self.memory.seen_out.write(pass, granted.worker.0 as usize, seen);
            }
            return Verdict::Parked;
        }
        let ticket = self.memory.task_head.update(pass, s, |head| head.wrapping_add(1));
        let task = self.memory.tasks.read(pass, cell(slice, ticket, self.config.tasks_per_slice));
        let queued = Queued { wait: task.waited(now), occupancy: balance.unsigned_abs() - 1 };
        self.dispatch(pass, &task.submit(), granted, worker_at, queued)
    }

    /// A client's task comes for the first time.
    #[inline]
    fn submit(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        from: Endpoint,
        submit: &Submit,
        room: bool,
    ) -> Verdict {
        if let Err(refusal) = self.tables.admit_client(from, submit.client, submit.key) {
            return Verdict::Drop(refusal);
        }
        if submit.epoch != self.config.epoch {
            self.refusals.add(Refusal::WrongEpoch);
            return Verdict::Send { to: from, packet: Packet::Notice(self.notice(submit)) };
        }
        let cells = self.config.replay_cells;
        let residue = submit.task.sequence.0 & (cells - 1);
        let cell = submit.client.0 as usize * cells as usize + residue as usize;
        let word = replay_word(submit.task.sequence, submit.attempt);
        let is_newer = |held: u64| (word.wrapping_sub(held) as i64) > 0;
        let held = self.memory.replay.branch(pass, cell, is_newer, |_| word, |held| held);
        if !is_newer(held) {
            return Verdict::Drop(Refusal::Replayed);
        }
        if !room {
            return self.reject(submit, RejectReason::NoRoom);
        }
        self.task(pass, now, submit, 0, now)
    }

    /// A task that met a stale token comes round as a new arrival, past its replay cell.
    fn task_again(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        submit: &Submit,
        round: u8,
        arrived: Nanos,
    ) -> Verdict {
        if round > ROUNDS_MAX {
            return self.reject(submit, RejectReason::StaleTokens);
        }
        self.task(pass, now, submit, round, arrived)
    }

    /// A task meets a parked token, or waits, or finds the queue full.
    #[inline]
    fn task(&mut self, pass: &mut Pass, now: Nanos, submit: &Submit, round: u8, arrived: Nanos) -> Verdict {
        let Some((slice, row)) = self.tables.slice_of(submit) else {
            return self.reject(submit, RejectReason::UnknownType);
        };
        if !row.open {
            return self.reject(submit, RejectReason::NoWorkers);
        }
        let s = slice.0 as usize;
        let full = -(row.limit as i32);
        let balance = self.memory.balance.branch(pass, s, |b| b > full, |b| b - 1, |b| b);
        if balance <= full {
            return self.reject(submit, RejectReason::QueueFull);
        }
        if balance <= 0 {
            let ticket = self.memory.task_tail.update(pass, s, |tail| tail.wrapping_add(1));
            let index = cell(slice, ticket, self.config.tasks_per_slice);
            self.memory.tasks.write(pass, index, WaitingTask::of(submit, arrived));
            return Verdict::Parked;
        }
        let token = self.pop_token(pass, slice);
        let Some(at) = self.live_worker(pass, token) else {
            return Verdict::Again { packet: Packet::Submit(*submit), round: round + 1, arrived };
        };
        let granted = Granted { worker: token.worker, generation: token.generation, seen: None };
        let queued = Queued { wait: now.since(arrived), occupancy: 0 };
        self.dispatch(pass, submit, granted, at, queued)
    }

    /// A worker asks how its counters stand.
    fn probe(&mut self, pass: &mut Pass, from: Endpoint, probe: &Probe) -> Verdict {
        let row = match self.tables.admit_worker(from, probe.worker, probe.key) {
            Ok(row) => *row,
            Err(refusal) => return Verdict::Drop(refusal),
        };
        if let Some(stale) = self.out_of_date(&row, probe.epoch, probe.generation) {
            self.refusals.add(stale);
        }
        self.answer(pass, &row, probe.worker, probe.nonce)
    }

    /// The broom: one entry a pass, and a second pass for a token that parks again.
    fn sweep(&mut self, pass: &mut Pass, now: Nanos, sweep: Sweep) -> Verdict {
        if sweep.epoch != self.config.epoch || sweep.slice.0 >= self.config.slices {
            return Verdict::Drop(Refusal::WrongEpoch);
        }
        if let Some((worker, generation)) = sweep.carried
            && let Some(at) = self.admitted(worker, generation)
        {
            let granted = Granted { worker, generation, seen: None };
            let verdict = self.park_or_dispatch(pass, now, at, sweep.slice, granted);
            return if verdict == Verdict::Parked { go_on(sweep, None) } else { verdict };
        }
        match sweep.of {
            _ if sweep.left == 0 => Verdict::Drop(Refusal::SweepDone),
            SweepOf::Tokens => self.sweep_token(pass, sweep),
            SweepOf::Tasks => self.sweep_task(pass, sweep),
        }
    }

    fn sweep_token(&mut self, pass: &mut Pass, sweep: Sweep) -> Verdict {
        let s = sweep.slice.0 as usize;
        if self.memory.balance.branch(pass, s, |b| b > 0, |b| b - 1, |b| b) <= 0 {
            return Verdict::Drop(Refusal::SweepDone);
        }
        let token = self.pop_token(pass, sweep.slice);
        let live = self.live_worker(pass, token).map(|_| (token.worker, token.generation));
        go_on(Sweep { left: sweep.left - 1, ..sweep }, live)
    }

    /// Only a closed slice is swept of tasks: an open one's tasks have workers to wait for.
    fn sweep_task(&mut self, pass: &mut Pass, sweep: Sweep) -> Verdict {
        let s = sweep.slice.0 as usize;
        let closed = !self.tables.slices[s].open;
        let takes = |balance: i32| closed && balance < 0;
        if !takes(self.memory.balance.branch(pass, s, takes, |b| b + 1, |b| b)) {
            return Verdict::Drop(Refusal::SweepDone);
        }
        let ticket = self.memory.task_head.update(pass, s, |head| head.wrapping_add(1));
        let task = self.memory.tasks.read(pass, cell(sweep.slice, ticket, self.config.tasks_per_slice));
        let submit = task.submit();
        let client = self.tables.clients[submit.client.0 as usize];
        Verdict::Swept {
            to: client.map_or(Endpoint::default(), |row| row.at),
            packet: self.refusal_of(&submit, RejectReason::NoWorkers),
            payload: submit.payload.handle,
        }
    }

    #[inline]
    fn pop_token(&mut self, pass: &mut Pass, slice: SliceId) -> ParkedToken {
        let ticket = self.memory.token_head.update(pass, slice.0 as usize, |head| head.wrapping_add(1));
        self.memory.tokens.read(pass, cell(slice, ticket, self.config.tokens_per_slice))
    }

    /// Where a popped token's worker is, if the token is of its present generation.
    #[inline]
    fn live_worker(&mut self, pass: &mut Pass, token: ParkedToken) -> Option<Endpoint> {
        let generation = self.memory.gen_out.read(pass, token.worker.0 as usize);
        if generation != token.generation.0 {
            return None;
        }
        self.tables.workers[token.worker.0 as usize].map(|row| row.at)
    }

    /// Egress: the task goes to the worker, with its counters and what the queue was like (INT).
    #[inline]
    fn dispatch(
        &mut self,
        pass: &mut Pass,
        submit: &Submit,
        granted: Granted,
        to: Endpoint,
        queued: Queued,
    ) -> Verdict {
        let worker = granted.worker.0 as usize;
        let sent = self.memory.sent.update(pass, worker, |sent| sent.wrapping_add(1)).wrapping_add(1);
        let fresh = granted.seen;
        let seen_out = self.memory.seen_out.update(pass, worker, |seen| fresh.unwrap_or(seen));
        let client_at = self.tables.clients[submit.client.0 as usize].as_ref().map(|row| &row.at);
        let Payload { len, inline, handle } = submit.payload;
        let packet = Packet::Dispatch(Dispatch {
            epoch: self.config.epoch,
            worker: granted.worker,
            generation: granted.generation,
            sent: Serial(sent),
            seen: Serial(fresh.unwrap_or(seen_out)),
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
            payload: Payload { len, inline, handle },
        });
        Verdict::Send { to, packet }
    }

    fn reject(&self, submit: &Submit, reason: RejectReason) -> Verdict {
        let Some(client) = self.tables.clients[submit.client.0 as usize] else {
            return Verdict::Drop(Refusal::UnknownSource);
        };
        Verdict::Send { to: client.at, packet: self.refusal_of(submit, reason) }
    }

    fn refusal_of(&self, submit: &Submit, reason: RejectReason) -> Packet {
        let retry_after = self.tables.slice_of(submit).map_or(Nanos::default(), |(_, row)| row.retry_after);
        Packet::Reject(Reject {
            epoch: self.config.epoch,
            client: submit.client,
            task: submit.task,
            attempt: submit.attempt,
            task_type: submit.task_type,
            reason,
            retry_after_ns: retry_after.saturated(),
        })
    }

    fn answer(
        &mut self,
        pass: &mut Pass,
        row: &WorkerRow,
        worker: WorkerId,
        nonce: sluice_wire::Nonce,
    ) -> Verdict {
        let seen = Serial(self.memory.seen.read(pass, worker.0 as usize));
        let sent = Serial(self.memory.sent.read(pass, worker.0 as usize));
        self.send_answer(row, worker, nonce, row.open.then_some(Counters { seen, sent }))
    }

    fn send_answer(
        &self,
        row: &WorkerRow,
        worker: WorkerId,
        nonce: sluice_wire::Nonce,
        counters: Option<Counters>,
    ) -> Verdict {
        let answer = Answer { epoch: self.config.epoch, worker, generation: row.generation, nonce, counters };
        Verdict::Send { to: row.at, packet: Packet::Answer(answer) }
    }

    fn notice(&self, submit: &Submit) -> Notice {
        Notice { epoch: self.config.epoch, client: submit.client, task: submit.task, attempt: submit.attempt }
    }

    /// Why a worker's packet is answered with where its counters stand instead of being taken.
    #[inline]
    fn out_of_date(&self, row: &WorkerRow, epoch: Epoch, generation: Generation) -> Option<Refusal> {
        if epoch != self.config.epoch {
            Some(Refusal::WrongEpoch)
        } else if generation != row.generation {
            Some(Refusal::WrongGeneration)
        } else if row.open {
            None
        } else {
            Some(Refusal::Closed)
        }
    }

    /// Where a worker is, if tokens of this generation are still let in.
    fn admitted(&self, worker: WorkerId, generation: Generation) -> Option<Endpoint> {
        let row = self.tables.workers.get(worker.0 as usize).copied().flatten()?;
        (row.open && row.generation == generation).then_some(row.at)
    }
}

impl Tables {
    #[inline]
    fn slice_of(&self, submit: &Submit) -> Option<(SliceId, &SliceRow)> {
        let slice = (*self.types.get(submit.task_type.0 as usize)?)?;
        Some((slice, &self.slices[slice.0 as usize]))
    }

    #[inline]
    fn admit_worker(&self, from: Endpoint, worker: WorkerId, key: Key) -> Result<&WorkerRow, Refusal> {
        let row = self.workers.get(worker.0 as usize).and_then(Option::as_ref);
        let row = row.ok_or(Refusal::UnknownSource)?;
        check_source(row.key, key, row.at, from)?;
        Ok(row)
    }

    #[inline]
    fn admit_client(&self, from: Endpoint, client: ClientId, key: Key) -> Result<(), Refusal> {
        let row = self.clients.get(client.0 as usize).and_then(Option::as_ref);
        let row = row.ok_or(Refusal::UnknownSource)?;
        check_source(row.key, key, row.at, from)
    }
}

/// A token that the switch has granted; `seen` is the worker's new count, unless it was granted in an earlier pass.
#[derive(Clone, Copy)]
struct Granted {
    worker: WorkerId,
    generation: Generation,
    seen: Option<u32>,
}

/// In-band telemetry: what the queue was like for the task.
#[derive(Clone, Copy)]
struct Queued {
    wait: Nanos,
    occupancy: u32,
}

/// A ticket's cell in its slice's part of a ring of `len` a slice.
#[inline]
fn cell(slice: SliceId, ticket: u32, len: u32) -> usize {
    slice.0 as usize * len as usize + (ticket & (len - 1)) as usize
}

#[inline]
fn check_source(held: Key, shown: Key, at: Endpoint, from: Endpoint) -> Result<(), Refusal> {
    if held != shown {
        Err(Refusal::WrongKey)
    } else if at != from {
        Err(Refusal::WrongAddress)
    } else {
        Ok(())
    }
}

fn go_on(sweep: Sweep, carried: Option<(WorkerId, Generation)>) -> Verdict {
    let packet = Packet::Sweep(Sweep { carried, ..sweep });
    Verdict::Again { packet, round: 0, arrived: Nanos::default() }
}
