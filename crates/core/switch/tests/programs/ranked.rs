//! Rain with ranked tokens: a task takes the token before which the fewest tasks stand, and the controller's
//! sweep reaches tokens of every rank.

use proptest::prelude::*;
use sluice_switch::{Refusal, Verdict};
use sluice_wire::{Packet, Sweep, SweepOf, WorkerId};

use crate::rack::{EPOCH, Rack, SLICE};

const RANKS: [&str; 2] = ["rain:2,ranked", "rain:4,ranked"];

fn taker(verdict: Verdict) -> u16 {
    match verdict {
        Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => dispatch.worker.0,
        other => panic!("no DISPATCH: {other:?}"),
    }
}

fn sweep(left: u16) -> Sweep {
    Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tokens, left, carried: None }
}

fn parked(rack: &Rack) -> Vec<u16> {
    rack.program.parked(SLICE).tokens.iter().map(|(worker, _)| worker.0).collect()
}

#[test]
fn a_task_takes_the_token_behind_the_fewest_tasks_and_of_those_the_oldest() {
    for program in RANKS {
        let mut rack = Rack::of(program, 6, 16);
        for (worker, rank) in [(0, 1), (1, 0), (2, 1), (3, 0), (4, 7), (5, 1)] {
            assert_eq!(rack.ranked_token(worker, rank), Verdict::Parked);
        }
        // With two ranks, a token behind seven tasks and one behind one task have the same rank.
        let order = if program == RANKS[0] { [1, 3, 0, 2, 4, 5] } else { [1, 3, 0, 2, 5, 4] };
        assert_eq!(parked(&rack), order);
        assert_eq!(order.map(|_| taker(rack.task())), order, "{program}");
    }
}

#[test]
fn without_ranks_the_oldest_token_goes_first_whatever_it_says() {
    let mut rack = Rack::of("rain:2", 3, 16);
    for (worker, rank) in [(0, 1), (1, 0), (2, 3)] {
        rack.ranked_token(worker, rank);
    }
    assert_eq!([0, 1, 2].map(|_| taker(rack.task())), [0, 1, 2]);
}

#[test]
fn one_sweep_reaches_a_stale_token_of_any_rank_and_leaves_the_others_in_their_order() {
    for program in RANKS {
        for stale in 0..6 {
            let live: Vec<u16> = (0..6).filter(|worker| *worker != stale).collect();
            assert_eq!(swept_of(program, [0, 0, 1, 1, 2, 3], stale), live, "{program}");
        }
    }
}

#[test]
fn a_token_that_a_sweep_carried_keeps_its_rank() {
    let mut rack = Rack::of("rain:4,ranked", 2, 16);
    rack.ranked_token(0, 2);
    let swept = rack.control(sweep(1));
    assert_eq!(rack.go_round(swept), Verdict::Drop(Refusal::SweepDone));
    rack.ranked_token(1, 1);
    assert_eq!([0, 1].map(|_| taker(rack.task())), [1, 0]);
}

/// For each rank without tokens the sweep takes a token of another rank, which parks again under its own.
#[test]
fn a_sweep_visits_as_many_of_the_last_rank_as_of_the_first() {
    for program in RANKS {
        for stale in 0..6 {
            let live: Vec<u16> = (0..6).filter(|worker| *worker != stale).collect();
            let mut left = swept_of(program, [0, 0, 0, 1, 1, 1], stale);
            left.sort_unstable();
            assert_eq!(left, live, "{program}");
        }
    }
}

/// The workers whose tokens are left after a sweep. Their tokens have these ranks, and one is stale.
fn swept_of(program: &str, ranks: [u32; 6], stale: u16) -> Vec<u16> {
    let mut rack = Rack::of(program, 6, 16);
    for (worker, rank) in ranks.into_iter().enumerate() {
        rack.ranked_token(worker as u16, rank);
    }
    rack.admit(stale, 2);
    let before = rack.state();
    let left = before.tokens_out.behind(before.tokens_in) as u16;
    let swept = rack.control(sweep(left));
    assert_eq!(rack.go_round(swept), Verdict::Drop(Refusal::SweepDone));
    let after = rack.state();
    assert_eq!(after.balance, 5, "{program}");
    assert!(after.tokens_out.behind(before.tokens_in) == 0, "{program}: all of before were visited");
    parked(&rack)
}

