//! R2P2: join the bounded shortest queue by recirculation (Rain §2.3.1, §5; JBSQ(n) of R2P2).
//!
//! A task looks at a few workers a pass, for one whose depth is below the task's target, which starts at
//! one. The task recirculates until it finds such a worker. After a full round over all workers its target
//! rises by one, up to n. No task is queued in memory: a waiting task recirculates, costs recirculation
//! bandwidth, and is overtaken by tasks that come to the right worker earlier. Those are the published
//! weaknesses of the design, and they are kept.
//!
//! Ours: how the switch knows depths. A worker's TOKEN reports that a task ended, so a worker's depth is n
//! minus its tokens in the switch. The shared front counts reports, lets workers repeat them, and never
//! takes one twice. The slice's limit bounds the number of recirculating tasks; beyond it a task is
//! rejected.
//!
//! The stages, behind the front's 0 and 1: the start of the next task (1), one array of tokens for each
//! worker that a pass looks at (from 2), the count of recirculating tasks, `sent` and `seen_out`. The
//! arrays are striped by seat, so that neighbours are in different arrays; a pass ends where the list of
//! workers ends.
//!
//! Left out: R2P2's own transport, and its variant that runs in a server.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use sluice_wire::sizes::QUOTA_LIMIT;
use sluice_wire::tables::{Feed, SliceRow, SliceState, WorkerRow};
use sluice_wire::{Nanos, Rank, RejectReason, SliceId, WorkerId};

use crate::arguments;
use crate::config::Config;
use crate::front::{BackStages, Entering, Front, Granted, Queued, Scheduler};
use crate::pipeline::{Layout, Pass, Register};
use crate::program::{Cargo, Circulating, Program, Verdict};
use crate::refusal::Refusal;
use crate::seats::{Seat, Seats};
use crate::settings::{About, ProgramSettings};
use crate::traits::ProgramTraits;

/// The stage of the first array of tokens.
const TOKENS_STAGE: u8 = 2;

/// R2P2's program and memory.
#[derive(Debug)]
pub struct R2p2 {
    front: Front,
    settings: Settings,
    seats: Seats,
    /// The seat at which each slice's next task starts to look.
    start: Register<u16>,
    /// The tokens of the workers. The array of a seat is its position modulo the number of arrays.
    tokens: Vec<Register<u8>>,
    /// How many tasks of each slice recirculate.
    circulating: Register<u32>,
}

/// How far a task has looked; the memo of a recirculating task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    slice: SliceId,
    /// The next seat to look at.
    position: u16,
    /// How many seats the task has looked at.
    visited: u32,
}

impl Progress {
    const fn memo(self) -> u64 {
        (self.slice.0 as u64) << 48 | (self.position as u64) << 32 | self.visited as u64
    }

    const fn of(memo: u64) -> Self {
        Self { slice: SliceId((memo >> 48) as u16), position: (memo >> 32) as u16, visited: memo as u32 }
    }
}

impl R2p2 {
    fn new(settings: Settings, config: Config) -> Self {
        let behind = TOKENS_STAGE + settings.sample;
        let back = BackStages { gen_out: behind, sent: behind + 1 };
        let mut front = Front::new(Self::NAME, Feed::TOKENS, config, back);
        front.quota_max = front.quota_max.max(settings.depth);
        let layout = &mut front.layout;
        let slices = config.slices as usize;
        let seats = Seats::new(&config);
        Seats::tables(layout, behind, &config);
        let start = Register::new(layout, "start", 1, 16, slices, 0);
        let tokens = (0..settings.sample).map(|column| tokens(layout, column, settings, &config)).collect();
        let circulating = Register::new(layout, "circulating", behind, 32, slices, 0);
        Self { front, settings, seats, start, tokens, circulating }
    }

    /// The array of a seat's tokens, and the cell in it.
    #[inline]
    fn cell(&self, seat: Seat) -> (usize, usize) {
        let (position, sample) = (seat.position as usize, self.settings.sample as usize);
        let rows = (self.front.config.workers as usize).div_ceil(sample);
        (position % sample, seat.slice as usize * rows + position / sample)
    }

