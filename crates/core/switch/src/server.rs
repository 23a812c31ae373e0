//! One queue in a server: the software that switches are held against (Draconis' slides).
//!
//! A server stands where the switch does, behind a socket or with its network adapter to itself, and serves
//! the same hosts under the same controller. Tasks of a slice wait in one queue, and so do the tokens of idle
//! workers; whichever comes second meets the first of the other side. There are no passes to count: it may
//! look at its memory as often as it likes, and so needs none of what switches do instead. What it costs is a
//! core's time, which simulations count for each decision ([`Software`]).
//!
//! The shared front keeps its promises for it: who may send what, what comes twice, epochs, generations,
//! numbered DISPATCHes.
//!
//! Ours: everything; the slides name two servers and say nothing of them but that the switch does 52 times
//! as much. Left out: several cores.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use sluice_units::WholeSpan;
use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tables::{Feed, RingCounts, SliceState};
use sluice_wire::{Nanos, Rank, RejectReason, Serial, SliceId, Sweep, SweepOf, WorkerId};

use crate::arguments;
use crate::config::Config;
use crate::entry::{Kept, WaitingTask};
use crate::front::{BackStages, Entering, Front, Granted, Queued, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Parked, Program, Verdict};
use crate::refusal::Refusal;
use crate::settings::{About, ProgramSettings, Software};

/// The server's program and memory.
#[derive(Debug)]
pub struct QueueServer {
    front: Front,
    slices: Vec<Line>,
}

/// What waits in a slice: tasks or tokens, never both.
#[derive(Debug)]
struct Line {
    tasks: VecDeque<WaitingTask>,
    tokens: VecDeque<Granted>,
    /// Tasks that ever waited, and that ever left.
    came: u32,
    left: u32,
}

impl QueueServer {
    fn new(settings: ServerSettings, config: Config) -> Self {
        // Nothing of it lies in a pipeline; the front's arrays are its tables.
        let back = BackStages { gen_out: 2, sent: 2 };
        let front = Front::new(Self::NAME, settings.feed(), config, back);
        let start = config.counters_start.0;
        let line = |_| Line {
            tasks: VecDeque::with_capacity(config.tasks_per_slice as usize),
            tokens: VecDeque::with_capacity(config.tokens_per_slice as usize),
            came: start,
            left: start,
        };
        let slices = (0..config.slices).map(line).collect();
        Self { front, slices }
    }

    fn line(&mut self, slice: SliceId) -> &mut Line {
        &mut self.slices[slice.0 as usize]
    }

    /// The next token whose worker is still there in that generation.
    fn next_token(&mut self, pass: &mut Pass, slice: SliceId) -> Option<Granted> {
        let token = self.line(slice).tokens.pop_front()?;
        let is_live = self.front.is_live(pass, token.worker, token.generation);
        debug_assert!(is_live, "tokens go when their generation does");
        is_live.then_some(token)
    }

    const fn kept(&self) -> Kept {
        if self.front.config.servers > 0 { Kept::Client } else { Kept::Driver }
    }
}

impl Line {
    fn take(&mut self) -> Option<WaitingTask> {
        let task = self.tasks.pop_front()?;
        self.left = self.left.wrapping_add(1);
        Some(task)
    }

    fn add(&mut self, task: WaitingTask) {
        self.tasks.push_back(task);
        self.came = self.came.wrapping_add(1);
    }
}

impl Scheduler for QueueServer {
    const NAME: &'static str = "server";

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    /// The first task that waits is this worker's; else its token does.
    fn token(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, granted: Granted, _: Rank) -> Verdict {
        let Some(task) = self.line(slice).take() else {
            self.front.note_granted(pass, granted);
            self.line(slice).tokens.push_back(granted);
            return Verdict::Parked;
        };
        let queued = Queued { wait: task.waited(now), occupancy: self.line(slice).tasks.len() as u32 };
        let place = task.place(slice, 0);
        self.front.dispatch_from(pass, &task.submit(), place, granted, queued)
    }

