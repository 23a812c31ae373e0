//! The slice step of adaptive scheduling: it decides which slices even out their depths, and which slice
//! lends a worker to which (Rain §3.3).
//!
//! At the end of each interval an agent sends a [`SliceTally`] for each slice of its workers. It is then
//! told what the slice's workers on other servers did (`SliceOthers`), because some rules look at a whole
//! slice. [`slice_step`] decides on the sums of all agents. A slice with overloaded and idle workers evens
//! out its depths. A slice with overloaded workers only may take a worker. A slice whose idleness adds up
//! to more than a floor may give one. The most overloaded slice is paired with the idlest until one side
//! runs out. A taker takes one worker per interval, and a giver's idleness drops by one worker with each
//! that it gives. The giver's worker with the smallest depth moves, and starts at the taker's mean depth.
//!
//! No slice gives its last worker. The module `adapting` carries the step out.

use alloc::string::String;
use alloc::vec::Vec;

use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tallies::SliceTally;
use sluice_wire::{Nanos, SliceId, WorkerId};

/// One whole worker, in the tallies' unit of a thousandth.
const WORKER_MILLI: u32 = 1_000;

/// One change of a slice step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceChange {
    /// All workers of a slice get this depth.
    Even {
        slice: SliceId,
        /// The depth of all these workers from now on.
        depth: u8,
    },
    /// A worker goes from one slice to another.
    Move {
        worker: WorkerId,
        from: SliceId,
        /// How idle the giver was, in thousandths of a worker.
        idle_milli: u32,
        to: SliceId,
        /// How many of the taker's workers were overloaded.
        overloads: u32,
        /// The worker's depth from now on.
        depth: u8,
    },
}

/// Decides on one tally per slice. A slice gives only the idleness beyond `idle_floor_milli`. `may_move`
/// says whether a worker can serve a slice; if it cannot, the giver's worker with the next smallest depth
/// is asked for.
pub(crate) fn slice_step(
    tallies: &[SliceTally],
    idle_floor_milli: u32,
    mut may_move: impl FnMut(WorkerId, SliceId) -> bool,
) -> Vec<SliceChange> {
    let mut changes = Vec::new();
    let (mut takers, mut givers) = (Vec::new(), Vec::new());
    for tally in tallies.iter().filter(|tally| !tally.depths.is_empty()) {
        let is_idle = tally.idle_milli > idle_floor_milli;
        match (tally.overloads > 0, is_idle) {
            (true, true) => {
                changes.push(SliceChange::Even { slice: tally.slice, depth: mean_depth(tally) });
            }
            (true, false) => takers.push(tally),
            (false, true) => givers.push(tally.clone()),
            (false, false) => {}
        }
    }
    takers.sort_by_key(|tally| (core::cmp::Reverse(tally.overloads), tally.slice));
    for taker in takers {
        let fits = |giver: &SliceTally| giver.depths.len() > 1 && giver.idle_milli > idle_floor_milli;
        let able = givers.iter_mut().filter(|giver| fits(giver));
        let Some(giver) = able.min_by_key(|g| (core::cmp::Reverse(g.idle_milli), g.slice)) else { break };
        giver.depths.sort_by_key(|(worker, depth)| (*depth, *worker));
        let Some(place) = giver.depths.iter().position(|(worker, _)| may_move(*worker, taker.slice)) else {
            continue;
        };
        let (worker, _) = giver.depths.remove(place);
        let (from, idle_milli, to, overloads) = (giver.slice, giver.idle_milli, taker.slice, taker.overloads);
        let depth = mean_depth(taker);
        changes.push(SliceChange::Move { worker, from, idle_milli, to, overloads, depth });
        giver.idle_milli = giver.idle_milli.saturating_sub(WORKER_MILLI);
    }
    changes
}

/// The mean of a slice's depths, rounded, and at most what a worker may have.
fn mean_depth(tally: &SliceTally) -> u8 {
    let sum: u32 = tally.depths.iter().map(|(_, depth)| u32::from(*depth)).sum();
    let count = tally.depths.len().max(1) as u32;
    u8::try_from((sum + count / 2) / count).unwrap_or(QUOTA_MAX).clamp(1, QUOTA_MAX)
}

/// The agents' reports of the present interval, and the time of the step.
#[derive(Debug, Default)]
pub(crate) struct Adapting {
    pub(crate) reports: Vec<AgentReport>,
    pub(crate) due: Option<Nanos>,
}

#[derive(Debug)]
pub(crate) struct AgentReport {
    pub(crate) server: String,
    pub(crate) advises: bool,
    pub(crate) tallies: Vec<SliceTally>,
}

