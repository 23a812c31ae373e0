//! Pallas: each type of task has workers of its own, which get its tasks in weighted turns (Rain §5).
//!
//! The controller maps types to slices. A slice's workers take turns, and a task is pushed to the worker
//! whose turn it is, however many tasks that worker holds. No task waits in the switch, the switch knows no
//! load, and no reply passes it. A long task blocks those behind it; that is the published weakness of the
//! design, and it is kept.
//!
//! Ours: the order of turns. A slice's schedule lists each worker as often as its weight says, spread
//! evenly. The switch's control software writes the schedule anew when a worker registers or leaves. The
//! shared front handles loss and registration as far as it can: only the client tries a lost DISPATCH
//! again.
//!
//! The stages, behind the front's 0 and 1: the turn (2), the schedule (3, a match table), `sent` and
//! `seen_out` (4).
//!
//! Left out: how Pallas finds the types and the split of workers (the plan says them here), and weights
//! that follow load.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use sluice_wire::tables::{Feed, SliceState, WorkerRow};
use sluice_wire::{Nanos, RejectReason, SliceId, WorkerId};

use crate::arguments;
use crate::config::Config;
use crate::front::{BackStages, Entering, Front, Queued, Scheduler};
use crate::pipeline::{Pass, Register};
use crate::program::{Program, Verdict};
use crate::seats::{Seat, Seats};
use crate::settings::{About, ProgramSettings};
use crate::traits::ProgramTraits;

/// The largest weight.
const WEIGHT_MAX: u8 = 16;

/// Pallas' program and memory.
#[derive(Debug)]
pub struct Pallas {
    front: Front,
    settings: Settings,
    seats: Seats,
    /// The next position in each slice's schedule.
    turn: Register<u32>,
    schedules: Vec<Vec<WorkerId>>,
}

impl Pallas {
    fn new(settings: Settings, config: Config) -> Self {
        let back = BackStages { gen_out: 3, sent: 4 };
        let mut front = Front::new(Self::NAME, settings.traits().feed, config, back);
        let layout = &mut front.layout;
        let slices = config.slices as usize;
        let seats = Seats::new(&config);
        let turn = Register::new(layout, "turn", 2, 32, slices, 0);
        let rows = slices * config.workers as usize * settings.weights.largest() as usize;
        layout.table("schedule", 3, 16, rows);
        Self { front, settings, seats, turn, schedules: alloc::vec![Vec::new(); slices] }
    }

    /// Writes a slice's schedule anew.
    fn schedule(&mut self, slice: u16) {
        let seats = (0..self.seats.of(SliceId(slice))).map(|position| Seat { slice, position });
        let workers = seats.map(|seat| self.seats.worker(seat));
        let weighted = workers.map(|worker| (worker, self.settings.weights.of(worker)));
        self.schedules[slice as usize] = spread(weighted);
    }
}

/// Lists each worker as often as its weight says. A worker's turn number `i` comes at (i + ½) / weight of
/// the schedule.
fn spread(workers: impl Iterator<Item = (WorkerId, u8)>) -> Vec<WorkerId> {
    let turns =
        |(worker, weight): (WorkerId, u8)| (0..weight).map(move |i| (2 * u32::from(i) + 1, weight, worker));
    let mut turns: Vec<(u32, u8, WorkerId)> = workers.flat_map(turns).collect();
    turns.sort_by_key(|(_, _, worker)| *worker);
    turns.sort_by(|(i, weight, _), (j, other, _)| (i * u32::from(*other)).cmp(&(j * u32::from(*weight))));
    turns.into_iter().map(|(_, _, worker)| worker).collect()
}

impl Scheduler for Pallas {
    const NAME: &'static str = "pallas";

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, .. } = task;
        let slice = match self.front.open_slice(submit) {
            Ok((slice, _)) => slice,
            Err(reason) => return self.front.reject(submit, reason),
        };
        let schedule = &self.schedules[slice.0 as usize];
        let turns = schedule.len() as u32;
        let is_last = |turn: u32| turn + 1 >= turns;
        let turn = self.turn.branch(pass, slice.0 as usize, is_last, |_| 0, |turn| turn + 1);
        let Some(worker) = schedule.get(turn as usize).or(schedule.first()).copied() else {
            return self.front.reject(submit, RejectReason::NoWorkers);
        };
        let queued = Queued { wait: now.since(arrived), occupancy: 0 };
        self.front.push(pass, submit, worker, queued)
    }

    /// No task waits in this program.
    fn slice_state(&self, _: usize) -> SliceState {
        SliceState::default()
    }

    fn worker_set(&mut self, worker: WorkerId, row: Option<&WorkerRow>) {
        let change = self.seats.set(worker, row);
        let left = change.left.map(|(seat, _)| seat);
        for seat in [left, change.taken].into_iter().flatten() {
            self.schedule(seat.slice);
        }
    }
}

/// The weights of workers by index; after the last weight the first follows again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Weights {
    of: [u8; 8],
    len: u8,
}

impl Weights {
    fn of(&self, worker: WorkerId) -> u8 {
        self.of[(worker.0 % u16::from(self.len)) as usize]
    }

    fn listed(&self) -> &[u8] {
        &self.of[..self.len.into()]
    }

    fn largest(&self) -> u8 {
        self.listed().iter().copied().max().unwrap_or(1)
    }

    fn read(text: &str) -> Option<Self> {
        let mut weights = Self { of: [1; 8], len: 0 };
        for number in text.split('/') {
            *weights.of.get_mut(usize::from(weights.len))? = arguments::number(number, 1..=WEIGHT_MAX)?;
            weights.len += 1;
        }
        Some(weights)
    }
}

/// The weights of the workers' turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    weights: Weights,
}

impl Default for Settings {
    fn default() -> Self {
        Self { weights: Weights { of: [1; 8], len: 1 } }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return Ok(());
        }
        f.write_str("weights=")?;
        for (i, weight) in self.weights.listed().iter().enumerate() {
            write!(f, "{}{weight}", if i == 0 { "" } else { "/" })?;
        }
        Ok(())
    }
}

impl ProgramSettings for Settings {
    fn about(&self) -> About {
        About {
            name: Pallas::NAME,
            about: "each type has workers of its own, which are pushed its tasks in weighted turns",
            arguments: "weights=A/B/…, how often workers 0, 1, … have their turn, repeated over all: up to \
                        eight numbers, 1 to 16",
            example: "pallas:weights=2/1",
        }
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        self.weights = Weights::read(argument.strip_prefix("weights=")?)?;
        Some(())
    }

    fn traits(&self) -> ProgramTraits {
        ProgramTraits::new(0, Feed::Pushed { reports: false })
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        Box::new(Pallas::new(*self, config))
    }
}
