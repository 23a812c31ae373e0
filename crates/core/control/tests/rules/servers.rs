//! Servers register their memory, and the controller writes their rows to the switch.

use crate::rack::switch::{Switch, config};
use crate::rack::{LEASE, Rack, address, plan, server, with_rings, worker};
use sluice_control::{Answer, Event, Note, Refusal, RingPlace, ServerGrant, ServerHello, Waiting};
use sluice_wire::tables::{ServerState, TableOp};
use sluice_wire::{Nanos, Qpn, SLOT_HEAD_BYTES, ServerId, SliceId};

fn ask(rack: &mut Rack, hello: &ServerHello) -> Answer {
    let call = rack.server_hello(hello);
    rack.flush();
    rack.answers[&call].clone()
}

fn granted(rack: &mut Rack, hello: &ServerHello) -> ServerGrant {
    match ask(rack, hello) {
        Answer::Server(grant) => grant,
        other => panic!("{} was not granted: {other:?}", hello.name),
    }
}

fn refused(rack: &mut Rack, hello: &ServerHello) -> Refusal {
    match ask(rack, hello) {
        Answer::Refused { why } => why,
        other => panic!("{} was not refused: {other:?}", hello.name),
    }
}

/// A server with all of its rings in the switch.
fn joined(rack: &mut Rack, hello: &ServerHello) -> ServerHello {
    let grant = granted(rack, hello);
    let hello = with_rings(hello, &grant);
    granted(rack, &hello);
    hello
}

/// How many servers the switch has rows of.
fn servers(rack: &mut Rack) -> usize {
    (0..2).filter(|server| rack.switch.server(ServerId(*server)).row.is_some()).count()
}

/// How many bytes its first ring has.
fn bytes(hello: &ServerHello) -> u64 {
    u64::from(hello.rings[0].row.slots) * u64::from(hello.rings[0].row.slot_bytes)
}

#[test]
fn a_server_hears_which_rings_are_needed_and_the_switch_hears_where_they_are() {
    let mut rack = Rack::up();
    let hello = server("s", 1);
    let grant = granted(&mut rack, &hello);
    assert!(rack.switch.server(ServerId(0)).row.is_none(), "it has no memory yet");
    // 64 tasks that wait, 64 tokens, and 1,024 tasks in the longest stall.
    assert_eq!(grant.rings.iter().map(|need| need.slots).collect::<Vec<_>>(), [2_048, 2_048]);
    let hello = joined(&mut rack, &hello);
    assert_eq!(rack.switch.server(ServerId(0)).row.expect("it was set").qpn, hello.qpn);
    assert_eq!(rack.switch.ring(SliceId(1), ServerId(0)), Some(hello.rings[1].row));
    assert!([0, 1].map(SliceId).iter().all(|s| rack.switch.written.contains(&TableOp::SetCopies(*s, 0))));
    let needed = plan().rdma.first_bytes + SLOT_HEAD_BYTES as u32;
    assert!((needed..needed + 8).contains(&grant.rings[0].slot_bytes), "{:?}", grant.rings[0]);
    let (name, server, bytes) =
        ("s".to_string(), ServerId(0), 2 * 2_048 * u64::from(grant.rings[0].slot_bytes));
    assert!(rack.notes.contains(&Note::ServerJoined { name, server, rings: 2, bytes }), "{:?}", rack.notes);
    let before = rack.ops;
    granted(&mut rack, &hello);
    assert_eq!(rack.ops, before, "a renewal writes nothing");
}

#[test]
fn a_server_that_dies_or_leaves_is_taken_out_of_the_switch() {
    let mut rack = Rack::up();
    let hello = joined(&mut rack, &server("s", 1));
    rack.run(LEASE + Nanos::from_millis(10));
    assert!(
        rack.switch.server(ServerId(0)).row.is_none() && rack.switch.ring(SliceId(0), ServerId(0)).is_none()
    );
    assert!(rack.notes.contains(&Note::ServerDied { name: "s".to_string(), server: ServerId(0) }));
    joined(&mut rack, &hello);
    assert!(servers(&mut rack) > 0);
    let call = rack.call(|call| Event::ServerLeave { call, name: "s".to_string(), life: 1 });
    rack.flush();
    assert_eq!(rack.answers[&call], Answer::Left { final_sent: None });
    assert!(servers(&mut rack) == 0);
}

