//! Workers join, renew, move, leave and die.

use crate::rack::switch::{Switch, config};
use crate::rack::{LEASE, RENEW, Rack, address, plan, worker};
use sluice_control::{Answer, Controller, Event, Note, Refusal, Waiting, WorkerHello, WorkerPhase};
use sluice_wire::tables::TableOp;
use sluice_wire::{Generation, Nanos, Serial, SliceId, TaskType, WorkerId};

fn wait_why(answer: &Answer) -> Waiting {
    match answer {
        Answer::Wait { why, .. } => *why,
        other => panic!("not a wait: {other:?}"),
    }
}

fn refused_why(answer: Answer) -> Refusal {
    match answer {
        Answer::Refused { why } => why,
        other => panic!("not a refusal: {other:?}"),
    }
}

#[test]
fn a_worker_joins_with_what_it_needs_to_work() {
    let mut rack = Rack::up();
    let grant = rack.join(&worker("w", 1));
    assert_eq!((grant.worker, grant.generation, grant.slice), (WorkerId(0), Generation(1), SliceId(0)));
    assert_eq!((grant.quota, grant.start, grant.final_sent), (2, Serial(u32::MAX - 8), None));
    let row = rack.row(grant.worker);
    assert!(row.open && row.key == grant.key && row.generation == grant.generation && row.life == 1);
    assert!(rack.switch.slice(SliceId(0)).row.open);
    assert!(rack.notes.contains(&Note::SliceOpened { slice: "get".to_string() }));
    let (name, slice, generation) = ("w".to_string(), "get".to_string(), grant.generation);
    assert!(rack.notes.contains(&Note::WorkerJoined { name, worker: grant.worker, slice, generation }));
    assert_eq!(rack.controller.settled(grant.worker), Some((grant.key, grant.generation)));
    assert_eq!(rack.controller.worker_name(grant.worker), Some("w"));
}

#[test]
fn people_see_what_a_worker_is_being_brought_to() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let phase = |rack: &Rack| rack.controller.view(rack.now).workers[0].phase;
    rack.hello(&hello);
    assert_eq!((phase(&rack), rack.controller.settled(WorkerId(0))), (WorkerPhase::Joining, None));
    rack.flush();
    assert_eq!(phase(&rack), WorkerPhase::Open);
    rack.move_to("w", "scan");
    assert_eq!(phase(&rack), WorkerPhase::Changing);
    rack.leave(&hello);
    assert_eq!(phase(&rack), WorkerPhase::Leaving);
}

#[test]
fn a_renewal_that_changes_nothing_writes_nothing() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let grant = rack.join(&hello);
    let before = rack.ops;
    for _ in 0..20 {
        assert_eq!(rack.ask(&hello), Answer::Worker(grant));
        rack.run(RENEW);
    }
    assert_eq!(rack.ops, before);
}

#[test]
fn calls_that_come_while_a_worker_joins_are_all_answered_with_one_grant() {
    let mut rack = Rack::up();
    let calls: Vec<_> = (0..5).map(|_| rack.hello(&worker("w", 1))).collect();
    rack.flush();
    for call in &calls[1..] {
        assert_eq!(rack.answers[call], rack.answers[&calls[0]]);
    }
    assert!(matches!(rack.answers[&calls[0]], Answer::Worker(_)));
    assert_eq!(rack.controller.view(rack.now).workers.len(), 1);
}

#[test]
fn a_flood_of_calls_for_one_name_stays_bounded() {
    let mut rack = Rack::up();
    for _ in 0..1_000 {
        rack.hello(&worker("w", 1));
    }
    assert!(rack.open.len() <= 16);
    rack.flush();
    assert!(rack.open.is_empty());
}

#[test]
fn a_new_address_reaches_the_switch_under_the_same_generation() {
    let mut rack = Rack::up();
    let mut hello = worker("w", 1);
    let grant = rack.join(&hello);
    hello.at = address(77);
    assert_eq!(rack.join(&hello), grant);
    assert_eq!(rack.row(grant.worker).at, address(77));
}

#[test]
fn another_life_waits_for_the_lease_and_then_gets_the_name() {
    let mut rack = Rack::up();
    let first = rack.join(&worker("w", 1));
    rack.park(&first, 2);
    assert_eq!(wait_why(&rack.ask(&worker("w", 2))), Waiting::NameHeld);
    rack.run(LEASE - Nanos(1));
    assert_eq!(wait_why(&rack.ask(&worker("w", 2))), Waiting::NameHeld);
    rack.run(Nanos(1));
    let second = rack.join(&worker("w", 2));
    assert_ne!(second.key, first.key);
    assert!(rack.notes.contains(&Note::WorkerDied { name: "w".to_string(), worker: first.worker }));
}

