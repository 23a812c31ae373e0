//! Draconis: one circular queue per slice, asked by idle workers (Rain §2.3.1, §5; first come, first served).
//!
//! A pass can change a pointer but not look at the queue first. So the pointers for adding and for taking
//! move on before it is known whether the queue is full or empty, and one that went too far is put right
//! afterwards by a *fix packet*, which goes round; a flag keeps a second one from being sent. Who takes from
//! an empty queue leaves that pointer ahead: the next add notices and sends the fix, and takes fail until it
//! lands. An add to a full queue sends a fix for the other pointer, and adds fail meanwhile.
//!
//! Idle workers poll: each TOKEN is answered at once, with a task or with EMPTY. A worker fetches a task's
//! bytes beyond the entry from its client. These are the design's published costs, and they are kept.
//!
//! Ours: an entry holds the number of its ticket, so that a retrieve knows a task from a place that a failed
//! add left, and a flag holds where its pointer belongs, so that adds cannot overrun the ring while a fix is
//! on its way; a full queue rejects aloud; and what the shared front does about loss and registration.
//!
//! The stages, behind the front's 0 and 1: retrieve pointer (2), add pointer (3), flag of the add pointer
//! (4), flag of the retrieve pointer (5), entries (6 to 11), `sent` and `seen_out` (7).
//!
//! Left out: priority classes (replicated queues), resource and locality constraints (task swapping), the
//! variants that run in a server.

use alloc::boxed::Box;
use core::fmt;

use sluice_units::WholeSpan;
use sluice_wire::tables::{Feed, RingCounts, SliceRow, SliceState};
use sluice_wire::{Nanos, Rank, RejectReason, Serial, SliceId, Submit, Sweep, SweepOf};

use crate::config::Config;
use crate::entry::{Kept, WaitingTask, cell};
use crate::front::{BackStages, Entering, Front, Granted, Queued, Scheduler};
use crate::pipeline::{Column, Pass, Register, Ring};
use crate::program::{Cargo, Circulating, Program, Verdict};
use crate::refusal::Refusal;
use crate::settings::ProgramSettings;

/// A flag that is not set.
const CLEAR: u64 = 0;
/// A flag that is set, beside where the pointer belongs.
const SET: u64 = 1 << 32;

const COLUMNS: [Column; 15] = [
    Column { name: "ticket", stage: 6, bits: 32 },
    Column { name: "payload 0", stage: 6, bits: 8 },
    Column { name: "client, attempt", stage: 6, bits: 32 },
    Column { name: "payload 1", stage: 7, bits: 8 },
    Column { name: "incarnation", stage: 7, bits: 64 },
    Column { name: "payload 2", stage: 8, bits: 8 },
    Column { name: "type, length", stage: 8, bits: 32 },
    Column { name: "sequence", stage: 8, bits: 32 },
    Column { name: "payload 3", stage: 9, bits: 8 },
    Column { name: "arrived, age", stage: 9, bits: 64 },
    Column { name: "payload 4", stage: 10, bits: 8 },
    Column { name: "priority, constraints", stage: 10, bits: 16 },
    Column { name: "payload 5", stage: 10, bits: 8 },
    Column { name: "payload 6", stage: 11, bits: 8 },
    Column { name: "payload 7", stage: 11, bits: 8 },
];

/// Draconis' program and memory.
#[derive(Debug)]
pub struct Draconis {
    front: Front,
    /// The ticket of the next retrieve of each slice.
    retrieve: Register<u32>,
    /// The ticket of the next add.
    add: Register<u32>,
    /// Whether a fix of the add pointer is on its way, and to where.
    add_fix: Register<u64>,
    /// Whether a fix of the retrieve pointer is on its way, and to where.
    retrieve_fix: Register<u64>,
    entries: Ring<Entry>,
}

/// A place in the ring: the task of this ticket, unless the place was never written for it.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    ticket: u32,
    task: WaitingTask,
}

/// What a fix packet carries: a slice, and where its pointer belongs. Which pointer follows from its cargo: a
/// rejected task takes the add pointer back, a note the retrieve pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fix {
    slice: SliceId,
    ticket: u32,
}

impl Fix {
    const fn memo(self) -> u64 {
        (self.slice.0 as u64) << 32 | self.ticket as u64
    }

    const fn of(memo: u64) -> Self {
        Self { slice: SliceId((memo >> 32) as u16), ticket: memo as u32 }
    }
}

