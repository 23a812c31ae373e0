//! The switch, the link to it or the controller itself fails and returns.

use crate::rack::switch::{Switch, config};
use crate::rack::{LEASE, Rack, client, plan, worker};
use sluice_control::{Action, Answer, CallId, Event, LinkState, Note, Waiting};
use sluice_switch::Config;
use sluice_wire::tables::TableAnswer;
use sluice_wire::{ClientId, Epoch, Incarnation, Key, Nanos, SliceId, TaskType, WorkerId};

fn waits(answer: &Answer, why: Waiting) -> bool {
    matches!(answer, Answer::Wait { why: w, .. } if *w == why)
}

/// A rack whose switch is of this size.
fn sized(config: Config) -> Rack {
    Rack::of(plan(), Switch::new("rain", config))
}

#[test]
fn nobody_is_answered_before_the_tables_are_read() {
    let mut rack = Rack::new(4, 64);
    let early = rack.hello(&worker("w", 1));
    assert!(waits(&rack.answers[&early], Waiting::SwitchDown));
    rack.connect();
    let reading = rack.hello(&worker("w", 1));
    assert!(waits(&rack.answers[&reading], Waiting::ReadingBack));
    rack.flush();
    rack.join(&worker("w", 1));
}

#[test]
fn a_new_epoch_forgets_everyone_and_all_register_anew() {
    let mut rack = Rack::up();
    let (hello, guest) = (worker("w", 1), client("c", 9));
    let before = rack.join(&hello);
    let client_before = rack.join_client(&guest);
    rack.restart_switch();
    rack.flush();
    let after = rack.join(&hello);
    assert_eq!(after.epoch, Epoch(101));
    assert_ne!(after.key, before.key);
    assert_ne!(rack.join_client(&guest).key, client_before.key);
    assert!(rack.notes.contains(&Note::SwitchRestarted { before: Epoch(100), epoch: Epoch(101) }));
}

#[test]
fn a_restarted_controller_knows_its_hosts_again_when_they_renew() {
    let mut rack = Rack::up();
    let (hello, guest) = (worker("w", 1), client("c", 9));
    let (grant, client_grant) = (rack.join(&hello), rack.join_client(&guest));
    rack.restart_controller(0);
    rack.flush();
    assert_eq!(rack.join(&hello), grant);
    assert_eq!(rack.join_client(&guest), client_grant);
    assert_eq!(names(&rack), ["w", "c"]);
}

fn names(rack: &Rack) -> [String; 2] {
    let view = rack.controller.view(rack.now);
    [view.workers[0].name.clone(), view.clients[0].name.clone()]
}

#[test]
fn a_controller_whose_line_broke_knows_its_hosts_before_they_renew() {
    let mut rack = Rack::up();
    let grant = rack.join(&worker("w", 1));
    rack.join_client(&client("c", 9));
    rack.park(&grant, 2);
    rack.disconnect(0);
    assert_eq!(rack.notes.last(), Some(&Note::SwitchDown));
    rack.connect();
    rack.flush();
    assert_eq!(names(&rack), ["w", "c"]);
    let balances =
        rack.controller.view(rack.now).slices.iter().map(|slice| slice.balance).collect::<Vec<_>>();
    assert_eq!(balances, [Some(2), Some(0)]);
}

#[test]
fn of_workers_in_one_process_each_finds_the_row_that_it_held() {
    let mut rack = Rack::up();
    let [mut a, mut b] = ["a", "b"].map(|name| worker(name, 1));
    for hello in [&mut a, &mut b] {
        let grant = rack.join(hello);
        hello.held = Some((grant.worker, grant.key, grant.generation));
    }
    rack.restart_controller(0);
    rack.flush();
    assert_eq!([rack.join(&b).worker, rack.join(&a).worker], [WorkerId(1), WorkerId(0)]);
    rack.restart_controller(0);
    rack.flush();
    b.held = b.held.map(|(worker, key, generation)| (worker, Key(!key.0), generation));
    assert_eq!(rack.join(&b).worker, WorkerId(0), "it proves nothing");
}

#[test]
fn a_worker_that_was_not_heard_since_a_restart_may_leave() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    rack.join(&hello);
    rack.restart_controller(0);
    rack.flush();
    rack.leave(&worker("v", 2));
    rack.flush();
    assert!(rack.switch.worker(WorkerId(0)).row.is_some(), "that was another");
    rack.leave(&hello);
    rack.flush();
    assert!(rack.switch.worker(WorkerId(0)).row.is_none());
}