#[test]
fn another_life_gives_up_only_when_the_holder_keeps_renewing() {
    let mut rack = Rack::up();
    let (holder, rival) = (worker("w", 1), worker("w", 2));
    rack.join(&holder);
    for _ in 0..13 {
        assert_eq!(wait_why(&rack.ask(&rival)), Waiting::NameHeld);
        rack.renew_for(RENEW, &[&holder]);
    }
    assert_eq!(refused_why(rack.ask(&rival)), Refusal::NameHeld { name: "w".to_string() });
}

#[test]
fn an_index_is_not_given_away_before_its_tokens_are_swept() {
    let mut rack = Rack::new(1, 64);
    rack.connect();
    rack.flush();
    let first = rack.join(&worker("a", 1));
    rack.park(&first, 8);
    rack.run(LEASE - Nanos(1));
    rack.pass(Nanos(1));
    rack.flush();
    assert_eq!(wait_why(&rack.ask(&worker("b", 2))), Waiting::Sweeping);
    rack.run(Nanos::from_millis(20));
    assert!(rack.switch.tokens(SliceId(0)).is_empty());
    let second = rack.join(&worker("b", 2));
    assert_eq!(second.worker, first.worker);
    assert!(second.generation > first.generation);
}

#[test]
fn an_index_whose_generations_run_out_is_not_given_away() {
    for (newest, is_given) in [(u32::MAX - 17, true), (u32::MAX - 16, false)] {
        let mut rack = Rack::new(1, 64);
        rack.switch.table(TableOp::RaiseGeneration(WorkerId(0), Generation(newest)));
        rack.connect();
        rack.run(Nanos::from_millis(10));
        assert_eq!(matches!(rack.ask(&worker("w", 1)), Answer::Worker(_)), is_given, "{newest}");
    }
}

#[test]
fn a_full_table_is_said_to_be_full() {
    let mut rack = Rack::new(1, 64);
    rack.connect();
    rack.flush();
    rack.join(&worker("a", 1));
    assert_eq!(refused_why(rack.ask(&worker("b", 2))), Refusal::TableFull { limit: 1 });
}

#[test]
fn a_ring_that_could_overflow_is_refused() {
    let mut rack = Rack::new(4, 16);
    rack.connect();
    rack.run(Nanos::from_millis(10));
    rack.join(&worker("a", 1));
    rack.join(&worker("b", 2));
    let full = |slice: &str| Refusal::RingFull { slice: slice.to_string(), limit: 16 };
    assert_eq!(refused_why(rack.ask(&worker("c", 3))), full("get"));
    let to_scan = |name, life| WorkerHello { slice: "scan".to_string(), ..worker(name, life) };
    rack.join(&to_scan("d", 4));
    rack.move_to("a", "scan");
    assert_eq!(refused_why(rack.ask(&to_scan("e", 5))), full("scan"), "one is on its way there");
    let call = rack.move_to("b", "scan");
    assert_eq!(refused_why(rack.answers[&call].clone()), full("scan"));
}

#[test]
fn stale_tokens_beside_which_there_is_room_keep_nobody_waiting() {
    let mut rack = Rack::up();
    let moves = rack.join(&worker("a", 1));
    rack.join(&worker("b", 2));
    rack.park(&moves, 8);
    rack.move_to("a", "scan");
    rack.flush();
    rack.join(&worker("c", 3));
}

#[test]
fn a_move_is_answered_when_done_and_the_next_renewal_carries_it() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let before = rack.join(&hello);
    rack.park(&before, 2);
    rack.switch.submit(TaskType(1));
    let call = rack.move_to("w", "scan");
    rack.flush();
    assert_eq!(rack.answers[&call], Answer::Done);
    let after = rack.join(&hello);
    assert_eq!((after.worker, after.key, after.slice), (before.worker, before.key, SliceId(1)));
    assert_eq!(after.generation, Generation(before.generation.0 + 1));
    assert_eq!(after.final_sent, Some(Serial(u32::MAX - 7)));
    assert!(!rack.switch.slice(SliceId(0)).row.open && rack.switch.slice(SliceId(1)).row.open);
    let (name, slice, generation) = ("w".to_string(), "scan".to_string(), after.generation);
    assert!(rack.notes.contains(&Note::WorkerMoved { name, worker: after.worker, slice, generation }));
}

#[test]
fn a_renewal_that_asks_for_the_old_slice_does_not_undo_a_move() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    rack.join(&hello);
    rack.move_to("w", "scan");
    rack.flush();
    rack.renew_for(LEASE, &[&hello]);
    assert_eq!(rack.join(&hello).slice, SliceId(1));
}