/// A reliable pair's numbers go on from WRITE to WRITE, and a new row counts from the pair's first number.
#[test]
fn a_reliable_pair_that_was_written_to_gets_no_second_row() {
    let reliable = ServerHello { reliable: true, ..server("s", 1) };
    let lost: [fn(&mut Rack); 3] = [
        |rack| rack.run(LEASE + Nanos::from_millis(10)),
        Rack::restart_switch,
        |rack| {
            rack.switch.table(TableOp::SetServer(ServerId(0), None));
            rack.restart_controller(0);
        },
    ];
    for lose in lost {
        let mut rack = Rack::up();
        let hello = joined(&mut rack, &reliable);
        assert_eq!(granted(&mut rack, &hello).spent_pair, None, "its row stands");
        lose(&mut rack);
        rack.flush();
        assert_eq!(granted(&mut rack, &hello).spent_pair, Some(hello.qpn));
        assert_eq!(servers(&mut rack), 0);
        let anew = ServerHello { qpn: Qpn(hello.qpn.0 + 1), ..hello };
        let grant = granted(&mut rack, &anew);
        assert_eq!(grant.spent_pair, None);
        assert_eq!(rack.switch.server(grant.server).row.map(|row| row.qpn), Some(anew.qpn));
    }
}

/// The call of the dead life takes the row away, and no pair of either life counts from its first number
/// again.
#[test]
fn a_call_of_a_dead_life_that_comes_late_gives_neither_lifes_pair_a_second_row() {
    let mut rack = Rack::up();
    let dead = joined(&mut rack, &ServerHello { reliable: true, ..server("s", 1) });
    let next = ServerHello { life: 2, qpn: Qpn(dead.qpn.0 + 1), rings: Vec::new(), ..dead.clone() };
    let next = joined(&mut rack, &next);
    assert_eq!(granted(&mut rack, &dead).spent_pair, Some(dead.qpn));
    assert_eq!(granted(&mut rack, &next).spent_pair, Some(next.qpn));
    assert_eq!(servers(&mut rack), 0);
    let anew = ServerHello { qpn: Qpn(next.qpn.0 + 1), ..next };
    assert_eq!(granted(&mut rack, &anew).spent_pair, None);
    assert_eq!(servers(&mut rack), 1);
}

/// The server stands still, its lease ends, and the first call that arrives then was made long before, with
/// the pair that the server had before its last one. Seed 210751240 of the fault runs with standbys.
#[test]
fn a_late_call_of_an_earlier_pair_gives_the_last_pair_no_second_row() {
    let ends: [fn(&mut Rack); 2] = [
        |rack| rack.run(LEASE + Nanos::from_millis(10)),
        |rack| {
            rack.call(|call| Event::ServerLeave { call, name: "s".to_string(), life: 1 });
            rack.flush();
        },
    ];
    for end in ends {
        let mut rack = Rack::up();
        let earlier = joined(&mut rack, &ServerHello { reliable: true, ..server("s", 1) });
        let last = ServerHello { qpn: Qpn(earlier.qpn.0 + 1), ..earlier.clone() };
        assert_eq!(granted(&mut rack, &last).spent_pair, None);
        for late in [&earlier, &ServerHello { rings: Vec::new(), ..earlier.clone() }] {
            end(&mut rack);
            assert_eq!(servers(&mut rack), 0);
            granted(&mut rack, late);
            assert_eq!(granted(&mut rack, &last).spent_pair, Some(last.qpn));
            assert_eq!(servers(&mut rack), 0);
        }
        let anew = ServerHello { qpn: Qpn(last.qpn.0 + 1), ..last };
        assert_eq!(granted(&mut rack, &anew).spent_pair, None);
        assert_eq!(servers(&mut rack), 1);
    }
}

