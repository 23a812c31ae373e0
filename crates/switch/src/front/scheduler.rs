//! What a scheduler adds to the front, and how the two make a [`Program`].

use core::fmt::Debug;

use sluice_wire::tables::{Shape, SliceState, TableAnswer, TableOp, WorkerRow};
use sluice_wire::{Endpoint, Nanos, Packet, Psn, Reply, ServerId, SliceId, Submit, Sweep, WorkerId};

use super::{Front, Granted};
use crate::pipeline::{Layout, Pass};
use crate::program::{Arrival, Cargo, Circulating, Parked, Program, Replica, Verdict, WriteAhead};
use crate::refusal::{Refusal, Refusals};

/// A task at the queue: new, or round once more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entering<'a> {
    pub(crate) submit: &'a Submit,
    /// When it arrived first.
    pub(crate) arrived: Nanos,
    /// What the program noted when it sent the task round; `None` for a new one.
    pub(crate) memo: Option<u64>,
}

/// The scheduling itself: what tokens and tasks do that the front has let in.
pub(crate) trait Scheduler: Debug + Send {
    /// As the registry and the pipeline's checks call it.
    const NAME: &'static str;

    fn front(&self) -> &Front;

    fn front_mut(&mut self) -> &mut Front;

    /// A worker of this slice was granted a token.
    fn token(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, granted: Granted) -> Verdict;

    /// A task wants to a worker.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict;

    /// A note that the program sent to itself is back.
    fn note(&mut self, _pass: &mut Pass, _memo: u64) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// A worker's REPLY passes.
    fn reply(&mut self, _pass: &mut Pass, _from: Endpoint, _reply: &Reply) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// The controller's broom, of this life and of a slice that exists.
    fn sweep(&mut self, _pass: &mut Pass, _now: Nanos, _sweep: Sweep) -> Verdict {
        Verdict::Drop(Refusal::SweepDone)
    }

    /// What the controller sees of a slice that exists: all but its row.
    fn slice_state(&self, slice: usize) -> SliceState;

    /// The controller set a worker's row.
    fn worker_set(&mut self, _worker: WorkerId, _row: Option<&WorkerRow>) {}

    /// Nothing that was granted to a worker until now counts any more.
    fn grants_ended(&mut self, _worker: WorkerId) {}

    /// The controller's steps about servers and their rings; `None` where nothing is written ahead.
    fn rings(&mut self, _op: TableOp) -> Option<TableAnswer> {
        None
    }

    /// One copy of a WRITE at egress.
    fn replica(&mut self, _pass: &mut Pass, _write: &WriteAhead, _copy: u16) -> Option<Replica> {
        None
    }

    /// A server's NAK.
    fn nak(&mut self, _pass: &mut Pass, _from: Endpoint, _server: ServerId, _expected: Psn) -> Verdict {
        Verdict::Drop(Refusal::Unexpected)
    }

    /// See [`Program::waiting`].
    fn waiting(&self) -> u32 {
        0
    }

    /// See [`Program::parked`].
    fn parked(&self, _slice: SliceId) -> Parked {
        Parked::default()
    }
}

impl<S: Scheduler> Program for S {
    #[inline]
    fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict {
        let verdict = arrive(self, now, arrival);
        if let Verdict::Drop(refusal) = verdict {
            self.front_mut().refusals.add(refusal);
        }
        verdict
    }

    fn replica(&mut self, write: &WriteAhead, copy: u16) -> Option<Replica> {
        Scheduler::replica(self, &mut Pass::begin(S::NAME), write, copy)
    }

    fn table(&mut self, op: TableOp) -> TableAnswer {
        super::control::table(self, op)
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

#[inline(always)]
fn arrive<S: Scheduler>(program: &mut S, now: Nanos, arrival: Arrival) -> Verdict {
    let pass = &mut Pass::begin(S::NAME);
    match arrival {
        Arrival::Wire { from, packet: Packet::Token(token), .. } => {
            match program.front_mut().admit_token(pass, from, &token) {
                Ok((slice, granted)) => program.token(pass, now, slice, granted),
                Err(verdict) => verdict,
            }
        }
        Arrival::Wire { from, packet: Packet::Submit(submit), room } => {
            match program.front_mut().admit_task(pass, from, &submit, room) {
                Ok(()) => program.task(pass, now, Entering { submit: &submit, arrived: now, memo: None }),
                Err(verdict) => verdict,
            }
        }
        Arrival::Wire { from, packet: Packet::Reply(reply), .. } => program.reply(pass, from, &reply),
        Arrival::Wire { from, packet: Packet::Probe(probe), .. } => {
            program.front_mut().probe(pass, from, &probe)
        }
        Arrival::Round(Circulating { cargo: Cargo::Task(submit), arrived, memo }) => {
            program.task(pass, now, Entering { submit: &submit, arrived, memo: Some(memo) })
        }
        Arrival::Round(Circulating { cargo: Cargo::Note, memo, .. }) => program.note(pass, memo),
        Arrival::Round(Circulating { cargo: Cargo::Sweep(sweep), .. }) | Arrival::Control(sweep) => {
            let config = &program.front().config;
            if sweep.epoch != config.epoch || sweep.slice.0 >= config.slices {
                return Verdict::Drop(Refusal::WrongEpoch);
            }
            program.sweep(pass, now, sweep)
        }
        Arrival::Nak { from, server, expected } => program.nak(pass, from, server, expected),
        Arrival::Wire { .. } => Verdict::Drop(Refusal::Unexpected),
    }
}