impl Draconis {
    fn new(settings: Settings, config: Config) -> Self {
        let back = BackStages { gen_out: 2, sent: 7 };
        let mut front = Front::new(Self::NAME, settings.feed(), config, back);
        let layout = &mut front.layout;
        let (slices, start) = (config.slices as usize, config.counters_start.0);
        let rows = slices * config.tasks_per_slice as usize;
        layout.queue(rows as u32);
        // No place holds its first ticket yet.
        let never = Entry { ticket: start.wrapping_sub(1), ..Entry::default() };
        let retrieve = Register::new(layout, "retrieve pointer", 2, 32, slices, start);
        let add = Register::new(layout, "add pointer", 3, 32, slices, start);
        let add_fix = Register::new(layout, "add flag", 4, 64, slices, CLEAR);
        let retrieve_fix = Register::new(layout, "retrieve flag", 5, 64, slices, CLEAR);
        let entries = Ring::new(layout, "entries", &COLUMNS, rows, never);
        Self { front, retrieve, add, add_fix, retrieve_fix, entries }
    }

    /// Takes the next task of a slice, if there is one, and says how many are left behind it.
    fn take(&mut self, pass: &mut Pass, slice: SliceId) -> Option<(Entry, u32)> {
        let s = slice.0 as usize;
        let ticket = self.retrieve.update(pass, s, |ticket| ticket.wrapping_add(1));
        let added = self.add.read(pass, s);
        if self.retrieve_fix.read(pass, s) != CLEAR {
            return None;
        }
        let entry =
            self.entries.read(pass, cell(slice.0 as usize, ticket, self.front.config.tasks_per_slice));
        let left = ahead(added, ticket).max(1) as u32 - 1;
        (entry.ticket == ticket).then_some((entry, left))
    }

    fn add(&mut self, pass: &mut Pass, slice: SliceId, limit: u32, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, .. } = task;
        let s = slice.0 as usize;
        let limit = limit as i32;
        let retrieved = self.retrieve.read(pass, s);
        let ticket = self.add.update(pass, s, |ticket| ticket.wrapping_add(1));
        let is_full = ahead(ticket, retrieved) >= limit;
        let stays = |flag: u64| flag != CLEAR || !is_full;
        let failing = self.add_fix.branch(pass, s, stays, |flag| flag, |_| SET | u64::from(ticket));
        if failing != CLEAR {
            return self.front.reject(submit, RejectReason::QueueFull);
        }
        if is_full {
            let memo = Fix { slice, ticket }.memo();
            return Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo });
        }
        let is_behind = ahead(retrieved, ticket) > 0;
        let starts = |flag: u64| flag == CLEAR && is_behind;
        let fixing = self.retrieve_fix.branch(pass, s, starts, |_| SET | ticket as u64, |flag| flag);
        if fixing != CLEAR && ahead(ticket, fixing as u32) >= limit {
            return self.front.reject(submit, RejectReason::QueueFull);
        }
        let index = cell(slice.0 as usize, ticket, self.front.config.tasks_per_slice);
        let kept = if self.front.config.servers > 0 { Kept::Client } else { Kept::Driver };
        self.entries.write(pass, index, Entry { ticket, task: WaitingTask::of(submit, arrived, kept) });
        if starts(fixing) {
            let memo = Fix { slice, ticket }.memo();
            return Verdict::Again(Circulating { cargo: Cargo::Note, arrived, memo });
        }
        Verdict::Parked
    }

    /// How many tasks wait in a slice. Places that failed adds left, which a retrieve passes, are none.
    fn waiting_in(&self, slice: usize) -> u32 {
        let (first, length) = (self.next_out(slice), self.front.config.tasks_per_slice);
        let places = ahead(settled(&self.add, &self.add_fix, slice), first).clamp(0, length as i32) as u32;
        let tickets = (0..places).map(|place| first.wrapping_add(place));
        tickets.filter(|ticket| self.entries.peek(cell(slice, *ticket, length)).ticket == *ticket).count()
            as u32
    }

    /// The ticket of the task that is retrieved next.
    fn next_out(&self, slice: usize) -> u32 {
        settled(&self.retrieve, &self.retrieve_fix, slice)
    }
}

