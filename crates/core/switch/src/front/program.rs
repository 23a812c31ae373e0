//! Makes a [`Program`] of the front and a scheduler.

use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::{Endpoint, Nanos, Packet, SliceId, Sweep, SweepOf, TaskJob};

use super::control;
use super::scheduler::{Entering, EnteringJob, HandedDown, Scheduler};
use crate::pipeline::{Layout, Pass};
use crate::program::{Arrival, Cargo, Circulating, Mirror, Parked, Program, Replica, Verdict, WriteAhead};
use crate::refusal::{Refusal, Refusals};

impl<S: Scheduler> Program for S {
    #[inline]
    fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict {
        let verdict = arrive(self, now, arrival);
        match &verdict {
            Verdict::Drop(refusal) => self.front_mut().refusals.add(*refusal),
            Verdict::Again(_) | Verdict::Late { .. } => self.front_mut().rounds.begin(),
            _ => {}
        }
        verdict
    }

    fn replica(&mut self, write: &WriteAhead, copy: u16) -> Option<Replica> {
        self.engine()?.replica(&mut Pass::begin(S::NAME), write, copy)
    }

    fn mirrored(&mut self) -> Option<Mirror> {
        Scheduler::mirrored(self)
    }

    fn table(&mut self, op: TableOp) -> TableAnswer {
        control::table(self, op)
    }

    fn shape(&self) -> Shape {
        self.front().shape()
    }

    fn layout(&self) -> &Layout {
        &self.front().layout
    }

    fn refusals(&self) -> &Refusals {
        &self.front().refusals
    }

    fn waiting(&self) -> u32 {
        Scheduler::waiting(self)
    }

    fn parked(&self, slice: SliceId) -> Parked {
        Scheduler::parked(self, slice)
    }
}

/// Handles the packets that come for every task, and leaves all others to [`arrive_seldom`], so that the
/// code of the frequent passes stays short.
#[inline(always)]
fn arrive<S: Scheduler>(program: &mut S, now: Nanos, arrival: Arrival) -> Verdict {
    let pass = &mut Pass::begin(S::NAME);
    // By reference: a read right behind a copy of the packet waits until the copy is written.
    match &arrival {
        Arrival::Wire { from, packet: Packet::Token(token), .. } => {
            match program.front_mut().admit_token(pass, *from, token) {
                Ok((slice, granted)) => program.token(pass, now, slice, granted, token.rank),
                Err(verdict) => verdict,
            }
        }
        Arrival::Wire { from, packet: Packet::Submit(submit), room } => {
            match program.front_mut().admit_task(pass, *from, submit, *room) {
                Ok(()) => program.task(pass, now, Entering { submit, arrived: now, memo: None }),
                Err(verdict) => verdict,
            }
        }
        Arrival::Wire { from, packet: Packet::Reply(reply), .. } => program.reply(pass, *from, reply),
        Arrival::Round(Circulating { cargo: Cargo::Task(submit), arrived, memo }) => {
            program.front_mut().rounds.end();
            program.task(pass, now, Entering { submit, arrived: *arrived, memo: Some(*memo) })
        }
        _ => arrive_seldom(program, pass, now, arrival),
    }
}

/// Handles the packets that come for some tasks only, or for none.
#[inline(never)]
fn arrive_seldom<S: Scheduler>(program: &mut S, pass: &mut Pass, now: Nanos, arrival: Arrival) -> Verdict {
    if matches!(arrival, Arrival::Round(_)) {
        program.front_mut().rounds.end();
    }
    match arrival {
        Arrival::Wire { from, packet: Packet::Job(job), .. } => job_in(program, pass, now, from, &job),
        Arrival::Wire { from, packet: Packet::Reject(reject), .. } => program.rejected(pass, from, &reject),
        Arrival::Wire { from, packet: Packet::Dispatch(task), room } => {
            let room = room && program.front().rounds.have_room();
            program.forwarded(pass, now, HandedDown { from, task: &task, room })
        }
        Arrival::Wire { from, packet: Packet::Update(update), .. } => {
            program.update(pass, now, from, &update)
        }
        Arrival::Wire { from, packet: Packet::Probe(probe), .. } => {
            program.front_mut().probe(pass, from, &probe)
        }
        Arrival::Round(Circulating { cargo: Cargo::Job(job), arrived, memo }) => {
            program.job(pass, now, EnteringJob { job: &job, arrived, memo: Some(memo) })
        }
        Arrival::Round(Circulating { cargo: Cargo::Note, memo, .. }) => program.note(pass, now, memo),
        Arrival::Control(sweep) => sweep_in(program, pass, now, sweep, None),
        Arrival::Round(Circulating { cargo: Cargo::Sweep(sweep), memo, .. }) => {
            sweep_in(program, pass, now, sweep, Some(memo))
        }
        Arrival::Nak { from, server, expected } => match program.engine() {
            Some(engine) => engine.nak(pass, from, server, expected),
            None => Verdict::Drop(Refusal::Unexpected),
        },
        Arrival::Wire { .. } | Arrival::Round(_) => Verdict::Drop(Refusal::Unexpected),
    }
}

/// Several tasks come in one submission. The packet is dropped if the program takes fewer.
fn job_in<S: Scheduler>(
    program: &mut S,
    pass: &mut Pass,
    now: Nanos,
    from: Endpoint,
    job: &TaskJob,
) -> Verdict {
    if job.tasks() > program.front().jobs {
        return Verdict::Drop(Refusal::Unexpected);
    }
    match program.front_mut().admit_sender(from, job.first()) {
        Ok(()) => program.job(pass, now, EnteringJob { job, arrived: now, memo: None }),
        Err(verdict) => verdict,
    }
}

/// A sweep comes from the controller, or recirculates with the program's memo. It is dropped if it is of
/// another epoch or of no slice.
fn sweep_in<S: Scheduler>(
    program: &mut S,
    pass: &mut Pass,
    now: Nanos,
    sweep: Sweep,
    memo: Option<u64>,
) -> Verdict {
    let front = program.front();
    if sweep.epoch != front.config.epoch || sweep.slice.0 >= front.config.slices {
        return Verdict::Drop(Refusal::WrongEpoch);
    }
    let is_second = memo.is_none() && front.sweeps.is_about(&sweep);
    // A second sweep for tokens would have to recirculate with the token that it took. A second one for
    // tasks can stop: it has taken nothing then.
    if is_second && sweep.of == SweepOf::Tokens {
        return Verdict::Drop(Refusal::SweepUnderWay);
    }
    let verdict = program.sweep(pass, now, sweep, memo.unwrap_or(0));
    let goes_on = matches!(verdict, Verdict::Again(Circulating { cargo: Cargo::Sweep(_), .. }));
    match (is_second, goes_on) {
        (true, true) => Verdict::Drop(Refusal::SweepUnderWay),
        (true, false) => verdict,
        (false, _) => {
            program.front_mut().sweeps.set(&sweep, goes_on);
            verdict
        }
    }
}
