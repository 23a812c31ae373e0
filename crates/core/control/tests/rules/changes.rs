//! A change, a sweep or a renewal must leave nothing behind: no calls, tokens, tasks, half-changed rows or
//! old numbers.

use crate::rack::{Rack, address, client, worker};
use sluice_control::{Answer, Event, Waiting};
use sluice_wire::tables::{SliceRow, TableOp};
use sluice_wire::{Nanos, Serial, SliceId, TaskType, WorkerId};

fn waits(answer: &Answer, why: Waiting) -> bool {
    matches!(answer, Answer::Wait { why: w, .. } if *w == why)
}

#[test]
fn a_worker_that_leaves_and_still_renews_is_told_at_once_and_its_leaving_is_not_crowded_out() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    rack.join(&hello);
    let left = rack.leave(&hello);
    for _ in 0..20 {
        let renewal = rack.hello(&hello);
        assert!(waits(&rack.answers[&renewal], Waiting::Leaving));
    }
    rack.flush();
    assert!(matches!(rack.answers[&left], Answer::Left { .. }), "{:?}", rack.answers[&left]);
}

#[test]
fn a_client_that_leaves_and_still_renews_is_told_at_once_and_its_leaving_is_not_crowded_out() {
    let mut rack = Rack::up();
    let hello = client("c", 9);
    rack.join_client(&hello);
    let (name, incarnation) = (hello.name.clone(), hello.incarnation);
    let left = rack.call(|call| Event::ClientLeave { call, name, incarnation });
    for _ in 0..20 {
        let renewal = rack.client_hello(&hello);
        assert!(waits(&rack.answers[&renewal], Waiting::Leaving));
    }
    rack.flush();
    assert!(matches!(rack.answers[&left], Answer::Left { .. }), "{:?}", rack.answers[&left]);
}

#[test]
fn a_newcomer_waits_until_stale_tokens_have_left_it_room_in_the_ring() {
    let mut rack = Rack::new(4, 16);
    rack.connect();
    rack.run(Nanos::from_millis(10));
    let (moves, stays) = (rack.join(&worker("a", 1)), rack.join(&worker("b", 2)));
    rack.park(&moves, 8);
    rack.park(&stays, 8);
    rack.move_to("a", "scan");
    rack.flush();
    let newcomer = worker("c", 3);
    assert!(waits(&rack.ask(&newcomer), Waiting::Sweeping));
    rack.run(Nanos::from_millis(20));
    let grant = rack.join(&newcomer);
    rack.park(&grant, 8);
    assert_eq!(rack.switch.tokens(SliceId(0)).len(), 16);
}

#[test]
fn a_task_that_was_going_round_when_its_slice_was_closed_is_found_by_the_second_look() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    rack.join(&hello);
    rack.leave(&hello);
    rack.flush();
    assert!(!rack.switch.slice(SliceId(0)).row.open, "it was looked at when its worker left");
    let row = rack.switch.slice(SliceId(0)).row;
    rack.switch.table(TableOp::SetSlice(SliceId(0), SliceRow { open: true, ..row }));
    rack.switch.submit(TaskType(1));
    rack.switch.table(TableOp::SetSlice(SliceId(0), row));
    assert_eq!(rack.switch.tasks(SliceId(0)).len(), 1);
    rack.run(Nanos::from_millis(20));
    assert!(rack.switch.tasks(SliceId(0)).is_empty());
}

#[test]
fn a_change_that_was_cut_short_is_taken_down_before_anyone_asks() {
    let mut cut_short = 0;
    for done in 0..14 {
        let mut rack = Rack::up();
        let grant = rack.join(&worker("w", 1));
        rack.park(&grant, 2);
        rack.move_to("w", "scan");
        for _ in 0..done {
            if !rack.execute_one() {
                rack.deliver_one();
            }
        }
        let row = rack.row(grant.worker);
        let whole = row.open && row.generation == rack.switch.worker(grant.worker).generation_out;
        rack.restart_controller(0);
        rack.run(Nanos::from_millis(20));
        assert_eq!(rack.switch.worker(grant.worker).row.is_some(), whole, "after {done} steps");
        cut_short += usize::from(!whole);
    }
    assert!(cut_short > 5, "{cut_short} of 14");
}

#[test]
fn a_client_that_moves_brings_the_number_of_its_oldest_task_now_not_that_of_its_joining() {
    let mut rack = Rack::up();
    let mut hello = client("c", 9);
    rack.join_client(&hello);
    hello.floor = Serial(hello.floor.0 + (1 << 31));
    rack.join_client(&hello);
    hello.at = address(77);
    rack.client_hello(&hello);
    let floor = rack.inbox.iter().find_map(|op| match op {
        TableOp::SetClient(_, Some((_, floor))) => Some(*floor),
        _ => None,
    });
    assert_eq!(floor, Some(hello.floor), "its next tasks would count as older than all that may come");
}

#[test]
fn what_was_sent_is_not_told_of_a_change_that_was_cut_short_since_the_count_may_have_begun_anew() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let grant = rack.join(&hello);
    rack.move_to("w", "scan");
    while rack.switch.worker(WorkerId(0)).generation_out == grant.generation {
        assert!(rack.execute_one() || rack.deliver_one());
    }
    rack.restart_controller(0);
    rack.flush();
    let left = rack.leave(&hello);
    assert_eq!(rack.answers[&left], Answer::Left { final_sent: None });
}