impl Scheduler for Draconis {
    const NAME: &'static str = "draconis";

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    /// A worker polls: retrieves.
    fn token(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, granted: Granted, _: Rank) -> Verdict {
        let Some((Entry { ticket, task }, left)) = self.take(pass, slice) else {
            return self.front.send_empty(pass, granted);
        };
        let queued = Queued { wait: task.waited(now), occupancy: left };
        self.front.dispatch_from(pass, &task.submit(), task.place(slice, ticket), granted, queued)
    }

    /// A task adds itself, or comes round with a fix of the add pointer and is rejected.
    fn task(&mut self, pass: &mut Pass, _: Nanos, task: Entering<'_>) -> Verdict {
        if let Some(memo) = task.memo {
            let Fix { slice, ticket } = Fix::of(memo);
            self.add.write(pass, slice.0 as usize, ticket);
            self.add_fix.write(pass, slice.0 as usize, CLEAR);
            return self.front.reject(task.submit, RejectReason::QueueFull);
        }
        match self.front.open_slice(task.submit) {
            Ok((slice, SliceRow { limit, .. })) => {
                let limit = *limit;
                self.add(pass, slice, limit, task)
            }
            Err(reason) => self.front.reject(task.submit, reason),
        }
    }

    /// A fix of the retrieve pointer lands.
    fn note(&mut self, pass: &mut Pass, _now: Nanos, memo: u64) -> Verdict {
        let Fix { slice, ticket } = Fix::of(memo);
        self.retrieve.write(pass, slice.0 as usize, ticket);
        self.retrieve_fix.write(pass, slice.0 as usize, CLEAR);
        Verdict::Drop(Refusal::FixDone)
    }

    /// Only a closed slice is swept, of tasks: a retrieve for nobody. Tokens never wait.
    fn sweep(&mut self, pass: &mut Pass, _: Nanos, sweep: Sweep, _: u64) -> Verdict {
        let closed = !self.front.tables.slices[sweep.slice.0 as usize].open;
        if sweep.of == SweepOf::Tokens || sweep.left == 0 || !closed {
            return Verdict::Drop(Refusal::SweepDone);
        }
        match self.take(pass, sweep.slice) {
            Some((Entry { task, .. }, _)) => {
                let submit: Submit = task.submit();
                self.front.sweep_out(&submit)
            }
            None => Verdict::Drop(Refusal::SweepDone),
        }
    }

    fn slice_state(&self, slice: usize) -> SliceState {
        let balance = -(self.waiting_in(slice) as i32);
        let out = Serial(self.next_out(slice));
        let [tasks_in, tasks_out] = [out.plus(balance.unsigned_abs()), out].map(RingCounts::of_one);
        SliceState { balance, tasks_in, tasks_out, ..SliceState::default() }
    }

    fn waiting(&self) -> u32 {
        (0..self.front.config.slices.into()).map(|slice| self.waiting_in(slice)).sum()
    }
}

/// Where a pointer stands, or where the fix that is on its way will put it.
fn settled(pointer: &Register<u32>, fix: &Register<u64>, slice: usize) -> u32 {
    let fixing = fix.peek(slice);
    if fixing == CLEAR { pointer.peek(slice) } else { fixing as u32 }
}

/// How far one ticket is past another; negative when it is behind.
const fn ahead(ticket: u32, of: u32) -> i32 {
    Serial(ticket).since(Serial(of))
}

/// How idle workers poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    every: Nanos,
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.every == Nanos(0) { Ok(()) } else { write!(f, "poll={}", WholeSpan(self.every)) }
    }
}

impl ProgramSettings for Settings {
    fn name(&self) -> &'static str {
        Draconis::NAME
    }

    fn about(&self) -> &'static str {
        "a queue in the switch that idle workers poll; its pointers run ahead and are fixed by recirculation"
    }

    fn arguments(&self) -> &'static str {
        "poll=SPAN, how long an idle worker waits after an empty answer: 0ns (at once) to 4s"
    }

    fn example(&self) -> &'static str {
        "draconis:poll=1us"
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        let span = sluice_units::span(argument.strip_prefix("poll=")?).ok()?;
        self.every = Some(span).filter(|span| *span <= Nanos::from_millis(4_000))?;
        Some(())
    }

    fn quota(&self) -> u8 {
        1
    }

    fn feed(&self) -> Feed {
        Feed::Polls { every: self.every }
    }

    fn fetches(&self) -> bool {
        true
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        Box::new(Draconis::new(*self, config))
    }
}