/// Only the last few pairs of each server are remembered, and the last one is always among them.
#[test]
fn a_server_may_connect_as_often_as_it_likes() {
    let mut rack = Rack::up();
    let first = joined(&mut rack, &ServerHello { reliable: true, ..server("s", 1) });
    for more in 1..=9 {
        let hello = ServerHello { qpn: Qpn(first.qpn.0 + more), ..first.clone() };
        assert_eq!(granted(&mut rack, &hello).spent_pair, None, "{more}");
        assert_eq!(granted(&mut rack, &hello).spent_pair, None, "its row stands");
        let before = ServerHello { qpn: Qpn(hello.qpn.0 - 1), ..first.clone() };
        assert_eq!(granted(&mut rack, &before).spent_pair, Some(before.qpn), "{more}");
    }
}

#[test]
fn a_server_that_lays_its_memory_out_anew_keeps_its_row() {
    let mut rack = Rack::up();
    let mut hello = joined(&mut rack, &ServerHello { reliable: true, ..server("s", 1) });
    rack.switch.written.clear();
    hello.rings[1].row.address += 4_096;
    hello.rings.remove(0);
    assert_eq!(granted(&mut rack, &hello).spent_pair, None);
    assert_eq!(
        rack.switch.written,
        [
            TableOp::SetRing(SliceId(0), ServerId(0), None),
            TableOp::SetRing(SliceId(1), ServerId(0), None),
            TableOp::SetRing(SliceId(1), ServerId(0), Some(hello.rings[0].row)),
        ]
    );
}

#[test]
fn a_server_that_was_killed_takes_its_name_over_at_once_with_new_numbers() {
    let mut rack = Rack::up();
    joined(&mut rack, &server("s", 1));
    let again = joined(&mut rack, &server("s", 2));
    let ServerState { row, next } = rack.switch.server(ServerId(0));
    assert_eq!((row.map(|row| row.qpn), next), (Some(again.qpn), again.first));
    assert_eq!(rack.switch.ring(SliceId(0), ServerId(0)), Some(again.rings[0].row));
    let elsewhere = ServerHello { at: address(9), ..server("s", 3) };
    assert!(matches!(ask(&mut rack, &elsewhere), Answer::Wait { why: Waiting::NameHeld, .. }));
}

#[test]
fn a_switch_that_computes_no_icrc_says_so_and_takes_unreliable_pairs_only() {
    let mut rack = Rack::up();
    rack.switch.plain_writes = true;
    rack.restart_switch();
    rack.flush();
    let hello = server("s", 1);
    assert!(granted(&mut rack, &hello).without_icrc);
    let hello = joined(&mut rack, &hello);
    assert!(!rack.switch.server(ServerId(0)).row.expect("it was set").icrc, "though it asked for it");
    let before = rack.ops;
    granted(&mut rack, &hello);
    assert_eq!(rack.ops, before, "a renewal writes nothing");
    let reliable = ServerHello { reliable: true, at: address(9), ..server("r", 2) };
    assert_eq!(refused(&mut rack, &reliable), Refusal::UnreliableOnly { server: "r".to_string() });
}

#[test]
fn a_server_whose_switch_is_replaced_by_one_without_icrc_is_written_to_without() {
    let mut rack = Rack::up();
    let hello = joined(&mut rack, &server("s", 1));
    assert!(rack.switch.server(ServerId(0)).row.expect("it was set").icrc);
    rack.switch.plain_writes = true;
    rack.restart_switch();
    rack.flush();
    assert!(!rack.switch.server(ServerId(0)).row.expect("it was set again").icrc);
    assert!(granted(&mut rack, &hello).without_icrc, "its next renewal tells it");
}

#[test]
fn a_restarted_switch_is_told_at_once_of_the_servers_that_live() {
    let mut rack = Rack::up();
    let hello = joined(&mut rack, &server("s", 1));
    rack.restart_switch();
    rack.flush();
    assert_eq!(rack.switch.ring(SliceId(1), ServerId(0)), Some(hello.rings[1].row));
}