    /// Looks at the next seats, in the order of their arrays' stages, and takes the first token whose worker
    /// has fewer than
    /// `target` tasks.
    fn look(&mut self, pass: &mut Pass, trip: Progress, until: u16, target: u32) -> Option<Seat> {
        let spare = u32::from(self.settings.depth) - target;
        let is_below = |tokens: u8| u32::from(tokens) > spare;
        let sample = u16::from(self.settings.sample);
        for column in 0..sample {
            let ahead = (column + sample - trip.position % sample) % sample;
            let seat = Seat { slice: trip.slice.0, position: trip.position + ahead };
            if seat.position >= until {
                continue;
            }
            let (array, cell) = self.cell(seat);
            let held = self.tokens[array].branch(pass, cell, is_below, |tokens| tokens - 1, |tokens| tokens);
            if is_below(held) {
                return Some(seat);
            }
        }
        None
    }

    /// Counts a task that no longer recirculates.
    fn settle(&mut self, pass: &mut Pass, trip: Progress) -> u32 {
        self.circulating.update(pass, trip.slice.0 as usize, |circulating| circulating.saturating_sub(1))
    }

    fn start(&mut self, pass: &mut Pass, slice: SliceId, seats: u16) -> Progress {
        let step = self.settings.step;
        let next = |position: u16| (position.wrapping_add(step)) % seats;
        let position = self.start.update(pass, slice.0 as usize, next);
        Progress { slice, position, visited: 0 }
    }

    fn put_tokens(&mut self, seat: Seat, tokens: u8) {
        let (array, cell) = self.cell(seat);
        self.tokens[array].poke(cell, tokens);
    }

    fn tokens_at(&self, seat: Seat) -> u8 {
        let (array, cell) = self.cell(seat);
        self.tokens[array].peek(cell)
    }
}

impl Scheduler for R2p2 {
    const NAME: &'static str = "r2p2";

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    /// A token comes, after a task ended or from a new worker: the worker's depth falls by one.
    fn token(&mut self, pass: &mut Pass, _: Nanos, _: SliceId, granted: Granted, _: Rank) -> Verdict {
        let Some(seat) = self.seats.seat(granted.worker) else { return Verdict::Drop(Refusal::Closed) };
        let (array, cell) = self.cell(seat);
        self.tokens[array].update(pass, cell, |tokens| tokens.saturating_add(1));
        self.front.note_granted(pass, granted);
        Verdict::Parked
    }

    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, memo } = task;
        let is_new = memo.is_none();
        let slice = match memo.map(Progress::of) {
            Some(trip) => trip.slice,
            None => match self.front.open_slice(submit) {
                Ok((slice, _)) => slice,
                Err(reason) => return self.front.reject(submit, reason),
            },
        };
        let SliceRow { open, limit, .. } = self.front.tables.slices[slice.0 as usize];
        let seats = self.seats.of(slice);
        if !open || seats == 0 {
            if let Some(memo) = memo {
                self.settle(pass, Progress::of(memo));
            }
            return self.front.reject(submit, RejectReason::NoWorkers);
        }
        let mut trip = memo.map_or_else(|| self.start(pass, slice, seats), Progress::of);
        if trip.position >= seats {
            trip.position = 0;
        }
        let until = (trip.position + u16::from(self.settings.sample)).min(seats);
        let round = self.settings.rise.map_or(seats, u16::from);
        let target = (trip.visited / u32::from(round) + 1).min(self.settings.depth.into());
        let found = self.look(pass, trip, until, target);
        let s = slice.0 as usize;
        let circulating = match (found, is_new) {
            (Some(_), true) => self.circulating.read(pass, s),
            (Some(_), false) => self.settle(pass, trip).saturating_sub(1),
            (None, true) => {
                self.circulating.branch(pass, s, |count| count < limit, |count| count + 1, |count| count)
            }
            (None, false) => 0,
        };
        let Some(seat) = found else {
            if is_new && circulating >= limit {
                return self.front.reject(submit, RejectReason::QueueFull);
            }
            trip.visited = trip.visited.saturating_add((until - trip.position).into());
            trip.position = until % seats;
            return Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo: trip.memo() });
        };
        let queued = Queued { wait: now.since(arrived), occupancy: circulating };
        self.front.push(pass, submit, self.seats.worker(seat), queued)
    }

    /// No task waits in memory. A recirculating task rejects itself after the slice is closed, and a
    /// worker's tokens leave with its seat.
    fn slice_state(&self, slice: usize) -> SliceState {
        let circulating = self.circulating.peek(slice);
        let seats =
            (0..self.seats.of(SliceId(slice as u16))).map(|position| Seat { slice: slice as u16, position });
        let parked: i32 = seats.map(|seat| i32::from(self.tokens_at(seat))).sum();
        let balance = if circulating > 0 { -(circulating as i32) } else { parked };
        SliceState { balance, ..SliceState::default() }
    }

    fn worker_set(&mut self, worker: WorkerId, row: Option<&WorkerRow>) {
        let change = self.seats.set(worker, row);
        if let Some((seat, last)) = change.left {
            let moved = self.tokens_at(last);
            self.put_tokens(seat, moved);
            self.put_tokens(last, 0);
        }
        if let Some(seat) = change.taken {
            self.put_tokens(seat, 0);
        }
    }

    fn grants_ended(&mut self, worker: WorkerId) {
        if let Some(seat) = self.seats.seat(worker) {
            self.put_tokens(seat, 0);
        }
    }
}