/// A step that may happen to a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A worker's token, behind so many tasks.
    Token(u16, u32),
    /// A task of this class.
    Task(u8),
    /// From now on the worker's tokens count as of a former generation.
    Stale(u16),
    SweepPass,
    /// The packet that recirculated first passes again.
    Round,
}

/// Plays the steps, lets all recirculating packets come to their end, and counts tokens.
pub(crate) fn play(program: &str, steps: &[Step]) {
    let mut rack = Rack::of(program, 3, 16);
    let mut round = Vec::new();
    let mut generation = 1;
    let (mut granted, mut waiting) = (0, 0);
    let mut at_once = Vec::new();
    for step in steps {
        let verdict = match *step {
            Step::Token(worker, rank) => {
                granted += 1;
                rack.ranked_token(worker, rank)
            }
            Step::Task(class) => {
                waiting += 1;
                rack.task_of(class)
            }
            Step::Stale(worker) => {
                generation += 1;
                rack.admit(worker, generation);
                continue;
            }
            Step::SweepPass => rack.control(sweep(32)),
            Step::Round if round.is_empty() => continue,
            Step::Round => rack.once_more(round.remove(0)),
        };
        at_once.push(verdict);
        if let Verdict::Again(circulating) = verdict {
            round.push(circulating);
        }
    }
    for circulating in round {
        let verdict = rack.once_more(circulating);
        at_once.push(rack.go_round(verdict));
    }
    let sent = |verdict: &&Verdict| matches!(verdict, Verdict::Send { packet: Packet::Dispatch(_), .. });
    let dispatched = at_once.iter().filter(sent).count();
    let (tokens, tasks) = (parked(&rack), rack.program.parked(SLICE).tasks.len());
    assert_eq!(dispatched + tasks, waiting, "a task was lost or sent twice");
    assert!(dispatched + tokens.len() <= granted, "a token came from nowhere");
    let stale = steps.iter().any(|step| matches!(step, Step::Stale(_)));
    assert!(stale || dispatched + tokens.len() == granted, "a token was lost");
    assert_eq!(rack.state().balance, tokens.len() as i32 - tasks as i32);
    assert!(tokens.is_empty() || tasks == 0, "a task waits while a token is parked");
}

/// Plays every order of a few steps.
#[test]
fn whatever_a_sweep_meets_no_token_and_no_task_is_lost() {
    const STEPS: [Step; 5] =
        [Step::Token(0, 0), Step::Token(1, 3), Step::Task(0), Step::SweepPass, Step::Round];
    const LENGTH: u32 = 7;
    for number in 0..5_usize.pow(LENGTH) {
        let digit = |place| STEPS[number / 5_usize.pow(place) % 5];
        play("rain:4,ranked", &(0..LENGTH).map(digit).collect::<Vec<_>>());
    }
}

pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_u16, 0..5_u32).prop_map(|(worker, rank)| Step::Token(worker, rank)),
        2 => (0..5_u8).prop_map(Step::Task),
        1 => (0..3_u16).prop_map(Step::Stale),
        1 => Just(Step::SweepPass),
        4 => Just(Step::Round),
    ]
}

proptest! {
    #[test]
    fn tokens_and_tasks_meet_once_whatever_happens(
        program in prop::sample::select(&RANKS[..]),
        steps in prop::collection::vec(any_step(), 1..24),
    ) {
        play(program, &steps);
    }

    /// A task never takes a token while one of a lesser rank, or an older one of the same rank, is parked.
    #[test]
    fn the_least_rank_goes_first(ranks in prop::collection::vec((0..8_u16, 0..8_u32), 1..8)) {
        let mut rack = Rack::of("rain:8,ranked", 8, 16);
        for (worker, rank) in &ranks {
            rack.ranked_token(*worker, *rank);
        }
        let mut expected = ranks;
        expected.sort_by_key(|(_, rank)| (*rank).min(3));
        for (worker, _) in expected {
            prop_assert_eq!(WorkerId(taker(rack.task())), WorkerId(worker));
        }
    }
}
