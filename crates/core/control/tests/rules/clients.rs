//! Clients join, renew, change address, leave and die.

use crate::rack::switch::{Switch, config};
use crate::rack::{LEASE, RENEW, Rack, address, client, plan, worker};
use sluice_control::{Answer, Controller, Event, Note, Plan, Refusal, Waiting, WorkerHello};
use sluice_wire::registrations::Sizes;
use sluice_wire::tables::TableOp;
use sluice_wire::{ClientId, Nanos, Serial, SliceId, TaskType};

#[test]
fn a_client_joins_with_its_map_its_shares_and_a_replay_block_from_its_floor() {
    let mut rack = Rack::up();
    rack.join(&worker("w", 1));
    let call = rack.client_hello(&client("c", 9));
    let floor = rack.inbox.iter().find_map(|op| match op {
        TableOp::SetClient(ClientId(0), Some((_, floor))) => Some(*floor),
        _ => None,
    });
    assert_eq!(floor, Some(Serial(7)));
    rack.flush();
    let Answer::Client(grant) = &rack.answers[&call] else { panic!("not granted") };
    assert_eq!(grant.slices, vec![(TaskType(1), SliceId(0)), (TaskType(2), SliceId(1))]);
    assert_eq!(grant.shares[0], (SliceId(0), 64));
    assert_eq!(grant.replay_cells, 16);
}

#[test]
fn a_client_hears_what_a_class_is_where_the_switch_has_classes() {
    for (program, classes, expected) in
        [("rain", 1, vec![]), ("rain:classes=4", 4, vec![(SliceId(1), sizes())])]
    {
        let mut plan = Plan { gather_for: Nanos(0), ..plan() };
        plan.slices[1].sizes = sizes();
        let mut rack = Rack::of(plan, Switch::new(program, config(4, 64)));
        rack.connect();
        rack.run(Nanos::from_millis(10));
        rack.join(&worker("w", 1));
        let grant = rack.join_client(&client("c", 9));
        assert_eq!((grant.classes, grant.sizes.clone()), (classes, expected));
    }
}

fn sizes() -> Sizes {
    Sizes::new(&[Nanos(3), Nanos(14)]).expect("they ascend")
}

#[test]
fn a_client_of_a_new_switch_waits_for_every_slice_to_have_a_worker_but_not_for_ever() {
    let gathering = |rack: &mut Rack| {
        let call = rack.client_hello(&client("c", 9));
        rack.flush();
        matches!(rack.answers[&call], Answer::Wait { why: Waiting::WorkersGathering, .. })
    };
    let plan = Plan { gather_for: RENEW, ..plan() };
    let mut rack = Rack::new(4, 64);
    rack.controller = Controller::new(plan, [7; 32]).expect("the plan is sound");
    rack.connect();
    rack.run(Nanos::from_millis(10));
    rack.join(&worker("w", 1));
    assert!(gathering(&mut rack), "the second slice has no worker");
    rack.run(RENEW);
    assert!(!gathering(&mut rack));
    rack.restart_switch();
    rack.run(Nanos::from_millis(10));
    for (name, life, slice) in [("w", 1, "get"), ("v", 2, "scan")] {
        rack.join(&WorkerHello { slice: slice.to_string(), ..worker(name, life) });
    }
    assert!(!gathering(&mut rack), "every slice has one");
}

#[test]
fn shares_are_split_among_the_clients() {
    let mut rack = Rack::up();
    rack.join(&worker("w", 1));
    rack.join_client(&client("a", 1));
    rack.join_client(&client("b", 2));
    let grant = rack.join_client(&client("a", 1));
    assert_eq!(grant.shares[0], (SliceId(0), 32));
}

#[test]
fn a_clients_renewal_writes_nothing() {
    let mut rack = Rack::up();
    let hello = client("c", 9);
    let grant = rack.join_client(&hello);
    let before = rack.ops;
    for _ in 0..20 {
        assert_eq!(rack.join_client(&hello), grant);
        rack.run(RENEW);
    }
    assert_eq!(rack.ops, before);
}

#[test]
fn a_new_address_comes_with_a_new_key_since_the_replay_cells_start_anew() {
    let mut rack = Rack::up();
    let mut hello = client("c", 9);
    let before = rack.join_client(&hello);
    hello.at = address(77);
    let after = rack.join_client(&hello);
    assert_eq!(after.client, before.client);
    assert_ne!(after.key, before.key);
    assert_eq!(rack.switch.client(ClientId(0)).map(|row| row.at), Some(address(77)));
    let joined = Note::ClientJoined { name: "c".to_string(), client: before.client };
    assert_eq!(rack.notes.iter().filter(|note| **note == joined).count(), 1);
}

#[test]
fn another_life_of_a_client_waits_for_the_lease() {
    let mut rack = Rack::up();
    let before = rack.join_client(&client("c", 1));
    let answer = rack.ask_client(&client("c", 2));
    assert!(matches!(answer, Answer::Wait { why: Waiting::NameHeld, .. }));
    rack.run(LEASE);
    let after = rack.join_client(&client("c", 2));
    assert_ne!(after.key, before.key);
}

#[test]
fn clients_that_leave_free_their_indices() {
    let mut rack = Rack::up();
    for life in 1..=4 {
        rack.join_client(&client(&format!("c{life}"), life));
    }
    let full = rack.ask_client(&client("c5", 5));
    assert_eq!(full, Answer::Refused { why: Refusal::TableFull { limit: 4 } });
    for gone in [client("c3", 3), client("c2", 2)] {
        let (name, incarnation) = (gone.name, gone.incarnation);
        let call = rack.call(|call| Event::ClientLeave { call, name, incarnation });
        rack.flush();
        assert_eq!(rack.answers[&call], Answer::Left { final_sent: None });
    }
    assert_eq!(rack.join_client(&client("c5", 5)).client, ClientId(2), "the one that was free for longest");
    assert_eq!(rack.join_client(&client("c6", 6)).client, ClientId(1));
}

#[test]
fn balances_are_read_only_while_someone_looks() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    rack.join(&hello);
    let grant = rack.join(&hello);
    rack.park(&grant, 2);
    let before = rack.ops;
    rack.renew_for(LEASE, &[&hello]);
    assert_eq!(rack.ops, before);
    rack.feed(Event::Watch);
    rack.run(Nanos::from_millis(500));
    assert_eq!(rack.controller.view(rack.now).slices[0].balance, Some(2));
    assert_eq!(rack.ops - before, 12, "two slices, each tenth of a lease");
}
