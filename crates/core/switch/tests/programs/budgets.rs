//! Tests of tasks with budgets: what is left of one, and who is refused when nothing is.

use sluice_switch::{Circulating, Refusal, Verdict};
use sluice_wire::tables::TableOp;
use sluice_wire::{Budget, Dispatch, Nanos, Packet, RejectReason, Submit, WorkerId};

use crate::rack::{Rack, START, at, dispatched, rejected, row, submit};

const RAINS: [&str; 6] =
    ["rain:2", "rain:2,ranked", "rain:2,classes=4", "rain:2,labels", "rain:2,target=1ms", "rain:2,queue=16"];
const OTHERS: [&str; 7] =
    ["r2p2:2", "server:2", "racksched:2", "racksched:2,tracked", "draconis", "pallas", "horus"];
const BUDGET: Budget = Budget(40);

fn task(rack: &mut Rack, number: u32, budget: Budget) -> Verdict {
    rack.wire(at(200), Packet::Submit(Submit { budget, ..submit(START.plus(number)) }))
}

/// The refusal of a late task, and the token that goes on.
fn late(verdict: Verdict, number: u32) -> Circulating {
    let Verdict::Late { to, reject, token, .. } = verdict else { panic!("not late: {verdict:?}") };
    assert_eq!((to, reject.task.sequence, reject.reason), (at(200), START.plus(number), RejectReason::Late));
    Circulating::note(token)
}

/// The verdict on a task and on all that recirculates after it, at a worker whose token came before.
fn through(program: &str, budget: Budget, rounds: Nanos) -> Dispatch {
    let mut rack = Rack::of(program, 1, 16);
    let is_pushed = ["racksched", "pallas", "horus"].iter().any(|name| program.starts_with(name));
    if !is_pushed && program != "draconis" {
        let parked = rack.token(0);
        assert_eq!(rack.go_round(parked), Verdict::Parked);
    }
    let mut verdict = task(&mut rack, 0, budget);
    rack.now = rack.now + rounds;
    verdict = rack.go_round(verdict);
    dispatched(if program == "draconis" { rack.token(0) } else { verdict })
}

#[test]
fn each_program_tells_what_the_wait_has_left_of_a_budget_and_no_wait_makes_it_unlimited() {
    for program in RAINS.into_iter().chain(OTHERS) {
        assert_eq!(through(program, Budget::NONE, Nanos(9_000)).budget, Budget::NONE, "{program}");
        let told = through(program, BUDGET, Nanos(9_000));
        assert_eq!(told.budget, BUDGET.after(Nanos(told.wait_ns.into())), "{program}");
        if program == "draconis" {
            assert_ne!(told.budget, BUDGET, "a task waits for a poll");
            let told = through(program, BUDGET, Nanos(900_000));
            assert_eq!(told.budget, Budget::SPENT, "its worker refuses it");
        }
    }
}

#[test]
fn a_token_passes_over_late_tasks_and_is_spent_by_the_first_that_is_in_time() {
    for program in RAINS {
        let mut rack = Rack::of(program, 2, 16);
        for (number, budget) in [BUDGET, BUDGET, Budget::NONE, Budget(1_000), BUDGET].into_iter().enumerate()
        {
            assert_eq!(task(&mut rack, number as u32, budget), Verdict::Parked, "{program}");
        }
        rack.now = rack.now + Nanos(100_000);
        let before = rack.worker(0);
        let second = rack.token(0);
        let second = rack.once_more(late(second, 0));
        let third = rack.once_more(late(second, 1));
        let told = dispatched(third);
        assert_eq!((told.task.sequence, told.budget), (START.plus(2), Budget::NONE), "{program}");
        assert_eq!((told.sent, told.seen), (before.sent.plus(1), before.seen.plus(1)), "{program}");
        let told = dispatched(rack.token(1));
        assert_eq!(told.task.sequence, START.plus(3));
        assert_eq!(told.budget, Budget(1_000).after(Nanos(told.wait_ns.into())), "{program}");
        assert!(told.wait_ns > 100_000 && told.budget.span() < Some(Nanos(924_000)), "{program}");
        let token = rack.token(0);
        let token = rack.once_more(late(token, 4));
        assert_eq!(rack.go_round(token), Verdict::Parked, "{program}: nothing is left");
        assert_eq!((rack.program.waiting(), rack.worker(0).sent), (0, before.sent.plus(1)), "{program}");
        let told = dispatched(task(&mut rack, 5, BUDGET));
        assert_eq!((told.worker, told.sent), (WorkerId(0), before.sent.plus(2)), "{program}");
        assert_eq!((told.seen, told.budget), (before.seen.plus(2), BUDGET), "{program}");
        assert_eq!(rack.state().refused_late, 3, "{program}");
    }
}

#[test]
fn a_token_that_comes_back_after_its_worker_has_left_is_dropped() {
    for program in RAINS {
        let mut rack = Rack::of(program, 1, 16);
        assert_eq!(task(&mut rack, 0, BUDGET), Verdict::Parked);
        rack.now = rack.now + Nanos(100_000);
        let token = rack.token(0);
        let token = late(token, 0);
        rack.program.table(TableOp::SetWorker(WorkerId(0), Some(row(0, 1, false))));
        assert_eq!(rack.once_more(token), Verdict::Drop(Refusal::Closed), "{program}");
    }
}

#[test]
fn a_task_that_comes_with_nothing_left_takes_no_token_and_no_place() {
    for program in RAINS {
        let mut rack = Rack::of(program, 1, 16);
        assert_eq!(rejected(task(&mut rack, 0, Budget::SPENT)), RejectReason::Late, "{program}");
        let parked = rack.token(0);
        assert_eq!(rack.go_round(parked), Verdict::Parked);
        assert_eq!(rejected(task(&mut rack, 1, Budget::SPENT)), RejectReason::Late, "{program}");
        let told = dispatched(task(&mut rack, 2, Budget(2)));
        assert_eq!((told.task.sequence, told.budget), (START.plus(2), Budget(2)), "{program}");
        assert_eq!(rack.state().refused_late, 2, "{program}");
    }
}

/// A task that meets tokens of workers that left goes round; its budget may be spent meanwhile.
#[test]
fn a_task_that_is_late_after_its_rounds_takes_no_token() {
    let mut rack = Rack::new(2, 16);
    assert_eq!([rack.token(0), rack.token(1)], [Verdict::Parked; 2]);
    rack.admit(0, 2);
    let Verdict::Again(round) = task(&mut rack, 0, BUDGET) else { panic!("its token is stale") };
    rack.now = rack.now + Nanos(100_000);
    assert_eq!(rejected(rack.once_more(round)), RejectReason::Late);
    assert_eq!(rack.state().balance, 1, "the other token is still parked");
}