/// The sums over all agents for each slice; agents that only advise are left out.
pub(crate) fn sums(reports: Vec<AgentReport>) -> Vec<SliceTally> {
    let mut sums: Vec<SliceTally> = Vec::new();
    for tally in reports.into_iter().filter(|report| !report.advises).flat_map(|report| report.tallies) {
        match sums.iter_mut().find(|sum| sum.slice == tally.slice) {
            Some(sum) => {
                sum.overloads = sum.overloads.saturating_add(tally.overloads);
                sum.idle_milli = sum.idle_milli.saturating_add(tally.idle_milli);
                sum.tasks = sum.tasks.saturating_add(tally.tasks);
                sum.depths.extend(tally.depths);
            }
            None => sums.push(tally),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    const FLOOR: u32 = 1_000;

    fn tally(slice: u16, overloads: u32, idle_milli: u32, depths: &[(u16, u8)]) -> SliceTally {
        let depths = depths.iter().map(|(worker, depth)| (WorkerId(*worker), *depth)).collect();
        SliceTally { slice: SliceId(slice), overloads, idle_milli, depths, tasks: 0 }
    }

    fn step(tallies: &[SliceTally]) -> Vec<SliceChange> {
        slice_step(tallies, FLOOR, |_, _| true)
    }

    fn moves(changes: &[SliceChange]) -> Vec<(u16, u16, u16, u8)> {
        let of = |change: &SliceChange| match *change {
            SliceChange::Move { worker, from, to, depth, .. } => Some((worker.0, from.0, to.0, depth)),
            SliceChange::Even { .. } => None,
        };
        changes.iter().filter_map(of).collect()
    }

    #[test]
    fn the_giver_lends_its_shallowest_worker_at_the_takers_mean_depth() {
        let busy = tally(0, 2, 0, &[(0, 3), (1, 4)]);
        let idle = tally(1, 0, 2_500, &[(2, 2), (3, 1), (4, 2)]);
        assert_eq!(moves(&step(&[busy, idle])), [(3, 1, 0, 4)]);
    }

    #[test]
    fn overload_and_idleness_in_one_slice_even_out_its_depths() {
        let changes = step(&[tally(0, 1, 1_500, &[(0, 1), (1, 4)]), tally(1, 0, 5_000, &[(2, 1), (3, 1)])]);
        assert_eq!(changes, [SliceChange::Even { slice: SliceId(0), depth: 3 }]);
    }

    #[test]
    fn the_most_overloaded_is_served_first_and_each_taker_once() {
        let takers = [tally(0, 1, 0, &[(0, 1)]), tally(1, 5, 0, &[(1, 2)])];
        let giver = tally(2, 0, 1_900, &[(2, 1), (3, 1), (4, 1)]);
        let [first, second] = takers;
        assert_eq!(moves(&step(&[first, second, giver])), [(2, 2, 1, 2)]);
    }

    #[test]
    fn a_giver_gives_while_it_is_idle_beyond_the_floor() {
        let takers = (0..4).map(|slice| tally(slice, 1, 0, &[(slice, 1)]));
        let givers = [tally(8, 0, 3_500, &[(8, 1), (9, 1), (10, 1), (11, 1)]), tally(9, 0, 900, &[(12, 1)])];
        let changes = step(&takers.chain(givers).collect::<Vec<_>>());
        assert_eq!(moves(&changes), [(8, 8, 0, 1), (9, 8, 1, 1), (10, 8, 2, 1)]);
    }

    #[test]
    fn idleness_of_just_the_floor_counts_for_nothing() {
        let takers = [tally(0, 1, FLOOR, &[(0, 1)]), tally(1, 1, 0, &[(1, 1)])];
        let giver = tally(2, 0, 2 * FLOOR, &[(2, 1), (3, 1), (4, 1)]);
        let changes = step(&[&takers[..], &[giver]].concat());
        assert_eq!((changes.len(), moves(&changes)), (1, vec![(2, 2, 0, 1)]));
    }

    #[test]
    fn a_worker_that_may_not_move_is_passed_over() {
        let tallies = [tally(0, 1, 0, &[(0, 2)]), tally(1, 0, 3_000, &[(1, 1), (2, 1)])];
        let changes = slice_step(&tallies, FLOOR, |worker, _| worker != WorkerId(1));
        assert_eq!(moves(&changes), [(2, 1, 0, 2)]);
    }

    proptest! {
        #[test]
        fn no_slice_is_emptied_and_no_worker_moves_twice(
            slices in proptest::collection::vec((0_u32..4, 0_u32..9_000, 1_usize..5), 1..7)
        ) {
            let mut next = 0;
            let tallies: Vec<_> = slices.iter().enumerate().map(|(slice, (overloads, idle, workers))| {
                let depths: Vec<_> = (0..*workers).map(|i| (next + i as u16, 1 + (i % 8) as u8)).collect();
                next += *workers as u16;
                tally(slice as u16, *overloads, *idle, &depths)
            }).collect();
            let moved = moves(&step(&tallies));
            for tally in &tallies {
                let given = moved.iter().filter(|m| m.1 == tally.slice.0).count();
                let taken = moved.iter().filter(|m| m.2 == tally.slice.0).count();
                prop_assert!(given < tally.depths.len() && taken <= usize::from(tally.overloads > 0));
                prop_assert!(given == 0 || (tally.overloads == 0 && tally.idle_milli > FLOOR));
            }
            let mut workers: Vec<_> = moved.iter().map(|m| m.0).collect();
            workers.dedup();
            prop_assert_eq!(workers.len(), moved.len());
        }
    }
}