fn tokens(layout: &mut Layout, column: u8, settings: Settings, config: &Config) -> Register<u8> {
    const NAMES: [&str; 8] =
        ["tokens 0", "tokens 1", "tokens 2", "tokens 3", "tokens 4", "tokens 5", "tokens 6", "tokens 7"];
    let rows = config.workers.div_ceil(settings.sample.into());
    let cells = rows as usize * config.slices as usize;
    Register::new(layout, NAMES[column as usize], TOKENS_STAGE + column, 8, cells, 0)
}

/// How deep workers' queues may be, and how many workers a task looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    depth: u8,
    sample: u8,
    step: u16,
    /// Workers that a task looks at before its target rises; `None` means all.
    rise: Option<u8>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { depth: 2, sample: 4, step: 4, rise: None }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        write!(f, "{}", self.depth)?;
        if self.sample != default.sample {
            write!(f, ",sample={}", self.sample)?;
        }
        if self.step != default.step {
            write!(f, ",step={}", self.step)?;
        }
        self.rise.map_or(Ok(()), |rise| write!(f, ",rise={rise}"))
    }
}

impl ProgramSettings for Settings {
    fn about(&self) -> About {
        About {
            name: R2p2::NAME,
            about: "a task goes round in the switch until it finds a worker with fewer than N tasks: JBSQ(N)",
            arguments: "N, the bound of a worker's queue: 1 to 16; sample=K, workers looked at in a pass: 1 \
                        to 8; step=K, how much further the next task starts: 1 to 255; rise=K, workers \
                        looked at before the bound that a task looks for rises: 1 to 255 (all of them, \
                        unless stated)",
            example: "r2p2:2",
        }
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        match argument.split_once('=') {
            None => self.depth = arguments::number(argument, 1..=QUOTA_LIMIT)?,
            Some(("sample", number)) => self.sample = arguments::number(number, 1..=8)?,
            Some(("step", number)) => self.step = arguments::number(number, 1..=255)?.into(),
            Some(("rise", number)) => self.rise = Some(arguments::number(number, 1..=255)?),
            Some(_) => return None,
        }
        Some(())
    }

    fn traits(&self) -> ProgramTraits {
        ProgramTraits::new(self.depth, Feed::TOKENS)
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        Box::new(R2p2::new(*self, config))
    }
}
