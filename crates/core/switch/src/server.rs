//! One queue in a server: the software that switches are compared with (Draconis' slides).
//!
//! A server stands in the place of the switch, behind a socket or with its network adapter to itself, and
//! serves the same hosts under the same controller. The tasks of a slice wait in one queue, and so do the
//! tokens of idle workers; an arrival meets the oldest entry of the other side. Passes have no limits here:
//! the server may look at its memory as often as it likes, so it needs none of a switch's tricks. Its cost
//! is the time of a core, which simulations count for each decision ([`Software`]).
//!
//! The shared front does for it what it does for switches: sources, repeats, epochs, generations, numbered
//! DISPATCHes.
//!
//! Ours: everything. The slides name two servers and say only that the switch takes 52 times their load.
//! Left out: several cores.

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
use crate::settings::{About, ProgramSettings, ProgramTraits, Software};

/// The server's program and memory.
#[derive(Debug)]
pub struct QueueServer {
    front: Front,
    slices: Vec<Line>,
}

/// The entries that wait in a slice: tasks or tokens, never both.
#[derive(Debug)]
struct Line {
    tasks: VecDeque<WaitingTask>,
    tokens: VecDeque<Granted>,
    /// How many tasks ever waited, and how many of these left.
    came: u32,
    left: u32,
}

impl QueueServer {
    fn new(settings: ServerSettings, config: Config) -> Self {
        // A server has no pipeline; the front's arrays serve as its tables.
        let back = BackStages { gen_out: 2, sent: 2 };
        let front = Front::new(Self::NAME, settings.traits().feed, config, back);
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

    /// Takes the next token whose worker is still there in the token's generation.
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

    /// The worker gets the first waiting task; if none waits, its token waits.
    fn token(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, granted: Granted, _: Rank) -> Verdict {
        let Some(task) = self.line(slice).take() else {
            self.front.note_granted(pass, granted);
            self.line(slice).tokens.push_back(granted);
            return Verdict::Parked;
        };
        let queued = Queued { wait: task.waited(now), occupancy: self.line(slice).tasks.len() as u32 };
        let place = task.place(slice, 0);
        self.front.dispatch_waiting(pass, &task, place, granted, queued)
    }

    /// The first worker whose token waits gets the task; if none waits, the task waits, if there is room.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, .. } = task;
        let (slice, limit) = match self.front.open_slice(submit) {
            Ok((slice, row)) => (slice, row.limit),
            Err(reason) => return self.front.reject(submit, reason),
        };
        if let Some(granted) = self.next_token(pass, slice) {
            // The token's count was noted when the token was parked, and a DISPATCH tells the noted count.
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

    /// Refuses the tasks of a closed slice, one a sweep. Tokens leave when their generation ends.
    fn sweep(&mut self, _: &mut Pass, _: Nanos, sweep: Sweep, _: u64) -> Verdict {
        let is_open = self.front.tables.slices[sweep.slice.0 as usize].open;
        if sweep.of == SweepOf::Tokens || sweep.left == 0 || is_open {
            return Verdict::Drop(Refusal::SweepDone);
        }
        match self.line(sweep.slice).take() {
            Some(task) => self.front.sweep_out(&self.front.whole(&task)),
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
            tasks: line.tasks.iter().map(|task| self.front.whole(task)).collect(),
            tokens: line.tokens.iter().map(|token| (token.worker, token.generation)).collect(),
        }
    }
}

/// The name by which the registry finds the settings.
pub(crate) use ServerSettings as Settings;

/// How deep workers' queues may be, and how long a decision takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    depth: u8,
    bypasses: bool,
    /// The time of a decision, if the policy states it; otherwise it follows from the kind of server.
    decision: Option<Nanos>,
}

/// Behind plain sockets: two datagrams in and one out, one system call each. Estimated, not measured: see
/// `docs/manual/software.md`.
const SOCKETS: Nanos = Nanos::from_micros(6);
/// Without the kernel: RingLeader §2.1 gives five million requests a second for Shinjuku's dispatcher.
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

    fn traits(&self) -> ProgramTraits {
        let software = Some(Software { decision: self.decision(), bypasses: self.bypasses });
        ProgramTraits { software, ..ProgramTraits::new(self.depth, Feed::TOKENS) }
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        Box::new(QueueServer::new(*self, config))
    }
}