#[test]
fn a_worker_that_leaves_hears_its_final_sent_and_hears_it_again() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let grant = rack.join(&hello);
    rack.park(&grant, 2);
    rack.switch.submit(TaskType(1));
    let first = rack.leave(&hello);
    rack.flush();
    rack.join(&worker("v", 2));
    rack.leave(&worker("v", 2));
    rack.flush();
    let again = rack.leave(&hello);
    let expected = Answer::Left { final_sent: Some(grant.start.plus(1)) };
    assert_eq!((&rack.answers[&first], &rack.answers[&again]), (&expected, &expected));
    assert!(rack.switch.worker(WorkerId(0)).row.is_none());
    assert_eq!(rack.switch.worker(WorkerId(0)).sent, grant.start.plus(1), "nobody counts there any more");
}

#[test]
fn a_move_of_a_worker_that_leaves_meanwhile_is_refused() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    rack.join(&hello);
    let moved = rack.move_to("w", "scan");
    let left = rack.leave(&hello);
    rack.flush();
    assert_eq!(refused_why(rack.answers[&moved].clone()), Refusal::WorkerGone { name: "w".to_string() });
    assert!(matches!(rack.answers[&left], Answer::Left { .. }));
}

#[test]
fn the_last_worker_of_a_slice_takes_its_waiting_tasks_with_it() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    rack.join(&hello);
    for _ in 0..50 {
        rack.switch.submit(TaskType(1));
    }
    assert_eq!(rack.switch.tasks(SliceId(0)).len(), 50);
    rack.leave(&hello);
    rack.run(Nanos::from_millis(50));
    assert_eq!(rack.switch.tasks(SliceId(0)).len(), 0);
    assert!(rack.notes.contains(&Note::SliceClosed { slice: "get".to_string() }));
}

#[test]
fn a_slice_opens_again_when_a_worker_joins() {
    let mut rack = Rack::up();
    rack.join(&worker("a", 1));
    rack.run(LEASE + RENEW);
    assert!(!rack.switch.slice(SliceId(0)).row.open);
    rack.join(&worker("b", 2));
    assert!(rack.switch.slice(SliceId(0)).row.open);
}

#[test]
fn a_worker_that_cannot_serve_its_slice_is_told_what_is_missing() {
    let mut rack = Rack::up();
    let mut hello = worker("w", 1);
    hello.types = vec![TaskType(2)];
    let why = refused_why(rack.ask(&hello));
    assert_eq!(
        why.to_string(),
        "slice `get` takes types 1, worker `w` serves 2; it has to serve all of them"
    );
    hello.slice = String::new();
    assert_eq!(rack.join(&hello).slice, SliceId(1));
}

#[test]
fn an_unknown_slice_is_refused_with_those_that_there_are() {
    let mut rack = Rack::up();
    let mut hello = worker("w", 1);
    hello.slice = "gte".to_string();
    let why = refused_why(rack.ask(&hello)).to_string();
    assert_eq!(why, "there is no slice `gte`; known: get (types 1), scan (types 2)");
}

#[test]
fn a_quota_outside_1_to_8_is_refused() {
    let mut rack = Rack::up();
    for quota in [0, 9, 255] {
        let mut hello = worker("w", 1);
        hello.quota = quota;
        assert_eq!(refused_why(rack.ask(&hello)), Refusal::BadQuota { most: 8, quota });
    }
}

#[test]
fn a_switch_whose_policy_asks_for_more_is_believed_and_no_further() {
    let mut rack = Rack::of(plan(), Switch::new("r2p2:9", config(4, 64)));
    rack.connect();
    rack.run(Nanos::from_millis(10));
    let mut hello = WorkerHello { quota: 10, ..worker("w", 1) };
    let why = refused_why(rack.ask(&hello));
    assert_eq!(why.to_string(), "a quota of 10 is outside 1 to 9: give one of those");
    hello.quota = 9;
    assert_eq!(rack.join(&hello).quota, 9);
}

#[test]
fn a_worker_names_no_more_types_than_there_is_room_for() {
    let mut rack = Rack::up();
    let mut hello = WorkerHello { types: (0..257).map(TaskType).collect(), ..worker("w", 1) };
    assert_eq!(refused_why(rack.ask(&hello)), Refusal::TooManyTypes);
    hello.types.pop();
    rack.join(&hello);
}

#[test]
fn a_worker_that_renews_with_fewer_types_than_its_slice_takes_is_refused() {
    let mut rack = Rack::up();
    rack.join(&worker("w", 1));
    let narrow = WorkerHello { types: vec![TaskType(2)], ..worker("w", 1) };
    assert!(matches!(refused_why(rack.ask(&narrow)), Refusal::TypesNotServed { .. }));
}