#[test]
fn a_client_that_was_not_heard_since_a_restart_keeps_newcomers_waiting_and_may_leave() {
    let mut rack = Rack::up();
    rack.join_client(&client("c", 9));
    rack.restart_controller(0);
    rack.flush();
    assert!(waits(&rack.ask_client(&client("d", 8)), Waiting::NamesUnknown));
    for (life, stays) in [(8, true), (9, false)] {
        let (name, incarnation) = ("c".to_string(), Incarnation(life));
        rack.call(|call| Event::ClientLeave { call, name, incarnation });
        rack.flush();
        assert_eq!(rack.switch.client(ClientId(0)).is_some(), stays);
    }
}

#[test]
fn a_switch_is_asked_no_more_at_once_than_fits_the_window_nor_for_what_it_has_not() {
    let mut rack = sized(Config { types: 400, servers: 0, ..config(4, 64) });
    rack.connect();
    assert!(rack.execute_one() && rack.deliver_one(), "it is claimed");
    assert_eq!(rack.inbox.len(), 256);
    rack.flush();
    assert_eq!(rack.controller.view(rack.now).link, LinkState::Up);
}

#[test]
fn tables_of_another_size_than_the_switch_said_are_read_again() {
    let mut rack = Rack::new(4, 64);
    rack.connect();
    assert!(rack.execute_one() && rack.deliver_one(), "it is claimed");
    while rack.execute_one() {}
    let mut out = Vec::new();
    for answer in std::mem::take(&mut rack.outbox) {
        let wrong = matches!(answer, TableAnswer::Slice(_));
        let answer = if wrong { TableAnswer::Type(None) } else { answer };
        rack.controller.event(rack.now, Event::TableAnswered(answer), &mut out);
    }
    assert!(out.contains(&Action::Note(Note::SwitchConfused)));
}

/// As many answers of each kind come as were asked for, but the first ones come last. Nobody gets the row
/// of another index for that.
#[test]
fn tables_whose_answers_come_in_another_order_are_read_again() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let grant = rack.join(&hello);
    rack.restart_controller(0);
    assert!(rack.execute_one() && rack.deliver_one(), "it is claimed");
    while rack.execute_one() {}
    let mut answers = std::mem::take(&mut rack.outbox);
    let workers_last = |answer: &TableAnswer| !matches!(answer, TableAnswer::Type(_));
    let first = answers.iter().position(workers_last).expect("workers are read") + 4;
    answers.rotate_left(first);
    let mut out = Vec::new();
    for answer in answers {
        rack.controller.event(rack.now, Event::TableAnswered(answer), &mut out);
    }
    assert!(out.contains(&Action::Note(Note::SwitchConfused)));
    rack.run(Nanos::from_millis(110));
    assert_eq!(rack.join(&hello), grant);
}

#[test]
fn a_newcomer_waits_while_a_restarted_controller_does_not_know_the_names() {
    let mut rack = Rack::up();
    rack.join(&worker("w", 1));
    rack.restart_controller(0);
    rack.flush();
    assert!(waits(&rack.ask(&worker("w", 2)), Waiting::NamesUnknown));
    rack.run(LEASE + Nanos::from_millis(20));
    rack.join(&worker("w", 2));
}

#[test]
fn rows_that_nobody_renews_die_after_a_restart() {
    let mut rack = Rack::up();
    rack.join(&worker("w", 1));
    rack.join_client(&client("c", 9));
    rack.restart_controller(0);
    rack.run(LEASE + Nanos::from_millis(50));
    let view = rack.controller.view(rack.now);
    assert!(view.workers.is_empty() && view.clients.is_empty());
    assert!(rack.switch.worker(WorkerId(0)).row.is_none() && rack.switch.client(ClientId(0)).is_none());
}

#[test]
fn a_type_that_was_moved_at_run_time_stays_moved_over_a_controller_restart() {
    let mut rack = Rack::up();
    let (task_type, slice) = (TaskType(1), Some("scan".to_string()));
    rack.call(|call| Event::SetType { call, task_type, slice });
    rack.flush();
    rack.restart_controller(0);
    rack.flush();
    assert_eq!(rack.switch.slice_of(TaskType(1)), Some(SliceId(1)));
}

#[test]
fn a_settled_worker_keeps_its_grant_while_the_switch_cannot_be_reached() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let grant = rack.join(&hello);
    rack.disconnect(0);
    assert_eq!(rack.ask(&hello), Answer::Worker(grant));
    assert!(waits(&rack.ask(&worker("v", 2)), Waiting::SwitchDown));
    rack.connect();
    rack.flush();
    assert_eq!(rack.ask(&hello), Answer::Worker(grant));
}

