//! How a worker is judged by its samples, and what that means for its slice.

use alloc::vec::Vec;
use core::fmt;

use sluice_wire::{Nanos, SliceId, WorkerId};

use super::gauge::Numbers;
use super::settings::AgentSettings;

/// What a worker's samples say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Tasks wait for each other at the worker while the switch's queue is empty: one token less.
    Shallower,
    /// Tasks wait in the switch: one token more.
    Deeper,
    /// Neither helps: the slice has too much to do.
    Overloaded,
    /// The slowdown is as it should be.
    Calm,
}

impl Verdict {
    /// The paper's rule.
    pub(super) fn of(settings: &AgentSettings, depth: u8, numbers: &Numbers) -> Self {
        if numbers.tasks == 0 || numbers.slowdown_p99 <= settings.slowdown_max {
            return Self::Calm;
        }
        let is_at_worker = numbers.worker_share > settings.theta;
        if is_at_worker && numbers.occupancy_p99 == 0 && depth > 1 {
            Self::Shallower
        } else if !is_at_worker && depth < settings.depth_max {
            Self::Deeper
        } else {
            Self::Overloaded
        }
    }

    /// Our rule: `wish` is the depth of all workers of the slice, if it is to change. Where no depth helps, what is wrong
    /// is the load.
    pub(super) fn of_wish(
        settings: &AgentSettings,
        depth: u8,
        wish: Option<u8>,
        numbers: &Numbers,
    ) -> (Self, u8) {
        match wish {
            Some(wish) if wish > depth => (Self::Deeper, wish.min(settings.depth_max)),
            Some(wish) if wish < depth => (Self::Shallower, wish),
            _ if numbers.tasks == 0 || numbers.slowdown_p99 <= settings.slowdown_max => (Self::Calm, depth),
            _ => (Self::Overloaded, depth),
        }
    }

    /// The depth that follows.
    pub(super) const fn depth(self, depth: u8) -> u8 {
        match self {
            Self::Shallower => depth - 1,
            Self::Deeper => depth + 1,
            Self::Overloaded | Self::Calm => depth,
        }
    }
}

/// A judgement with the numbers behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// When.
    pub at: Nanos,
    /// Whom it is about.
    pub worker: WorkerId,
    /// The slice that it serves.
    pub slice: SliceId,
    /// The depth before.
    pub from: u8,
    /// The depth afterwards, or as it would be if the agent only advises.
    pub to: u8,
    /// The judgement.
    pub verdict: Verdict,
    /// What it rests on.
    pub numbers: Numbers,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, from, to, numbers, .. } = self;
        match self.verdict {
            Verdict::Shallower | Verdict::Deeper => write!(f, "worker {worker}: depth {from} to {to}: ")?,
            Verdict::Overloaded => write!(f, "worker {worker}: overloaded at depth {from}: ")?,
            Verdict::Calm => write!(f, "worker {worker}: depth {from} stays: ")?,
        }
        let share = numbers.worker_share * 100.0;
        let (slowdown, queue) = (numbers.slowdown_p99, numbers.occupancy_p99);
        write!(
            f,
            "p99 slowdown {slowdown:.1}, {share:.0} % of the wait at the worker, p99 switch queue {queue}"
        )
    }
}

/// What one agent's workers of a slice say together in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceTally {
    /// The slice.
    pub slice: SliceId,
    /// Workers that are overloaded.
    pub overloads: u32,
    /// The idle shares of workers whose slowdown is as it should be, in thousandths of a worker.
    pub idle_milli: u32,
    /// The workers and their depths.
    pub depths: Vec<(WorkerId, u8)>,
}

impl SliceTally {
    /// The slice's tally; a new one if it has none yet.
    pub(super) fn of(slice: SliceId, tallies: &mut Vec<Self>) -> &mut Self {
        let place = tallies.iter().position(|tally| tally.slice == slice).unwrap_or_else(|| {
            tallies.push(Self { slice, overloads: 0, idle_milli: 0, depths: Vec::new() });
            tallies.len() - 1
        });
        &mut tallies[place]
    }

    pub(super) fn count(&mut self, worker: WorkerId, depth: u8, verdict: Verdict, numbers: &Numbers) {
        self.depths.push((worker, depth));
        match verdict {
            Verdict::Overloaded => self.overloads += 1,
            Verdict::Calm => self.idle_milli += (numbers.idle_share * 1_000.0) as u32,
            Verdict::Shallower | Verdict::Deeper => {}
        }
    }
}