#[test]
fn a_type_moves_at_run_time_only_to_workers_that_serve_it() {
    let mut rack = Rack::up();
    rack.join(&worker("w", 1));
    let mut set = |t: u16, slice: &str| {
        let (task_type, slice) = (TaskType(t), Some(slice.to_string()));
        let call = rack.call(|call| Event::SetType { call, task_type, slice });
        rack.flush();
        rack.answers[&call].clone()
    };
    assert_eq!(set(3, "get"), Answer::Done);
    assert!(matches!(refused_why(set(4, "get")), Refusal::TypesNotServed { .. }));
    assert!(matches!(refused_why(set(99, "get")), Refusal::UnknownType { .. }));
    assert_eq!(rack.switch.slice_of(TaskType(3)), Some(SliceId(0)));
}

#[test]
fn what_may_wait_follows_the_reported_rates_without_rewriting_for_every_wobble() {
    let mut rack = Rack::up();
    let mut hello = worker("w", 1);
    hello.capacity = 1_000;
    rack.join(&hello);
    assert_eq!(rack.switch.slice(SliceId(0)).row.limit, 20 + 2, "C and the quotas");
    let before = rack.ops;
    hello.capacity = 1_080;
    rack.join(&hello);
    assert_eq!(rack.ops, before);
    hello.capacity = 1_250;
    rack.join(&hello);
    assert_eq!(rack.switch.slice(SliceId(0)).row.limit, 25 + 2);
    hello.capacity = 2_000;
    rack.join(&hello);
    assert_eq!(rack.switch.slice(SliceId(0)).row.limit, 40 + 2);
}

#[test]
fn a_slices_row_tells_its_target_and_how_many_tasks_its_workers_should_take_within_it() {
    let expected = |service: Option<Nanos>, capacity: u32| {
        let mut rack = Rack::new(4, 64);
        let mut plan = plan();
        (plan.slices[0].target, plan.slices[0].service) = (Some(Nanos::from_millis(50)), service);
        rack.controller = Controller::new(plan, [7; 32]).expect("the plan is sound");
        rack.connect();
        rack.run(Nanos::from_millis(10));
        for (name, life) in [("a", 1), ("b", 2)] {
            rack.join(&WorkerHello { capacity, ..worker(name, life) });
        }
        let row = rack.switch.slice(SliceId(0)).row;
        assert_eq!(row.target, Nanos::from_millis(50));
        row.expected
    };
    assert_eq!(expected(None, 0), 0, "nothing is known");
    assert_eq!(expected(None, 200), 20, "both together serve 400 a second");
    assert_eq!(expected(Some(Nanos::from_millis(10)), 0), 10, "as the plan has it");
    assert_eq!(expected(Some(Nanos::from_millis(10)), 200), 20, "workers know better");
    assert_eq!(expected(Some(Nanos::from_millis(100)), 0), 4, "one for each token");
}

#[test]
fn what_workers_refused_late_is_counted_for_their_slice_whoever_comes_and_goes() {
    let mut rack = Rack::up();
    let late = |rack: &Rack| rack.controller.view(rack.now).slices[0].late_at_worker;
    let with = |name: &str, life: u64, refused_late: u64| WorkerHello { refused_late, ..worker(name, life) };
    rack.join(&with("a", 1, 0));
    rack.join(&with("b", 2, 0));
    assert_eq!(late(&rack), 0);
    rack.join(&with("a", 1, 5));
    rack.join(&with("a", 1, 5));
    rack.join(&with("b", 2, 3));
    assert_eq!(late(&rack), 8, "a renewal tells the count of the whole life");
    rack.leave(&with("a", 1, 5));
    rack.run(LEASE);
    rack.join(&with("a", 3, 0));
    rack.join(&with("a", 3, 2));
    assert_eq!(late(&rack), 10, "a new life counts anew");
    for told in [u64::MAX, 0, u64::MAX] {
        rack.join(&with("a", 3, told));
    }
    assert_eq!(late(&rack), u64::MAX, "a worker that tells nonsense stops nobody");
}

#[test]
fn workers_that_reported_no_rate_count_as_the_others() {
    let mut rack = Rack::up();
    for (name, life, capacity) in [("a", 1, 200), ("b", 2, 400), ("c", 3, 0)] {
        rack.join(&WorkerHello { capacity, ..worker(name, life) });
    }
    assert_eq!(rack.switch.slice(SliceId(0)).row.limit, 18 + 3 * 2, "900 a second for 20 ms");
}

#[test]
fn a_stopped_controller_does_not_take_its_own_sleep_for_dead_workers() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let grant = rack.join(&hello);
    rack.now = rack.now + LEASE.times(5);
    assert_eq!(rack.join(&hello), grant);
    assert!(rack.notes.iter().any(|note| matches!(note, Note::Stalled { .. })));
}