#[test]
fn a_restarted_controller_finds_the_rows_and_lets_those_go_whose_server_stays_silent() {
    let mut rack = Rack::up();
    let hello = joined(&mut rack, &server("s", 1));
    rack.restart_controller(0);
    rack.flush();
    assert_eq!(rack.controller.view(rack.now).servers[0].name, "");
    let before = rack.ops;
    assert_eq!(granted(&mut rack, &hello).server, ServerId(0));
    assert_eq!(rack.ops, before, "all of it stands there already");
    rack.restart_controller(0);
    rack.run(LEASE + Nanos::from_millis(10));
    assert!(rack.switch.server(ServerId(0)).row.is_none());
}

#[test]
fn each_rule_of_servers_and_rings_has_a_refusal_that_names_it() {
    let mut rack = Rack::up();
    let hello = server("s", 1);
    let grant = granted(&mut rack, &hello);
    let right = with_rings(&hello, &grant);
    let mut said = |change: &dyn Fn(&mut ServerHello)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        refused(&mut rack, &wrong).to_string()
    };
    for (what, why) in [
        (said(&|hello| hello.mtu = 1_024), "RDMA MTU of 1024 bytes"),
        (said(&|hello| hello.rings[1].row.slots = 1_024), "which needs 2048"),
        (said(&|hello| hello.rings[0].row.slots = 3_000), "not a power of two"),
        (said(&|hello| hello.rings[0].row.slot_bytes = 64), "do not hold a task's first packet"),
        (said(&|hello| hello.rings[0].row.slot_bytes = 4_096), "longer than the server's RDMA MTU"),
        (said(&|hello| hello.rings[0].row.address = u64::MAX - 9), "past the last address"),
        (said(&|hello| hello.rings[0].row.address = u64::MAX - bytes(hello) + 1), "past the last"),
        (said(&|hello| hello.rings[0].slice = SliceId(1)), "named twice"),
        (said(&|hello| hello.rings[0].slice = SliceId(2)), "no such slice"),
        (said(&|hello| hello.name = String::new()), "a name needs"),
    ] {
        assert!(what.contains(why), "{what}");
    }
    let mut just = right;
    (just.mtu, just.rings[0].row.address) = (just.rings[0].row.slot_bytes, u64::MAX - bytes(&just));
    granted(&mut rack, &just);
}

#[test]
fn each_class_of_tasks_has_as_many_slots() {
    let mut rack = Rack::of(plan(), Switch::new("rain:classes=2", config(4, 64)));
    rack.connect();
    rack.flush();
    assert_eq!(granted(&mut rack, &server("s", 1)).rings[0].slots, 2 * 2_048);
}

#[test]
fn rows_without_a_name_are_not_given_to_a_server_elsewhere() {
    let mut rack = Rack::up();
    joined(&mut rack, &server("s", 1));
    rack.restart_controller(0);
    rack.flush();
    let other = ServerHello { at: address(9), ..server("r", 2) };
    assert_eq!(granted(&mut rack, &other).server, ServerId(1));
}

#[test]
fn a_worker_is_told_where_its_tasks_lie_and_refused_a_slice_without_a_ring() {
    let mut rack = Rack::up();
    let mut hello = worker("w", 1);
    hello.server = "s".to_string();
    assert_eq!(rack.join(&hello).ring, None, "its server may yet come");
    let grant = granted(&mut rack, &server("s", 1));
    let mut partial = with_rings(&server("s", 1), &grant);
    partial.rings.truncate(1);
    granted(&mut rack, &partial);
    let place = RingPlace { life: 1, slots: 2_048, slot_bytes: partial.rings[0].row.slot_bytes };
    assert_eq!(rack.join(&hello).ring, Some(place));
    let moved = rack.move_to("w", "scan");
    rack.flush();
    let why = Refusal::SliceWithoutServer { worker: "w".into(), server: "s".into(), slice: "scan".into() };
    assert_eq!(rack.answers[&moved], Answer::Refused { why });
}

#[test]
fn a_worker_whose_queue_pair_failed_comes_in_anew_in_a_new_generation() {
    let mut rack = Rack::up();
    let mut hello = worker("w", 1);
    let before = rack.join(&hello);
    rack.park(&before, 2);
    hello.rejoins += 1;
    let after = rack.join(&hello);
    assert!(after.generation > before.generation);
    assert_eq!(rack.join(&hello).generation, after.generation, "once");
}