    /// The first worker whose token waits gets it; else it waits, if there is room.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, .. } = task;
        let (slice, limit) = match self.front.open_slice(submit) {
            Ok((slice, row)) => (slice, row.limit),
            Err(reason) => return self.front.reject(submit, reason),
        };
        if let Some(granted) = self.next_token(pass, slice) {
            // What it said of its count went with its own note: a task's DISPATCH carries that.
            let granted = Granted { seen: None, ..granted };
            let queued = Queued { wait: now.since(arrived), occupancy: 0 };
            return self.front.dispatch(pass, submit, granted, queued);
        }
        if self.line(slice).tasks.len() as u32 >= limit {
            return self.front.reject(submit, RejectReason::QueueFull);
        }
        let task = WaitingTask::of(submit, arrived, self.kept());
        self.line(slice).add(task);
        Verdict::Parked
    }

    /// Tasks of a closed slice are refused, one a sweep. Tokens go when their generation does.
    fn sweep(&mut self, _: &mut Pass, _: Nanos, sweep: Sweep, _: u64) -> Verdict {
        let is_open = self.front.tables.slices[sweep.slice.0 as usize].open;
        if sweep.of == SweepOf::Tokens || sweep.left == 0 || is_open {
            return Verdict::Drop(Refusal::SweepDone);
        }
        match self.line(sweep.slice).take() {
            Some(task) => self.front.sweep_out(&task.submit()),
            None => Verdict::Drop(Refusal::SweepDone),
        }
    }

    fn slice_state(&self, slice: usize) -> SliceState {
        let Line { tasks, tokens, came, left } = &self.slices[slice];
        let (mut tasks_in, mut tasks_out) = (RingCounts::default(), RingCounts::default());
        (tasks_in.0[0], tasks_out.0[0]) = (Serial(*came), Serial(*left));
        let balance = tokens.len() as i32 - tasks.len() as i32;
        SliceState { balance, tasks_in, tasks_out, ..SliceState::default() }
    }

    fn grants_ended(&mut self, worker: WorkerId) {
        for line in &mut self.slices {
            line.tokens.retain(|token| token.worker != worker);
        }
    }

    fn waiting(&self) -> u32 {
        self.slices.iter().map(|line| line.tasks.len() as u32).sum()
    }

    fn parked(&self, slice: SliceId) -> Parked {
        let line = &self.slices[slice.0 as usize];
        Parked {
            tasks: line.tasks.iter().map(WaitingTask::submit).collect(),
            tokens: line.tokens.iter().map(|token| (token.worker, token.generation)).collect(),
        }
    }
}

/// What the registry asks for.
pub(crate) use ServerSettings as Settings;

/// How deep workers' queues may be, and what a decision takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    depth: u8,
    bypasses: bool,
    /// What was asked for; else what its kind takes.
    decision: Option<Nanos>,
}

/// Behind plain sockets: two datagrams in and one out, a system call each. Reckoned, not measured: see
/// `docs/manual/software.md`.
const SOCKETS: Nanos = Nanos::from_micros(6);
/// Without the kernel: what RingLeader §2.1 says of Shinjuku's dispatcher, five million requests a second.
const BYPASS: Nanos = Nanos(200);

impl ServerSettings {
    fn decision(self) -> Nanos {
        self.decision.unwrap_or(if self.bypasses { BYPASS } else { SOCKETS })
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { depth: 1, bypasses: false, decision: None }
    }
}

impl fmt::Display for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.depth, if self.bypasses { ",bypass" } else { "" })?;
        self.decision.map_or(Ok(()), |decision| write!(f, ",decision={}", WholeSpan(decision)))
    }
}

impl ProgramSettings for ServerSettings {
    fn about(&self) -> About {
        About {
            name: QueueServer::NAME,
            about: "one queue in a server, in software, where the switch would be",
            arguments: "N, how many tasks each worker may have at once: 1 to 8, else 1; bypass, without the \
                        kernel (in simulations only), else behind plain sockets; decision=SPAN, what a \
                        decision takes of its core in simulations: 0ns to 1ms (6us behind sockets, 200ns \
                        without the kernel, unless stated)",
            example: "server:1",
        }
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        match argument.split_once('=') {
            None if argument == "bypass" => self.bypasses = true,
            None => self.depth = arguments::number(argument, 1..=QUOTA_MAX)?,
            Some(("decision", span)) => {
                let span = sluice_units::span(span).ok().filter(|span| *span <= Nanos::from_millis(1))?;
                self.decision = Some(span);
            }
            Some(_) => return None,
        }
        Some(())
    }

    fn quota(&self) -> u8 {
        self.depth
    }

    fn feed(&self) -> Feed {
        Feed::TOKENS
    }

    fn software(&self) -> Option<Software> {
        Some(Software { decision: self.decision(), bypasses: self.bypasses })
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        Box::new(QueueServer::new(*self, config))
    }
}