#[test]
fn a_change_that_was_cut_short_anywhere_ends_in_a_fresh_generation() {
    for done in 0..14 {
        for restart in [false, true] {
            let mut rack = Rack::up();
            let hello = worker("w", 1);
            let before = rack.join(&hello);
            rack.park(&before, 4);
            let call = rack.move_to("w", "scan");
            for _ in 0..done {
                if !rack.execute_one() {
                    rack.deliver_one();
                }
            }
            if restart {
                rack.restart_controller(0);
            } else {
                rack.disconnect(1);
                assert!(rack.answers.contains_key(&call));
                rack.connect();
            }
            rack.run(Nanos::from_millis(20));
            rack.ask(&hello);
            rack.run(LEASE.times(2));
            let after = rack.join(&hello);
            let row = rack.row(after.worker);
            assert!(row.open && row.generation == after.generation && row.key == after.key);
        }
    }
}

#[test]
fn a_switch_too_small_for_the_plan_is_said_to_be() {
    let mut rack = sized(Config { slices: 1, ..config(4, 64) });
    rack.connect();
    assert_eq!(rack.controller.view(rack.now).link, LinkState::TooSmall);
    assert!(matches!(rack.ask(&worker("w", 1)), Answer::Refused { .. }));
    for (types, link) in [(2, LinkState::TooSmall), (3, LinkState::Reading)] {
        let mut rack = sized(Config { types, ..config(4, 64) });
        rack.connect();
        assert_eq!(rack.controller.view(rack.now).link, link, "the plan's last type is 2");
    }
}

#[test]
fn an_answer_that_fits_no_question_makes_the_controller_read_again() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let grant = rack.join(&hello);
    let mut out = Vec::new();
    let odd = Event::TableAnswered(TableAnswer::OutOfRange);
    rack.controller.event(rack.now, odd, &mut out);
    assert_eq!(rack.controller.view(rack.now).link, LinkState::Down);
    assert_eq!(rack.controller.deadline(), Some(rack.now + Nanos::from_millis(100)));
    rack.tick(rack.now + Nanos::from_millis(99));
    assert!(rack.inbox.is_empty(), "not yet");
    rack.run(Nanos::from_millis(200));
    assert_eq!(rack.controller.view(rack.now).link, LinkState::Up);
    assert_eq!(rack.join(&hello), grant);
}

#[test]
fn who_maps_a_type_hears_so_when_the_switch_gives_an_odd_answer() {
    let mut rack = Rack::up();
    let call = CallId(99);
    let mut out = Vec::new();
    let (task_type, slice) = (TaskType(3), None);
    rack.controller.event(rack.now, Event::SetType { call, task_type, slice }, &mut out);
    rack.controller.event(rack.now, Event::TableAnswered(TableAnswer::OutOfRange), &mut out);
    let mut answers = out.iter().filter_map(|action| match action {
        Action::Answer { call, answer } => Some((*call, waits(answer, Waiting::SwitchDown))),
        _ => None,
    });
    assert_eq!(answers.next(), Some((call, true)), "{out:?}");
}

/// A rack with a sweep under way that carries a live token of the worker in the grant.
fn sweep_with_a_token() -> (Rack, sluice_control::WorkerGrant) {
    let mut rack = Rack::up();
    let (stays, leaves) = (rack.join(&worker("a", 1)), rack.join(&worker("b", 2)));
    rack.park(&stays, 1);
    rack.park(&leaves, 1);
    rack.leave(&worker("b", 2));
    rack.flush();
    rack.pass(Nanos(0));
    rack.flush();
    rack.switch.sweep_once();
    assert_eq!(rack.switch.tokens(SliceId(0)).len(), 1, "the sweep holds the other one");
    (rack, stays)
}

#[test]
fn a_token_that_a_sweep_carried_past_a_change_is_swept_too() {
    let (mut rack, _) = sweep_with_a_token();
    rack.move_to("a", "scan");
    rack.flush();
    rack.run(Nanos::from_millis(20));
    assert_eq!(rack.switch.stale(SliceId(0)), 0);
}

#[test]
fn a_token_that_a_sweep_carried_past_a_controller_restart_is_swept_too() {
    let (mut rack, grant) = sweep_with_a_token();
    rack.move_to("a", "scan");
    while rack.switch.worker(grant.worker).generation_out == grant.generation {
        assert!(rack.execute_one() || rack.deliver_one());
    }
    rack.restart_controller(0);
    rack.run(Nanos::from_millis(20));
    assert_eq!(rack.switch.stale(SliceId(0)), 0);
}
