//! How samples become a verdict on a worker, and verdicts a tally of its slice.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use sluice_wire::tallies::SliceTally;
use sluice_wire::{Nanos, SliceId, WorkerId};

use super::gauge::Numbers;
use super::replay::Wish;
use super::settings::AgentSettings;

/// A verdict on one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One token less: tasks wait for each other at the worker while the switch's queue is empty.
    Shallower,
    /// One token more: tasks wait in the switch.
    Deeper,
    /// Overload: no depth helps, since the slice gets more work than it can serve.
    Overloaded,
    /// The slowdown is within its bound.
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

    /// The verdict under our rule. `wish` is the depth that all workers of the slice should have, if it is
    /// known. If the slowdown would stay too high at that depth, or is too high although the depth is
    /// right, the load is the problem: the slice reports overload, and still goes to that depth.
    pub(super) fn of_wish(
        settings: &AgentSettings,
        depth: u8,
        wish: Option<Wish>,
        numbers: &Numbers,
    ) -> (Self, u8) {
        let to = wish.map_or(depth, |wish| wish.depth.min(settings.depth_max));
        let is_slow = numbers.tasks > 0 && numbers.slowdown_p99 > settings.slowdown_max;
        let stays_slow = to == depth || wish.is_some_and(|wish| wish.slowdown > settings.slowdown_max);
        let verdict = match to.cmp(&depth) {
            _ if is_slow && stays_slow => Self::Overloaded,
            Ordering::Greater => Self::Deeper,
            Ordering::Less => Self::Shallower,
            Ordering::Equal => Self::Calm,
        };
        (verdict, to)
    }

    /// The depth that follows from the verdict.
    pub(super) const fn depth(self, depth: u8) -> u8 {
        match self {
            Self::Shallower => depth - 1,
            Self::Deeper => depth + 1,
            Self::Overloaded | Self::Calm => depth,
        }
    }
}

/// A verdict with the depth that follows, and the numbers behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    pub at: Nanos,
    /// The worker that was judged.
    pub worker: WorkerId,
    /// The slice that it serves.
    pub slice: SliceId,
    /// The depth before.
    pub from: u8,
    /// The new depth; in [`Mode::Advise`](super::Mode::Advise) the depth that the agent recommends.
    pub to: u8,
    pub verdict: Verdict,
    /// The numbers behind the verdict.
    pub numbers: Numbers,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, from, to, numbers, .. } = self;
        match self.verdict {
            Verdict::Shallower | Verdict::Deeper => write!(f, "worker {worker}: depth {from} to {to}: ")?,
            Verdict::Overloaded if from != to => {
                write!(f, "worker {worker}: overloaded, depth {from} to {to}: ")?;
            }
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

/// The slice's tally in `tallies`; appends one if there is none.
pub(super) fn tally_of(slice: SliceId, tallies: &mut Vec<SliceTally>) -> &mut SliceTally {
    let place = tallies.iter().position(|tally| tally.slice == slice).unwrap_or_else(|| {
        tallies.push(SliceTally::new(slice));
        tallies.len() - 1
    });
    &mut tallies[place]
}

/// Counts a worker's verdict in its slice's tally.
pub(super) fn count(
    tally: &mut SliceTally,
    worker: WorkerId,
    depth: u8,
    verdict: Verdict,
    numbers: &Numbers,
) {
    tally.depths.push((worker, depth));
    tally.tasks += numbers.tasks;
    match verdict {
        Verdict::Overloaded => tally.overloads += 1,
        Verdict::Calm => tally.idle_milli += (numbers.idle_share * 1_000.0) as u32,
        Verdict::Shallower | Verdict::Deeper => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a worker at depth 2, and the depth that follows.
    fn said(slowdown_p99: f64, wish: Option<(u8, f64)>) -> (Verdict, u8) {
        let numbers = Numbers { tasks: 100, slowdown_p99, ..Numbers::default() };
        let wish = wish.map(|(depth, slowdown)| Wish { depth, slowdown });
        Verdict::of_wish(&AgentSettings::default(), 2, wish, &numbers)
    }

    #[test]
    fn a_wish_is_followed_and_one_that_is_not_enough_is_overload_too() {
        assert_eq!(said(4.0, None), (Verdict::Calm, 2));
        assert_eq!(said(4.0, Some((2, 4.0))), (Verdict::Calm, 2));
        assert_eq!(said(4.0, Some((1, 3.0))), (Verdict::Shallower, 1));
        assert_eq!(said(40.0, Some((3, 8.0))), (Verdict::Deeper, 3));
        assert_eq!(said(40.0, Some((3, 30.0))), (Verdict::Overloaded, 3));
        assert_eq!(said(40.0, Some((2, 8.0))), (Verdict::Overloaded, 2), "the depth is as it should be");
        assert_eq!(said(40.0, None), (Verdict::Overloaded, 2));
    }

    #[test]
    fn what_is_just_at_a_limit_is_within_it() {
        let settings = AgentSettings::default();
        let slow = Numbers { tasks: 100, slowdown_p99: 40.0, ..Numbers::default() };
        let at_theta = Numbers { worker_share: settings.theta, ..slow };
        assert_eq!(Verdict::of(&settings, 2, &at_theta), Verdict::Deeper);
        let limit = settings.slowdown_max;
        assert_eq!(said(limit, Some((2, 40.0))), (Verdict::Calm, 2), "as slow as may be");
        assert_eq!(said(40.0, Some((3, limit))), (Verdict::Deeper, 3), "it will be as slow as may be");
        let nobody = Numbers { tasks: 0, ..slow };
        assert_eq!(Verdict::of_wish(&settings, 2, None, &nobody), (Verdict::Calm, 2));
    }

    #[test]
    fn an_overload_says_whether_the_depth_changes_too() {
        let (at, worker, slice) = (Nanos(0), WorkerId(1), SliceId(0));
        let (verdict, numbers) = (Verdict::Overloaded, Numbers::default());
        let decision = |to| Decision { at, worker, slice, from: 2, to, verdict, numbers };
        let said = |to| alloc::format!("{}", decision(to));
        assert!(said(3).starts_with("worker 1: overloaded, depth 2 to 3: "), "{}", said(3));
        assert!(said(2).starts_with("worker 1: overloaded at depth 2: "), "{}", said(2));
    }

    #[test]
    fn each_slice_has_a_tally_of_its_own() {
        let mut tallies = Vec::new();
        for slice in [0, 1, 0] {
            tally_of(SliceId(slice), &mut tallies).tasks += 1;
        }
        let of = |tally: &SliceTally| (tally.slice.0, tally.tasks);
        assert_eq!(tallies.iter().map(of).collect::<Vec<_>>(), [(0, 2), (1, 1)]);
    }
}
