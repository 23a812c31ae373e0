//! Which token a task takes if passes run one after the other: the oldest one of the lowest rank.

use sluice_rendezvous::{Ring, RingPlan};

use crate::explorer::alone;
use crate::programs::{Op, Scene};

const RANKS: usize = 4;
const EVENTS: u32 = 5;

#[test]
fn every_order_of_five_events_takes_the_oldest_of_the_least_rank() {
    for number in 0..(RANKS + 1).pow(EVENTS) {
        let events = (0..EVENTS).map(|at| number / (RANKS + 1).pow(at) % (RANKS + 1));
        let (ops, parked) = told(events);
        let scene = Scene {
            ring: Ring { cell_bits: 4, part_bits: 2, ahead: 2 },
            rings: RingPlan::Ranked { ranks: RANKS, tries: 1 },
            start: 0,
            before: ops,
            cpus: vec![],
        };
        let ledger = alone(&scene).unwrap_or_else(|why| panic!("{why}, in {scene:?}"));
        assert_eq!(ledger.parked(), parked, "{scene:?}");
    }
}

/// Turns events into passes; an event beyond the ranks is a task. Also returns which tokens are parked
/// then, computed with a plain list.
fn told(events: impl Iterator<Item = usize>) -> (Vec<Op>, Vec<usize>) {
    let (mut ops, mut parked, mut waiting): (Vec<Op>, Vec<(usize, usize)>, usize) = <_>::default();
    let (mut tokens, mut tasks) = (0, 0);
    for event in events {
        if event == RANKS {
            ops.push(Op::Task(tasks));
            tasks += 1;
            match parked.iter().min().copied() {
                Some(least) => parked.retain(|token| *token != least),
                None => waiting += 1,
            }
            continue;
        }
        ops.push(Op::Ranked(tokens, event));
        match waiting.checked_sub(1) {
            Some(rest) => waiting = rest,
            None => parked.push((event, tokens.into())),
        }
        tokens += 1;
    }
    let mut left: Vec<usize> = parked.into_iter().map(|(_, token)| token).collect();
    left.sort_unstable();
    (ops, left)
}
